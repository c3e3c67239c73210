"""Steps with one planted fault each."""

from __future__ import annotations

from functools import partial

import torch
from right_steps import PART, Queue, gathered, grad_cache


def mean_over_parts(model, images, labels, loss):
    parts = list(zip(images.split(PART), labels.split(PART), strict=True))
    for images_of_part, labels_of_part in parts:
        (loss(model(images_of_part), labels_of_part) / len(parts)).backward()


def sum_over_parts(model, images, labels, loss):
    for images_of_part, labels_of_part in zip(images.split(PART), labels.split(PART), strict=True):
        loss(model(images_of_part), labels_of_part).backward()


def parts_by_size(model, images, labels, loss):
    for images_of_part, labels_of_part in zip(images.split(PART), labels.split(PART), strict=True):
        share = len(labels_of_part) / len(labels)
        (share * loss(model(images_of_part), labels_of_part)).backward()


def whole_loss_for_each_part(model, images, labels, loss):
    for _ in images.split(8):
        loss(torch.cat([model(part) for part in images.split(8)]), labels).backward()


def nothing_left(model, images, labels, loss):
    loss(model(images), labels)


last_part_alone = partial(grad_cache, carried=slice(-1, None))
first_part_lost = partial(grad_cache, carried=slice(1, None))
divided_by_parts = partial(grad_cache, part=6, factor=1 / 4)
another_dropout = partial(grad_cache, restores=False)
gathered_without_gradient = partial(gathered, with_gradient=False)
gathered_without_own_rows = partial(gathered, with_gradient=False, own=False)
gradient_times_processes = partial(gathered, factor=2.0)
own_rows_in_the_queue = Queue(size=24, early=True)


def shuffled_labels(model, images, labels, loss):
    loss(model(images), labels.roll(1)).backward()


def uneven_part_left_out(model, images, labels, loss):
    whole = len(labels) // 6 * 6
    grad_cache(model, images[:whole], labels[:whole], loss, part=6)


class LeftFromBefore:
    """Carries the slopes of the step before."""

    def __init__(self):
        self.before = None

    def __call__(self, model, images, labels, loss):
        embeddings = model(images)
        (slopes,) = torch.autograd.grad(loss(embeddings, labels), embeddings, retain_graph=True)
        embeddings.backward(slopes if self.before is None else self.before)
        self.before = slopes
