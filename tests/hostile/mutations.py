"""Damaged copies of files: random changes of bytes, lines, and single values of JSON and YAML."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import yaml

# Values that programs stumble over, in the place of any value of a document.
ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    "",
    " ",
    "nan",
    "\x1b[2J",
    "\0",
    "../../../etc/passwd",
    "/etc/passwd",
    "x" * 5000,
    "é\u202e",
    "{results}",
    "$(touch /tmp/x)",
    "<script>alert(1)</script>",
    "=1+1",
    -1,
    0,
    7,
    2**63,
    10**400,
    1e308,
    -0.0,
    float("nan"),
    float("inf"),
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"a": {"b": {"c": []}}},
)
ODD_BYTES = (b"\0", b"\xff", b"\r", b"\xef\xbb\xbf", b"\x80", b'"', b"'", b"\t", b"9" * 30, b"-")


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return ``content`` cut, shuffled, repeated or with some bytes changed."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 2, 4, 8, 64, 512)))
        match rng.randrange(8):
            case 0:
                data[at:end] = b""
            case 1:
                data[at:at] = data[at:end] * rng.choice((1, 2, 50))
            case 2:
                data[at:end] = rng.randbytes(end - at)
            case 3:
                data[at:end] = rng.choice((b"\0", b"\xff", b"\x7f")) * (end - at)
            case 4:
                data[at:at] = rng.choice(ODD_BYTES)
            case 5 if rng.random() < 0.2:
                del data[at:]
            case _ if data:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def mutate_lines(content: bytes, rng: random.Random) -> bytes:
    """Return a text with lines or fields removed, repeated, exchanged or replaced."""
    separator = rng.choice((b"\n", b"\n", b",", b" "))
    parts = content.split(separator)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        match rng.randrange(5):
            case 0 if len(parts) > 1:
                del parts[at]
            case 1:
                parts.insert(other, parts[at])
            case 2:
                parts[at], parts[other] = parts[other], parts[at]
            case 3:
                parts[at] = mutate_bytes(parts[at], rng)
            case _:
                odd = rng.choice(ODD_VALUES)
                parts[at] = str(odd)[:200].encode()
    return separator.join(parts)


def mutate_json(content: bytes, rng: random.Random) -> bytes:
    """Return a JSON document with some values exchanged for odd ones."""
    return _mutate_document(content, rng, json.loads, json.dumps)


def mutate_yaml(content: bytes, rng: random.Random) -> bytes:
    """Return a YAML document with some values exchanged for odd ones."""
    return _mutate_document(content, rng, yaml.safe_load, yaml.safe_dump)


def _mutate_document(
    content: bytes,
    rng: random.Random,
    load: Callable[[bytes], Any],
    dump: Callable[[Any], str],
) -> bytes:
    if rng.random() < 0.3:
        return rng.choice((mutate_bytes, mutate_lines))(content, rng)
    try:
        data = load(content)
    except (ValueError, yaml.YAMLError):  # damaged by an earlier round
        return mutate_bytes(content, rng)
    for _ in range(rng.choice((1, 1, 2, 4))):
        data = _with_an_odd_value(data, rng)
    return dump(data).encode("utf-8", "surrogatepass")


def _with_an_odd_value(data: Any, rng: random.Random) -> Any:
    """Return ``data`` with one value, at a random place, replaced, removed or renamed."""
    if not isinstance(data, (dict, list)) or not data or rng.random() < 0.1:
        return rng.choice(ODD_VALUES)
    keys = list(data) if isinstance(data, dict) else range(len(data))
    key = rng.choice(keys)
    copy = data.copy()
    action = rng.random()
    if action < 0.1:
        del copy[key]
    elif action < 0.15 and isinstance(copy, dict):
        copy[str(rng.choice(ODD_VALUES))[:50]] = copy.pop(key)
    elif action < 0.2 and isinstance(copy, list):
        copy.append(copy[key])
    else:
        copy[key] = _with_an_odd_value(data[key], rng)
    return copy
