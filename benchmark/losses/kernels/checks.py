"""Whether what a loss is given, and what it returns, fits together."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

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


def check_trainable(loss: nn.Module) -> None:
    """Raise RunError for parameters that no optimiser trains, and for tiles without rows."""
    for name in ("parameters", "named_parameters"):
        if getattr(type(loss), name) is not getattr(nn.Module, name):
            raise RunError(f"it has a method {name} of its own, which hides torch's; rename it")
    for name, parameter in loss.named_parameters():
        if not parameter.is_floating_point() or parameter.is_meta:
            kind = "has no data" if parameter.is_meta else f"is of {parameter.dtype}"
            raise RunError(f"its parameter {name} {kind}; give floating-point numbers")
    if any(getattr(module, "sparse", False) is True for module in loss.modules()):
        raise RunError("it has sparse gradients, which Adam does not take; set sparse=False")
    rows = getattr(loss, "rows_per_tile", None)
    if rows is not None and (type(rows) is not int or rows < 1):
        raise RunError(f"rows_per_tile is {rows!r}; give a whole number from 1, or None")


def check_value(value: Any) -> Tensor:
    """Return what ``forward`` returned; raise RunError if it is not a number with a gradient."""
    if isinstance(value, Tensor) and value.ndim == 0 and value.is_floating_point():
        if value.requires_grad:
            return value
        got = "a number without a gradient"
        advice = "compute it from the embeddings, without detach(), item() and torch.tensor()"
    else:
        got = told(value)
        advice = "take the mean of several, and return nothing beside it"
    raise RunError(
        f"forward returned {got}; a loss returns one floating-point number, a tensor of shape (), "
        f"with a gradient with respect to the embeddings: {advice}"
    )


def check_slope(
    returned: Any, shape: Sequence[int], scores: Tensor, gradient: bool, method: str
) -> tuple[Tensor, Tensor | None]:
    """Return what a ``method`` of scores (Q, R) returned: values of ``shape`` and their slope.

    Raise RunError for anything else: another shape would be broadcast, and train something else.
    """
    if isinstance(returned, tuple) and len(returned) == 2:
        value, slope = returned
        if is_floating(value, shape) and (not gradient or is_floating(slope, scores.shape)):
            return value, slope if gradient else None
    got = [told(item) for item in returned] if isinstance(returned, tuple) else [told(returned)]
    raise RunError(
        f"{method} returned {' and '.join(got) or 'nothing'} for scores of shape "
        f"{tuple(scores.shape)}; it returns a pair of floating-point tensors: the value, of shape "
        f"{tuple(shape)}, and its derivative with respect to the scores, of the scores' shape "
        "(None where no gradient is asked for)"
    )


def told(value: Any) -> str:
    """Return in a few words what a loss returned."""
    if isinstance(value, Tensor):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')}, shape {tuple(value.shape)}"
    return type(value).__name__


def is_floating(value: Any, shape: Sequence[int]) -> bool:
    """Say whether a value is a floating-point tensor of this shape."""
    return isinstance(value, Tensor) and value.shape == shape and value.is_floating_point()
