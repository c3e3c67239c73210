"""Equal chances: every loss gets the same number of trials, then runs again with its best setting.

The trials are fixed before the first run, so that they are runs of an ordinary grid; what follows
from them is a second, ordinary study file.
"""
