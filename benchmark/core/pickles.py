"""Keys of pickles from outside, looked at before Python hashes them.

A tuple of 150 bytes can have 2^70 parts, and one of 4 MB a million levels: hashing the first never
ends, hashing the second ends the process. What reads a pickle hashes keys, the members of sets and
the names of storages.
"""

import pickle
from collections.abc import Callable, Iterable
from typing import IO, Any, ClassVar

import numpy as np


class RefusedError(pickle.UnpicklingError):
    """A pickle asks for something that is not plain data."""


def check_keys(keys: Iterable[Any]) -> None:
    """Raise RefusedError for a key that is no text, bytes, number or None."""
    for key in keys:
        plain = isinstance(key, (int, float, str, bytes, np.generic, _Inert))
        if not plain and key is not None and key is not _Inert:
            raise RefusedError(f"a {type(key).__name__} as a key or in a set")


def _checking(
    opcode: bytes, keys: Callable[[list[Any]], Iterable[Any]]
) -> dict[int, Callable[[Any], None]]:
    """Return the handler of an opcode that hashes: it looks at the ``keys`` on the stack first."""
    load = pickle._Unpickler.dispatch[opcode[0]]

    def checked(unpickler: Any) -> None:
        check_keys(keys(unpickler.stack))
        load(unpickler)

    return {opcode[0]: checked}


class KeyCheckingUnpickler(pickle._Unpickler):
    """The unpickler in Python: that in C hashes keys before anyone can look at them."""

    dispatch: ClassVar = {
        **pickle._Unpickler.dispatch,
        **_checking(pickle.SETITEM, lambda stack: stack[-2:-1]),
        **_checking(pickle.SETITEMS, lambda stack: stack[::2]),
        **_checking(pickle.DICT, lambda stack: stack[::2]),
        **_checking(pickle.ADDITEMS, lambda stack: stack),
        **_checking(pickle.FROZENSET, lambda stack: stack),
    }

    def find_class(self, module: str, name: str) -> Any:
        """Refuse every name: subclasses say what they allow."""
        raise RefusedError(f"{module}.{name}")


class _Inert:
    """Stands for whatever a pickle names, and does nothing."""

    def __init__(self, *arguments: Any):
        for items in arguments:  # members of a set, or pairs of an ordered dictionary
            for item in items if isinstance(items, (list, tuple)) else ():
                check_keys(item[:1] if isinstance(item, (list, tuple)) else [item])

    def ignore(self, *_: Any) -> None:
        """Take what belongs to the object."""

    __setstate__ = __setitem__ = append = extend = add = ignore


class _InertUnpickler(KeyCheckingUnpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _Inert

    def persistent_load(self, storage: Any) -> Any:
        check_keys(storage[:5])  # the rest is a view of it
        return _Inert()


def check_pickles(stream: IO[bytes], count: int = 1) -> None:
    """Read the next pickles of a stream without effect; raise RefusedError for nested keys."""
    for _ in range(count):
        _InertUnpickler(stream).load()
