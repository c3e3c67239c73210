"""The processes that train one run together: who they are, and what they tell each other.

Every process holds the whole network, optimiser, memory and position of the run, and all stay equal
to the bit. A batch is divided among them; what a loss looks at is the whole batch. Everything that
one process would add up is a **sum** over processes, never a mean.

Torch's DistributedDataParallel is not taken. It averages gradients, and after the first step it
puts them into other buckets, so that three processes or more would add in another order after a
checkpoint than before it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed

from benchmark.core.environment import available_cores, is_one_of_several
from benchmark.core.errors import RunError
from benchmark.core.plain import whole_number

T = TypeVar("T")
# Elements that are sent or summed at a time.
BUCKET = 2**23
# Processes that any machine without GPUs may start: each holds half a GB before it reads anything.
FEW = 8
# What waits longest is for one process to rank judged lists. The launcher ends those whose peer is
# gone.
PATIENCE = timedelta(days=7)
MOST = 100_000  # processes of a run
_ADVICE = "start it with 'train --gpus N' or torchrun, or unset RANK, WORLD_SIZE and MASTER_ADDR"


class PeerGoneError(Exception):
    """Another process is gone; what happened is for that one or its launcher to say."""


def _variable(name: str, allowed: range) -> int:
    """Return a variable of torchrun's; raise RunError for any other than a number ``allowed``."""
    value = os.environ[name]
    number = whole_number(value)
    if number is None or number not in allowed:
        words = f"{name}='{value[:100]}' (allowed: {allowed[0]} to {allowed[-1]})"
        raise RunError(f"{words} describes no process of several; {_ADVICE}")
    return number


def share(total: int, rank: int, count: int) -> slice:
    """Return the part of ``total`` items that is process ``rank``'s: consecutive, nearly equal."""
    size, more = divmod(total, count)
    start = rank * size + min(rank, more)
    return slice(start, start + size + (rank < more))


@dataclass(frozen=True)
class Processes:
    """Process number ``rank`` of ``count``; without arguments the only one, which tells nobody."""

    rank: int = 0
    count: int = 1

    @classmethod
    def join(cls) -> Processes:
        """Return the processes that torchrun's variables describe, when all of them are there.

        Raise RunError for variables that describe none, and where there are GPUs, but not one for
        each process.
        """
        if not is_one_of_several():
            return cls()
        count = _variable("WORLD_SIZE", range(2, MOST + 1))
        rank = _variable("RANK", range(count))
        backend = "gloo"
        if torch.cuda.is_available():
            local = _variable("LOCAL_RANK", range(count)) if "LOCAL_RANK" in os.environ else rank
            require_gpus(local + 1)
            torch.cuda.set_device(local % torch.cuda.device_count())
            backend = "cpu:gloo,cuda:nccl"
        if not distributed.is_torchelastic_launched():  # somebody set the variables, or left them
            print(f"waiting for the other processes ({rank} of {count} is here); {_ADVICE}")
        try:
            distributed.init_process_group(backend, timeout=PATIENCE)
        except (ValueError, RuntimeError) as error:  # MASTER_PORT, or nobody who answers there
            raise RunError(f"the processes of the run cannot meet ({error}); {_ADVICE}") from error
        return cls(rank, count)

    def leave(self) -> None:
        """Part from the others, when all have done their work."""
        if self.count > 1:
            with _talking():
                distributed.barrier()
            distributed.destroy_process_group()

    @property
    def main(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    def rows(self, total: int) -> slice:
        """Return this process's part of ``total`` items."""
        return share(total, self.rank, self.count)

    def shares(self, total: int) -> list[slice]:
        """Return the parts of all processes."""
        return [share(total, rank, self.count) for rank in range(self.count)]

    def joined(self, part: Tensor, total: int) -> Tensor:
        """Return all rows (total, ...) in every process, from each one's ``rows``."""
        if self.count == 1:
            return part
        whole = part.new_zeros(total, *part.shape[1:])
        whole[self.rows(total)] = part
        return self.sum_(whole)

    def collected(self, part: Tensor, bounds: Sequence[slice]) -> Tensor:
        """Return all rows in the main process, the part itself in the others; on the CPU.

        ``bounds``: which of the rows are those of each process.
        """
        if self.count == 1:
            return part
        with _talking():
            if not self.main:
                for piece in _pieces(part.contiguous()):
                    distributed.send(piece, 0)
                return part
            whole = part.new_empty(bounds[-1].stop, *part.shape[1:])
            whole[bounds[0]] = part
            for rank, rows in enumerate(bounds[1:], 1):
                for piece in _pieces(whole[rows]):
                    distributed.recv(piece, rank)
        return whole

    def sum_(self, values: Tensor) -> Tensor:
        """Add up the values of all processes, in place."""
        if self.count > 1:
            with _talking():
                distributed.all_reduce(values)
        return values

    def take_main_(self, values: Tensor) -> Tensor:
        """Replace values by those of the main process, in place."""
        if self.count > 1:
            with _talking():
                distributed.broadcast(values, 0)
        return values

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Add up the gradients of all processes, some buckets of equal type at a time."""
        if self.count == 1:
            return
        gradients = [value.grad for value in parameters if value.grad is not None]
        for bucket in _buckets(gradients):
            flat = self.sum_(torch.cat([gradient.reshape(-1) for gradient in bucket]))
            parts = flat.split([gradient.numel() for gradient in bucket])
            for gradient, part in zip(bucket, parts, strict=True):
                gradient.copy_(part.view(gradient.shape))

    def told(self, value: Any) -> Any:
        """Return the main process's value in all processes."""
        if self.count == 1:
            return value
        box = [value]
        with _talking():
            distributed.broadcast_object_list(box, 0, device=torch.device("cpu"))
        return box[0]

    def of_all(self, value: T) -> list[T]:
        """Return the values of all processes, in their order."""
        if self.count == 1:
            return [value]
        box: list[Any] = [None] * self.count
        with _talking():
            distributed.all_gather_object(box, value)
        return box

    def given(self, rows: np.ndarray | None) -> np.ndarray:
        """Return the main process's array (N, D) in all processes; others have none."""
        shape, kind = self.told(None if rows is None else (rows.shape, rows.dtype))
        rows = np.empty(shape, kind) if rows is None else np.ascontiguousarray(rows)
        if self.count > 1:
            for piece in _pieces(torch.from_numpy(rows)):
                self.take_main_(piece)
        return rows

    def any(self, asked: bool) -> bool:
        """Return whether one of the processes was asked; looked at on the CPU."""
        if self.count == 1:
            return asked
        return bool(self.sum_(torch.tensor(int(asked))))


ALONE = Processes()


def require_gpus(count: int) -> None:
    """Raise RunError where there are GPUs, but fewer than ``count``.

    Without any, the processes compute on the CPU: a few may, or as many as there are cores.
    """
    if not torch.cuda.is_available():
        most = max(FEW, available_cores())
        if count > most:
            raise RunError(
                f"{count} processes are asked for on a machine without GPUs, which would be too "
                f"many for its {available_cores()} cores and its memory; give at most "
                f"--gpus {most}, or start it where the GPUs are"
            )
        return
    there = torch.cuda.device_count()
    if there < count:
        raise RunError(
            f"{count} GPUs are asked for, and {there} can be seen here; ask for as many in the "
            f"study's resources (gpus), or give at most --gpus {there}"
        )


@contextlib.contextmanager
def _talking() -> Iterator[None]:
    """Raise PeerGoneError for what torch raises when another process does not answer."""
    try:
        yield
    except RuntimeError as error:
        raise PeerGoneError(str(error).partition("\n")[0]) from error


def _pieces(rows: Tensor) -> Iterator[Tensor]:
    return iter(rows.view(-1).split(BUCKET))


def _buckets(gradients: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Yield consecutive gradients of one type, up to about BUCKET elements."""
    bucket: list[Tensor] = []
    for gradient in gradients:
        full = sum(other.numel() for other in bucket) + gradient.numel() > BUCKET
        if bucket and (full or bucket[0].dtype != gradient.dtype):
            yield bucket
            bucket = []
        bucket.append(gradient)
    if bucket:
        yield bucket
