"""Seeds by name: each consumer of chance derives its own seed, so that none disturbs another.

Runs with the same seed but different losses see the same initial weights, batches and
augmentations, and a resumed run needs no generator state: the seed of a step follows from its
number.
"""

import hashlib


def derive(seed: int, *role: str | int) -> int:
    """Return a 63-bit seed for ``role``, such as ``"sampler", epoch``, under the run's ``seed``."""
    text = "/".join(map(str, (seed, *role)))
    digest = hashlib.sha256(text.encode()).digest()
    first = int.from_bytes(digest[:8], "big")
    return first >> 1
