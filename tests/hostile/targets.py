"""Every reader of files from elsewhere, and good files for it that mutations start from.

A reader may return or raise BenchmarkError. Every other error, a signal, a hang, gigabytes of
memory or a file written outside of its folder is a fault of the suite.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hostile.mutations import mutate_bytes, mutate_json, mutate_lines, mutate_yaml

Mutation = Callable[[bytes, random.Random], bytes]
BYTES: tuple[Mutation, ...] = (mutate_bytes,)
TEXT: tuple[Mutation, ...] = (mutate_bytes, mutate_lines, mutate_lines)
JSON: tuple[Mutation, ...] = (mutate_json,)
YAML: tuple[Mutation, ...] = (mutate_yaml,)


@dataclass(frozen=True)
class Target:
    """A reader of one kind of file.

    read     gets a folder, which ``prepare`` has filled once, and the content of the file
    seeds    returns good contents by name
    share    of the time that other targets get
    """

    name: str
    read: Callable[[Path, bytes], object]
    seeds: Callable[[], Mapping[str, bytes]]
    mutations: tuple[Mutation, ...] = BYTES
    prepare: Callable[[Path], object] = lambda folder: None
    share: float = 1.0


@functools.cache
def all_targets() -> dict[str, Target]:
    """Return the targets by name."""
    from hostile import run_targets, step_targets, study_targets

    modules = (study_targets, run_targets, step_targets)
    return {target.name: target for module in modules for target in module.TARGETS}
