"""Cross-batch memory (XBM): embeddings of earlier batches as further references of the loss.

Wang et al., "Cross-Batch Memory for Embedding Learning", CVPR 2020. The networks of two steps
differ little, so that an embedding of some steps ago is nearly the one that the network would give
now, at no cost.
"""

from typing import Any

import numpy as np
import torch

from benchmark.core.recipe import MemoryConfig


class Memory:
    """Detached embeddings (size, D) of training images on the run's device, with CPU bookkeeping.

    Keyed by image, each image holds one slot, which its next embedding overwrites; an image without
    a slot takes the one that was written longest ago. First in, first out, every embedding takes
    the slot written longest ago, so that an image may be there several times.
    """

    def __init__(
        self,
        config: MemoryConfig,
        labels: torch.Tensor,
        width: int,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ):
        """Make an empty memory for images with ``labels`` (N,) and embeddings of ``width``."""
        size = len(labels) if config.size is None or config.size == -1 else config.size
        self._by_image = config.key == "image"
        self.write_first = config.write_first
        if self._by_image:
            size = min(size, len(labels))
        self._labels = labels
        self._embeddings = torch.zeros(size, width, device=device, dtype=dtype)
        self._images = np.full(size, -1)  # -1: empty
        self._written = np.arange(-size, 0)  # when, in embeddings stored since the beginning

    def __len__(self) -> int:
        """Return the number of embeddings remembered."""
        return int(np.count_nonzero(self._images >= 0))

    def references(self, images: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what a step on ``images`` (B,) reads: all where the batch was written first."""
        return self.others(images[:0] if self.write_first else images)

    def others(self, images: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return embeddings (M, D), and labels (M,) on the CPU, of all but the ``images`` (B,).

        The batch brings its own embeddings, and a stale copy of a query is no reference.
        """
        slots = np.flatnonzero((self._images >= 0) & ~np.isin(self._images, images))
        rows = torch.from_numpy(slots).to(self._embeddings.device, non_blocking=True)
        labels = self._labels[torch.from_numpy(self._images[slots])]
        return self._embeddings.index_select(0, rows), labels

    def store(self, embeddings: torch.Tensor, images: np.ndarray) -> None:
        """Remember embeddings (B, D) of training images (B,), without their graph."""
        chosen = np.arange(len(images))
        if self._by_image:
            # of an image that was drawn twice the later embedding counts
            chosen = np.sort(len(images) - 1 - np.unique(images[::-1], return_index=True)[1])
        chosen = chosen[-len(self._images) :]
        images = images[chosen]
        slots = self._slots_of(images) if self._by_image else _oldest(self._written, len(images))
        device, dtype = self._embeddings.device, self._embeddings.dtype
        rows, targets = (
            torch.from_numpy(indices).to(device, non_blocking=True) for indices in (chosen, slots)
        )
        values = embeddings.detach().index_select(0, rows).to(dtype)
        self._embeddings.index_copy_(0, targets, values)
        self._images[slots] = images
        self._written[slots] = self._written.max() + 1 + np.arange(len(slots))

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return everything that a resumed run needs, as tensors."""
        bookkeeping = {
            "images": torch.from_numpy(self._images),
            "written": torch.from_numpy(self._written),
        }
        return {"embeddings": self._embeddings, **bookkeeping}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave."""
        self._embeddings.copy_(state["embeddings"])
        self._images[:] = state["images"].numpy()
        self._written[:] = state["written"].numpy()

    def _slots_of(self, images: np.ndarray) -> np.ndarray:
        """Return the slots of distinct images: their own, or else the oldest of the others."""
        # the last entry stands for the empty slots' image -1
        slot_of = np.full(len(self._labels) + 1, -1)
        slot_of[self._images] = np.arange(len(self._images))
        slots = slot_of[images]
        new = slots < 0
        written = self._written.copy()
        written[slots[~new]] = np.iinfo(written.dtype).max
        slots[new] = _oldest(written, int(new.sum()))
        return slots


def _oldest(written: np.ndarray, count: int) -> np.ndarray:
    """Return the ``count`` slots that were written longest ago, oldest first."""
    oldest = np.arange(len(written))
    if 0 < count < len(written):
        oldest = np.argpartition(written, count - 1)[:count]
    return oldest[np.argsort(written[oldest])][:count]
