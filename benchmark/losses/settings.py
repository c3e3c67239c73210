"""What counts for the whole program: code from elsewhere that changes it changes other results."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from benchmark.core.errors import RunError
from benchmark.core.registry import Registry


class ChangedSettingError(Exception):
    """Code from elsewhere changed what is not its own."""


def _settings() -> dict[str, Any]:
    return {
        "default device": torch.get_default_device(),
        "default dtype": torch.get_default_dtype(),
        "gradients": "on" if torch.is_grad_enabled() else "off",
        "threads": torch.get_num_threads(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "working directory": os.getcwd(),
    }


@contextmanager
def settings_kept() -> Iterator[None]:
    """Put the settings back after the block; raise ChangedSettingError if it changed them.

    An error of the block that a changed setting may have caused gives way to that one.
    """
    before = _settings()
    try:
        yield
    except Exception as error:
        _put_back(before, error)
        raise
    _put_back(before)


def _put_back(before: dict[str, Any], error: Exception | None = None) -> None:
    changed = {name: now for name, now in _settings().items() if now != before[name]}
    if not changed:
        return
    if "default device" in changed:
        torch.set_default_device(None)  # a device named here would slow every tensor that is made
    torch.set_default_dtype(before["default dtype"])
    torch.set_grad_enabled(before["gradients"] == "on")
    torch.set_num_threads(before["threads"])
    torch.use_deterministic_algorithms(before["deterministic algorithms"])
    os.chdir(before["working directory"])
    listed = " and ".join(f"{name} to {now}" for name, now in changed.items())
    raise ChangedSettingError(
        f"sets the whole program's {listed}; name it where it is used, or put it back"
    ) from error


@contextmanager
def settings_kept_by(registry: Registry, target: Any) -> Iterator[None]:
    """Do as ``settings_kept``, but raise RunError with the name of the registered class."""
    try:
        with settings_kept():
            yield
    except ChangedSettingError as error:
        raise RunError(f"{registry.words_of(target)} {error}") from error
