"""Hostile files for every reader of the suite: a corpus, and random mutations of good files."""
