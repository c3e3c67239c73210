"""Verdicts: our results against published numbers and frozen runs; no torch here."""
