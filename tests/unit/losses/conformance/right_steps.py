"""Right steps that train a batch in parts, in the styles that people write them in."""

from __future__ import annotations

import contextlib

import torch
import torch.distributed as dist

PART = 5


def at_once(model, images, labels, loss):
    loss(model(images), labels).backward()


def grad_cache(
    model,
    images,
    labels,
    loss,
    *,
    part=PART,
    restores=True,
    factor=1.0,
    carried=slice(None),
):
    """Embed in parts, take the loss of the whole batch, carry its slopes back part by part.

    The arguments are there to plant faults.
    """
    states = []
    embedded = []
    with torch.no_grad():
        for images_of_part in images.split(part):
            states.append(torch.get_rng_state())
            embedded.append(model(images_of_part))
    embeddings = torch.cat(embedded).requires_grad_()
    loss(embeddings, labels).backward()
    slopes = embeddings.grad.split(part)
    works = list(zip(images.split(part), slopes, states, strict=True))[carried]
    for number, (images_of_part, slope, state) in enumerate(works, 1):
        waits = getattr(model, "no_sync", contextlib.nullcontext)
        with (
            torch.random.fork_rng(),
            waits() if number < len(works) else contextlib.nullcontext(),
        ):
            if restores:
                torch.set_rng_state(state)
            model(images_of_part).backward(factor * slope)


def parts_against_constants(model, images, labels, loss, *, part=PART):
    """Take the loss of the whole batch for each part, with the rows of the others as constants."""
    states = []
    constants = []
    with torch.no_grad():
        for images_of_part in images.split(part):
            states.append(torch.get_rng_state())
            constants.append(model(images_of_part))
    for number, images_of_part in enumerate(images.split(part)):
        torch.set_rng_state(states[number])
        rows = [*constants]
        rows[number] = model(images_of_part)
        loss(torch.cat(rows), labels).backward()


def joined_graphs(model, images, labels, loss):
    """Keep the graph of every part until the one backward pass."""
    loss(torch.cat([model(part) for part in images.chunk(3)]), labels).backward()


class Queue:
    """A memory of the last rows, which are constants; ``early`` rows are put in before the loss."""

    def __init__(self, size=10, *, early=False):
        self.size = size
        self.early = early
        self.rows = None

    def keep(self, rows, labels):
        before = self.rows or (rows[:0].detach(), labels[:0])
        both = (
            torch.cat([before[0], rows.detach()]),
            torch.cat([before[1], labels]),
        )
        self.rows = tuple(part[-self.size :] for part in both)

    def __call__(self, model, images, labels, loss):
        embeddings = model(images)
        if self.early or self.rows is None:
            self.keep(
                embeddings[: None if self.early else 0],
                labels[: None if self.early else 0],
            )
        rows, names = self.rows
        loss(torch.cat([embeddings, rows]), torch.cat([labels, names])).backward()
        if not self.early:
            self.keep(embeddings, labels)


def all_rows(rows, labels, *, with_gradient=True, own=True):
    """Return the rows and labels of all processes."""
    if not dist.is_initialized():
        return rows, labels
    names = [torch.empty_like(labels) for _ in range(dist.get_world_size())]
    dist.all_gather(names, labels)
    if with_gradient:
        from torch.distributed.nn.functional import all_gather

        parts = all_gather(rows)
    else:
        parts = [torch.empty_like(rows) for _ in names]
        dist.all_gather(parts, rows.detach())
        if own:
            parts[dist.get_rank()] = rows
    return torch.cat(tuple(parts)), torch.cat(names)


def gathered(model, images, labels, loss, *, factor=1.0, **how):
    (factor * loss(*all_rows(model(images), labels, **how))).backward()


def gathered_times_processes(model, images, labels, loss):
    """Give each process the gradient of its own rows, times the number that the mean divides by."""
    processes = dist.get_world_size() if dist.is_initialized() else 1
    gathered(model, images, labels, loss, with_gradient=False, factor=processes)
