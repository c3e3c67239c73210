"""Whether what a loss is given fits together."""

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


def check_sizes(name: str, embedding_dim: int | None, num_classes: int | None) -> None:
    """Raise RunError where the sizes that the proxies of a loss need are not given."""
    if not embedding_dim or not num_classes:
        raise RunError(
            f"{name} has a proxy per class: pass embedding_dim and num_classes "
            f"(got {embedding_dim} and {num_classes})"
        )


def check_classes(labels: Tensor, num_classes: int) -> None:
    """Raise RunError for labels (B,) without a proxy; those on a GPU are not looked at."""
    if labels.is_cuda or not len(labels):
        return
    last = num_classes - 1
    if not 0 <= labels.min() <= labels.max() <= last:
        raise RunError(
            f"labels run from {labels.min()} to {labels.max()}; the loss has proxies for 0 to "
            f"{last}: renumber the classes or set num_classes"
        )
