"""Compute the recorded steps of any training run again, and say where they part from a recipe.

A foreign program writes a trace with ``recorder``; ``trace`` reads it as a stranger's file.
``feeding`` judges what goes into the network and ``numbering`` whose images these are,
``gradients`` the loss and its gradient, ``updates`` what the optimiser does. Each computes a part
from what was recorded before it, so that a difference in one part does not hide those behind it.
``causes.yaml`` has what may explain a difference.
"""
