"""Simulated tables with a known truth: how often a rule for verdicts is wrong, and what it sees."""
