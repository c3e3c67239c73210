"""Triplet loss of batches that a sampler has laid out as triplets."""

from dataclasses import dataclass

import torch

from benchmark.core.errors import RunError
from benchmark.core.options import option
from benchmark.losses import LOSSES
from benchmark.losses.base import Loss, widened

OF_TRIPLET = 3  # images: anchor, positive, negative


@LOSSES.register(
    "triplet_mined",
    display="Triplet (mined)",
    paper="Gordo et al., IJCV 2017",
    kind="triplets",
    accepts_references=False,
)
class TripletMined(Loss):
    """Mean over triplets of [m + d(a, p) - d(a, n)]+ / 2 with squared Euclidean d.

    The batch is a, p, n, a, p, n, ... as the sampler ``mined_triplets`` makes it; one of another
    kind is an error.
    """

    labels_on_cpu = True
    group = OF_TRIPLET

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """Hyperparameters."""

        margin: float = option(0.1, above=0.0, help="required gap between squared distances")

    def forward(
        self,
        embeddings,
        labels,
        reference_embeddings=None,
        reference_labels=None,
        *,
        generator=None,
    ):
        if len(labels) % OF_TRIPLET or not _laid_out(labels):
            raise RunError(
                "'triplet_mined' got a batch that is not laid out as triplets; train it with the "
                "sampler 'mined_triplets'"
            )
        with torch.autocast(embeddings.device.type, enabled=False):
            rows = widened(embeddings)
            anchors, positives, negatives = rows.unflatten(0, (-1, OF_TRIPLET)).unbind(1)
            near = (anchors - positives).square().sum(1)
            far = (anchors - negatives).square().sum(1)
            return (self.config.margin + near - far).clamp(min=0).mean() / 2


def _laid_out(labels: torch.Tensor) -> bool:
    anchors, positives, negatives = labels.reshape(-1, OF_TRIPLET).unbind(1)
    return bool((anchors == positives).all() and (anchors != negatives).all())
