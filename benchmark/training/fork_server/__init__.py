"""Runs that start at once: a process that has everything imported, and forks itself for each run.

Importing torch, timm and faiss takes longer than an epoch of a small study. On one machine the
workflow keeps one such process (``server``) while it runs (``starter``). The command that trains
asks it (``client``), and trains in its own process, with the same result, wherever it gets none.
"""
