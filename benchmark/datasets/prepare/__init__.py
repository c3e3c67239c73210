"""Puts datasets onto the disk; whatever stops a step, the same command continues it."""
