"""Whether what a loss is given fits together."""

from __future__ import annotations

from torch import Tensor

from benchmark.core.errors import RunError


def check_inputs(
    embeddings: Tensor,
    labels: Tensor,
    references: Tensor | None,
    reference_labels: Tensor | None,
    *,
    levels: bool = False,
) -> None:
    """Raise RunError for embeddings, labels and references that do not fit together.

    ``levels``: labels may be (B, L) and (M, L).
    """
    if (references is None) != (reference_labels is None):
        raise RunError(
            "reference_embeddings and reference_labels belong together: pass both or neither"
        )
    for name, rows, numbers in (
        ("embeddings", embeddings, labels),
        ("reference_embeddings", references, reference_labels),
    ):
        if rows is None or numbers is None:
            continue
        shape = tuple(rows.shape)
        if rows.ndim != 2 or not rows.is_floating_point():
            raise RunError(f"{name} must be floating-point (B, D); got {rows.dtype} {shape}")
        allowed = shape[:1] + (tuple(labels.shape[1:2]) if levels else ())
        if numbers.shape != allowed or numbers.is_floating_point():
            raise RunError(
                f"{name} of shape {shape} need integer labels of shape {allowed}; "
                f"got {numbers.dtype} {tuple(numbers.shape)}"
            )
        if shape[1] != embeddings.shape[1]:
            raise RunError(
                f"embeddings are {embeddings.shape[1]} wide, {name} {shape[1]}; both must come "
                "from the same network"
            )
