"""What hard and random sampling put into a batch: neighbours, hard and easy negatives."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, Context
from benchmark.core.errors import ConfigError, Problem
from benchmark.report.drawing import COLOURS, DOUBLE, FAINT, INK, new_figure, styled

# FastAP's two strategies (supplement A); the study's own sampler comes after them. As many
# categories as SOP and In-Shop have, all of them there: the pairs of more make long epochs.
STRATEGIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "hard": ("category_windows", {"batches_per_pair": 1, "largest": 24}),
    "random": ("class_windows", {}),
}
# what an image is to the query -> pictures of it in a row, and their frame
KINDS = {
    "query": (1, INK, "-"),
    "neighbour": (2, COLOURS["good"], "-"),
    "hard negative": (3, COLOURS["bad"], "--"),
    "easy negative": (4, FAINT, ":"),
}
COLUMNS = 10  # pictures of a row
CLASSES = 3  # examples of classes
SIDE = 64  # pixels of a picture


def kinds_of(query: int, labels: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """Return what each image of a batch (B,) is to image ``query`` of it: a key of KINDS."""
    found = np.where(categories == categories[query], "hard negative", "easy negative")
    found[labels == labels[query]] = "neighbour"
    found[query] = "query"
    return found


def composition(labels: np.ndarray, categories: np.ndarray) -> pd.DataFrame:
    """Return, for every query of a batch (B,), how many there are of each of KINDS."""
    kinds = [kinds_of(query, labels, categories) for query in range(len(labels))]
    return pd.DataFrame([{kind: int((row == kind).sum()) for kind in KINDS} for row in kinds])


@ANALYSES.register(
    "batch_composition",
    display="What a batch contains",
    places=("FastAP supplement A", "FastAP Fig. 5", "FastAP Fig. 6"),
)
def build(context: Context) -> Analysis:
    """Return the counts over an epoch by sampler, and one query's batch; nothing is trained."""
    from benchmark.datasets import load_dataset
    from benchmark.input.samplers import create_sampler

    size, seed = context.block.batch_sizes[-1], context.seeds[0]
    spec = context.spec("fast_ap", size, seed)
    train = load_dataset(spec.dataset.name, spec.dataset.params).train
    if train.categories is None:
        words = f"{spec.dataset.label} has no categories; choose another with --dataset"
        raise ConfigError("analysis 'batch_composition'", [Problem(words)])
    of = {"labels": train.labels, "categories": train.categories}
    own = spec.recipe.sampler
    counts, first = [], {}
    for strategy, (name, params) in {**STRATEGIES, "this study": (own.name, own.params)}.items():
        epoch = create_sampler(name, params, **of, batch_size=size, seed=seed).epoch(0)
        first[strategy] = epoch[0]
        for batch in epoch:
            counted = composition(train.labels[batch], train.categories[batch])
            counts.append(counted.assign(strategy=strategy, sampler=name))
    data = pd.concat(counts, ignore_index=True)
    hard, random = (data[data["strategy"] == name] for name in STRATEGIES)
    means = [float(each["hard negative"].mean()) for each in (hard, random)]
    halves = float((hard["easy negative"] == size // 2).mean())
    shown = [kind for kind in KINDS if kind != "query"]
    groups = data.groupby(["strategy", "sampler"], sort=False)[shown].agg(["mean", "min", "max"])
    parts = [(f"{kind}s", part) for kind in shown for part in ("mean", "fewest", "most")]
    rows = [
        ("", [*names, *row]) for names, row in zip(groups.index, groups.to_numpy(), strict=True)
    ]
    pictures = dict(_rows(train, first))
    values: dict[str, Any] = dict(place=f"{context.place}, batches of {size}", size=size)
    values |= dict(rows=", ".join(pictures), halves=100 * halves, hard=means[0], random=means[1])
    claims = {
        "random_batches_have_fewer_hard_negatives": means[1] < means[0] / 2,
        "every_hard_batch_has_one_structure": halves == 1,
    }
    headers = ["sampling", "sampler", *parts]
    return Analysis(*_draw(train, pictures), headers, rows, values, claims)


def _rows(train: Any, first: Mapping[str, np.ndarray]) -> Iterator[tuple[str, list]]:
    """Yield (words, [(kind, number of the image)]) of each row of pictures."""
    sizes = pd.Series(train.labels).value_counts(sort=False)
    classes = sizes[sizes > 1].index[:: max(1, len(sizes) // CLASSES)][:CLASSES]
    for number, label in enumerate(classes, 1):
        members = np.flatnonzero(train.labels == label)[:COLUMNS]
        yield f"class {number}", [("", each) for each in members.tolist()]
    for strategy, batch in first.items():
        labels = train.labels[batch]
        query = next((i for i in range(len(batch)) if (labels == labels[i]).sum() > 1), 0)
        kinds = kinds_of(query, labels, train.categories[batch])
        chosen = [
            (kind, batch[kinds == kind][:most].tolist()) for kind, (most, *_) in KINDS.items()
        ]
        yield strategy, [(kind, each) for kind, numbers in chosen for each in numbers]


def _draw(train: Any, rows: Mapping[str, list]) -> tuple[Any, pd.DataFrame]:
    marks = []
    with styled():
        figure, grid = new_figure(DOUBLE, 0.85 * len(rows), len(rows), COLUMNS)
        for axes in grid.flat:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        for (words, pictures), line in zip(rows.items(), grid, strict=True):
            line[0].set_ylabel(words)
            for axes, (kind, number) in zip(line, pictures, strict=False):
                image = train.image(number).convert("RGB")
                image.thumbnail((SIDE, SIDE))
                axes.imshow(np.asarray(image))
                if kind:
                    _, colour, dash = KINDS[kind]
                    axes.spines[:].set(visible=True, color=colour, linestyle=dash, linewidth=1.5)
                    axes.set_xlabel(kind.replace(" ", "\n"))
                marks.append({"row": words, "kind": kind, "image": train.names[number]})
    return figure, pd.DataFrame(marks)
