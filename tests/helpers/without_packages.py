"""Runs ``python -m benchmark ARGUMENTS`` as on a machine that lacks the packages of the first
argument, separated by commas."""

from __future__ import annotations

import runpy
import sys
from importlib.machinery import PathFinder

LACKING = set(sys.argv[1].split(","))
find_spec = PathFinder.find_spec


def found(name, path=None, target=None):
    return None if name.partition(".")[0] in LACKING else find_spec(name, path, target)


PathFinder.find_spec = staticmethod(found)
sys.argv = ["benchmark", *sys.argv[2:]]
runpy.run_module("benchmark", run_name="__main__")
