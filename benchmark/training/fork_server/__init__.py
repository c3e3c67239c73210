"""Runs that start at once: a process that has everything imported, and forks itself for each run.

Importing torch, timm and faiss takes longer than an epoch of a small study. On one machine the workflow keeps one
such process (``server``) while it runs; ``python -m benchmark train`` asks it (``client``) and, wherever it cannot
help, trains in its own process with the same result.
"""
