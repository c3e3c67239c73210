"""What goes into the network, and how the network stands: batches, images, lengths of rows."""

from typing import Any

import torch

from benchmark.core.recipe import Recipe
from benchmark.input.tensors import normalisation
from benchmark.replay.findings import CAUSES, PartFinding, differs
from benchmark.replay.trace import RecordedStep, Trace
from benchmark.training.numerics import AUTOCAST

# Samplers whose classes have equally many images, and samplers that draw an image once an epoch.
EQUAL_CLASSES = ("m_per_class", "category_pairs")
WITHOUT_REPEATS = ("m_per_class", "random", "class_windows")
NEAR = 0.01  # of a length of 1, and of the range of pixels
GREY = 0.05  # of a grey level
MOST = 0.9  # share of pixels on grey levels; a tenth of any numbers are
ALONG = {"torch.float32": 1e-3}  # part of a gradient along its row that is rounding
ALONG_HALF = 0.05


def batch_finding(trace: Trace, recipe: Recipe, size: int | None) -> PartFinding:
    """Compare sizes, images of a class and repeats with what the sampler makes on any dataset."""
    if trace.labels is None:
        return PartFinding("batch", "not recorded")
    name = recipe.sampler.name
    params = recipe.sampler.params
    classes = trace.labels.reshape(len(trace.labels), -1)[:, 0].split(trace.sizes)
    counts = torch.cat([batch.unique(return_counts=True)[1] for batch in classes]).tolist()
    *whole, last = trace.sizes
    size = size or max(trace.sizes)
    checks = [
        ("other_batch_size", whole, size),
        ("last_batch_kept", [last], size),
    ]
    drawn = params.get("classes") == "drawn"
    if trace.numbers is not None and name in WITHOUT_REPEATS and not drawn:
        seen: set[int] = set()
        for batch in trace.numbers.split(trace.sizes):
            twice = len(batch) - len(batch.unique())
            again = sum(number in seen for number in batch.tolist())
            if twice or 0 < 2 * again < len(batch):
                checks.append(("sampler_with_replacement", [twice + again], 0))
            if again:  # an epoch begins, whose first batch mostly comes again
                break
            seen.update(batch.tolist())
    each = params.get("samples_per_class")
    if name in EQUAL_CLASSES and each and not drawn:
        whole_groups = all(count % each == 0 for count in counts)
        cause = "sampler_with_replacement" if whole_groups else "other_images_of_a_class"
        checks.append((cause, counts, each))
    for cause, theirs, ours in checks:
        wrong = [value for value in theirs if value != ours]
        if wrong:
            return differs("batch", len(wrong), cause, n=len(wrong), theirs=wrong[0], ours=ours)
    return PartFinding("batch", "equal", f"{len(trace.sizes)} batches of {size}")


def input_finding(trace: Trace, recipe: Recipe) -> PartFinding:
    """Compare size, range and grey levels of the images with those of the recipe."""
    recorded = [step.inputs for step in trace.steps if step.inputs]
    config = recipe.input
    ours = [recipe.model.channels, config.image_size, config.image_size]
    theirs = recorded[0]["shape"][1:]
    if theirs != ours:
        return differs("input", theirs[-1], "other_image_size", theirs=theirs, ours=ours)
    low = torch.stack([each["amin"] for each in recorded]).amin(0)
    high = torch.stack([each["amax"] for each in recorded]).amax(0)
    own = [values.flatten() for values in normalisation(config, len(low))]
    noise = 6 * config.noise if config.augmentation == "affine_noise" else 0.0

    def fit(change: dict[str, Any]) -> list[bool]:
        """Return whether pixels lie in their range, on grey levels, and fill the range."""
        mean, std = own
        if "mean" in change:
            mean = torch.tensor(change["mean"])
            std = torch.tensor(change["std"])
        if len(mean) == len(change.get("order", ())):
            mean = mean[change["order"]]
            std = std[change["order"]]
        white = change.get("white", 1.0)
        least = (low * std + mean) / white
        most = (high * std + mean) / white
        levels = 255 * (recorded[0]["first"].movedim(1, -1) * std + mean) / white
        inside = least.min() > -NEAR - noise and most.max() < 1 + NEAR + noise
        grey = ((levels - levels.round()).abs() < GREY).float().mean() > MOST
        full = least.max() < 2 * NEAR and most.min() > 1 - 2 * NEAR
        return [
            bool(inside),
            bool(inside and grey),
            bool(inside and full),
        ]

    base = fit({})
    for key, cause in CAUSES.items():
        if cause.part == "input" and cause.change:
            fits = fit(cause.change)
            if any(fits[1:]) and fits > base:
                return differs("input", 1.0, key)
    if base[0]:
        return PartFinding("input", "equal")
    values = {"low": low.tolist(), "high": high.tolist()}
    return differs("input", float(high.max()), "other_normalisation", **values)


def rows_of(step: RecordedStep) -> str:
    """Return "unit", "raw", or "normalised later": in the loss, which then sees no length."""
    lengths = step.embeddings.norm(dim=1)
    if (lengths - 1).abs().max() < NEAR:
        return "unit"
    if step.gradients:
        gradient = sum(step.gradients)
        along = (gradient * step.embeddings).sum(1).abs().max()
        if along < ALONG.get(step.dtype, ALONG_HALF) * (gradient.norm(dim=1) * lengths).max():
            return "normalised later"
    return "raw"


def network_finding(trace: Trace, recipe: Recipe) -> PartFinding:
    """Compare the mode of batch norms, the lengths of rows, and the precision."""
    steps = [step for step in trace.steps if step.embeddings is not None]
    if not steps:
        return PartFinding("network", "not recorded")
    moved = [any(step.norms_moved) for step in steps if step.norms_moved]
    frozen = recipe.model.freeze_batch_norm
    if moved and any(moved) == frozen:
        return differs("network", 1.0, "batch_norms_" + ("not_frozen" if frozen else "frozen"))
    for step in steps:
        if rows_of(step) == "raw":
            length = step.embeddings.norm(dim=1).mean()
            return differs("network", length, "rows_not_normalised", theirs=float(length))
    theirs = steps[-1].dtype
    if theirs != str(AUTOCAST.get(recipe.training.precision, torch.float32)):
        says = f"it computes in {theirs}, the recipe in {recipe.training.precision}"
        return PartFinding("network", "not decided", f"{says}: one step cannot weigh rounding")
    return PartFinding("network", "equal")
