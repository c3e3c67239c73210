"""Whose images a program trains on: the numbers and labels of an epoch beside a dataset."""

import numpy as np
import pandas as pd

from benchmark.core.recipe import Recipe
from benchmark.datasets.base import ImageSet
from benchmark.replay.findings import PartFinding, differs
from benchmark.replay.trace import Trace


def pairs(counts: pd.Series) -> int:
    """Return how many pairs of images are in one group, from the sizes of the groups."""
    return int((counts * (counts - 1)).sum()) // 2


def images_finding(trace: Trace, recipe: Recipe, images: ImageSet) -> PartFinding:
    """Compare labels and super-labels with those of the images that have these numbers.

    Classes may have other names: images of one class there have to be of one class here.
    """
    part = "images"
    if trace.labels is None or trace.numbers is None:
        return PartFinding(part, "not recorded", "the trace does not number its images")
    numbers = trace.numbers.numpy()
    if numbers.min() < 0 or numbers.max() >= len(images):
        ends = f"{numbers.min()} to {numbers.max()}"
        return differs(part, 1.0, "other_images", theirs=ends, ours=len(images))
    labels = trace.labels.reshape(len(numbers), -1)[:, 0].numpy()
    both = pd.DataFrame({"theirs": labels, "ours": images.labels[numbers]})
    agree = pairs(both.value_counts())
    wrong = pairs(both.theirs.value_counts()) + pairs(both.ours.value_counts()) - 2 * agree
    if wrong > 4 * agree:  # labels that agree by chance
        says = "the numbers seem to count the images in another order than the dataset"
        return PartFinding(part, "not decided", says, float(wrong))
    if wrong:
        return differs(part, wrong, "other_labels", n=wrong)
    says = f"{len(np.unique(numbers))} of the {len(images)} images"
    if images.categories is not None:
        batches = np.split(images.categories[numbers], np.cumsum(trace.sizes)[:-1])
        most = max(len(np.unique(batch)) for batch in batches)
        ours = recipe.sampler.params.get("nb_categories", 2)
        if recipe.sampler.name == "category_pairs" and most > ours:
            return differs(part, most, "other_categories", theirs=most, ours=ours)
        says = f"{says}, at most {most} super-labels in a batch"
    return PartFinding(part, "equal", says)
