"""Commands that start at once: a process that has everything imported, and forks itself for each.

Importing torch, timm and faiss takes longer than an epoch of a small study, importing pandas, scipy
and matplotlib longer than most steps behind the runs. On one machine the workflow keeps one such
process (``server``) while it runs (``starter``). The command that trains, and those of the steps,
ask it (``client``); they do all in their own process, with the same result, wherever it is none.
"""
