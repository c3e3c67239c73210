"""The machinery of the ranking losses: relations, blocks, panels, histograms, the fused gradient."""
