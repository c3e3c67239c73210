"""What hard and random sampling put into a batch: neighbours, hard and easy negatives."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmark.analyses import ANALYSES
from benchmark.analyses.analysis import Analysis, cells, finding, numeric
from benchmark.analyses.context import Context
from benchmark.core.errors import ConfigError, Problem
from benchmark.report.drawing import COLOURS, DOUBLE, FAINT, INK, Drawing, new_figure, styled
from benchmark.report.records import Finding
from benchmark.report.table import Section, Table, text_column

TITLE = "What a batch holds"
# FastAP's two strategies (supplement A); the study's own sampler comes after them. As many
# categories as SOP and In-Shop have, all of them there: the pairs of more make long epochs.
STRATEGIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "hard": ("category_windows", {"batches_per_pair": 1, "largest": 24}),
    "random": ("class_windows", {}),
}
KINDS = {"query": 1, "neighbour": 2, "hard negative": 3, "easy negative": 4}  # pictures of a row
LOOKS = {
    "query": (INK, "-"),
    "neighbour": (COLOURS["good"], "-"),
    "hard negative": (COLOURS["bad"], "--"),
    "easy negative": (FAINT, ":"),
}
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
    display=TITLE,
    places=("FastAP supplement A", "FastAP Fig. 5", "FastAP Fig. 6"),
)
def build(context: Context) -> Analysis:
    """Return the counts over an epoch by sampler, and one query's batch; nothing is trained."""
    from benchmark.datasets import load_dataset
    from benchmark.input.samplers import create_sampler

    size = context.batch_sizes[-1]
    spec = context.spec("fast_ap", size, context.seeds[0])
    train = load_dataset(spec.dataset.name, spec.dataset.params).train
    if train.categories is None:
        words = f"{context.dataset} has no categories; choose another with --dataset"
        raise ConfigError("analysis 'batch_composition'", [Problem(words)])
    own = spec.recipe.sampler
    counts, first = [], {}
    for strategy, (name, params) in {**STRATEGIES, "this study": (own.name, own.params)}.items():
        sampler = create_sampler(
            name,
            params,
            labels=train.labels,
            categories=train.categories,
            batch_size=size,
            seed=context.seeds[0],
        )
        epoch = sampler.epoch(0)
        first[strategy] = epoch[0]
        for batch in epoch:
            counted = composition(train.labels[batch], train.categories[batch])
            counts.append(counted.assign(strategy=strategy, sampler=name))
    data = pd.concat(counts, ignore_index=True)
    place = f"{context.description.partition(',')[0]}, batches of {size}"
    drawing = _draw(train, dict(_rows(train, first)), place)
    return Analysis(drawing, _table(data, place), _claims(data, size))


def _rows(train: Any, first: Mapping[str, np.ndarray]) -> Iterator[tuple[str, list]]:
    """Yield (words, [(kind, number of the image)]) of each row of pictures."""
    sizes = pd.Series(train.labels).value_counts(sort=False)
    classes = sizes[sizes > 1].index[:: max(1, len(sizes) // CLASSES)][:CLASSES]
    for number, label in enumerate(classes, 1):
        members = np.flatnonzero(train.labels == label)[: sum(KINDS.values())]
        yield f"class {number}", [("", each) for each in members.tolist()]
    for strategy, batch in first.items():
        labels = train.labels[batch]
        query = next((i for i in range(len(batch)) if (labels == labels[i]).sum() > 1), 0)
        kinds = kinds_of(query, labels, train.categories[batch])
        chosen = [
            (kind, int(each))
            for kind, most in KINDS.items()
            for each in batch[kinds == kind][:most]
        ]
        yield strategy, chosen


def _claims(data: pd.DataFrame, size: int) -> list[Finding]:
    hard, random = (data[data["strategy"] == name] for name in STRATEGIES)
    means = [float(each["hard negative"].mean()) for each in (hard, random)]
    halves = float((hard["easy negative"] == size // 2).mean())
    return [
        finding(
            "random_batches_have_fewer_hard_negatives",
            "FastAP supplement A",
            "under random sampling the chances of seeing hard negatives are much lower",
            f"A query meets {means[0]:.1f} hard negatives in a batch of {size} under hard sampling "
            f"and {means[1]:.1f} under random sampling.",
            means[1] < means[0] / 2,
        ),
        finding(
            "every_hard_batch_has_one_structure",
            "FastAP supplement A and Fig. 6",
            "under hard sampling half of the batch are easy negatives, for every query",
            f"So it is for {100 * halves:.0f}% of the queries of an epoch.",
            halves == 1,
        ),
    ]


def _table(data: pd.DataFrame, place: str) -> Table:
    shown = [kind for kind in KINDS if kind != "query"]
    columns = [text_column("sampling"), text_column("sampler")]
    columns += [numeric(f"{kind}s", part) for kind in shown for part in ("mean", "fewest", "most")]
    groups = data.groupby(["strategy", "sampler"], sort=False)[shown].agg(["mean", "min", "max"])
    rows = [cells(*names, *row) for names, row in zip(groups.index, groups.to_numpy(), strict=True)]
    caption = (
        f"What a query meets in its batch, over all queries of an epoch ({place}). Neighbours are "
        "of its class, hard negatives of its category, easy negatives of another."
    )
    return Table(TITLE, caption, columns, [Section("", rows)])


def _draw(train: Any, rows: Mapping[str, list], place: str) -> Drawing:
    columns, marks = sum(KINDS.values()), []
    with styled():
        figure, grid = new_figure(DOUBLE, 0.85 * len(rows), len(rows), columns)
        for (words, pictures), line in zip(rows.items(), grid, strict=True):
            for axes in line:
                axes.set_xticks([])
                axes.set_yticks([])
                axes.grid(False)
                axes.spines[:].set_visible(False)
            line[0].set_ylabel(words)
            for axes, (kind, number) in zip(line, pictures, strict=False):
                image = train.image(number).convert("RGB")
                image.thumbnail((SIDE, SIDE))
                axes.imshow(np.asarray(image))
                if kind:
                    colour, dash = LOOKS[kind]
                    axes.spines[:].set(visible=True, color=colour, linestyle=dash, linewidth=1.5)
                    axes.set_xlabel(kind.replace(" ", "\n"))
                marks.append({"row": words, "kind": kind, "image": train.names[number]})
    caption = (
        "Example classes of the training images, and what one query of the first batch meets in it "
        f"({place}): up to {KINDS['neighbour']} neighbours (solid frame), {KINDS['hard negative']} "
        f"hard negatives of its category (dashed) and {KINDS['easy negative']} easy ones (dotted), "
        "under FastAP's hard and random sampling and under the sampler of the study."
    )
    alt = f"Rows of pictures: {', '.join(rows)}."
    return Drawing(TITLE, caption, alt, figure, pd.DataFrame(marks))
