"""All statistics of a study, computed from its collected runs alone; no torch here."""
