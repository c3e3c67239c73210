"""Reproducibility suite for ranking losses: train, evaluate, compare with the papers."""

__version__ = "0.1.0"
