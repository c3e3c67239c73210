"""The printed tables and figures of papers, filled from our runs."""
