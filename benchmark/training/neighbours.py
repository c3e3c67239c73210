"""neighbours.npz: what a sample of queries found, for the gallery of the report."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmark.core.files import replacing, require_folder
from benchmark.core.recipe import EvaluationConfig
from benchmark.core.records import NEIGHBOURS, SPEC_DIGEST
from benchmark.core.seeding import derive
from benchmark.datasets.base import ImageSet, Protocol
from benchmark.training.measure import EmbeddedProtocol

THUMBNAIL = 64  # pixels


def write_neighbours(
    folder: Path, digest: str, config: EvaluationConfig, embedded: dict[str, EmbeddedProtocol]
) -> None:
    """Write the nearest neighbours of a fixed sample of queries of the first protocol.

    ``digest`` is that of the run's specification.

    The sample depends on the number of queries only, so that all runs on a dataset show the same
    queries. Beside the neighbours stand ``positive_ranks``, the ranks of all that a query is to
    find (``positives`` of them each, query after query), thumbnails, and ``query_categories``, -1
    where a dataset has none. Raise RunError when the folder is gone.
    """
    item = next(iter(embedded.values()))
    total = len(item.query)
    order = np.random.default_rng(derive(0, "neighbour queries", total)).permutation(total)
    queries = np.sort(order[: config.neighbour_queries])
    neighbours, scores, matches = item.nearest(queries, config.neighbours)
    ranks = item.positive_ranks(queries)
    query_set = item.protocol.query
    gallery_set = _searched(item.protocol)
    categories = np.full(total, -1) if query_set.categories is None else query_set.categories
    names = [[gallery_set.names[i] for i in row] for row in neighbours]
    arrays: dict[str, Any] = {
        SPEC_DIGEST: np.array(digest),
        "queries": queries,
        "neighbours": neighbours,
        "scores": scores.astype(np.float32),
        "matches": matches,
        "positives": np.array([len(of_query) for of_query in ranks], dtype=np.int64),
        "positive_ranks": np.concatenate([*ranks, np.empty(0, np.int64)]),
        "query_categories": categories[queries].astype(np.int64),
        "query_names": np.array([query_set.names[i] for i in queries], dtype=np.str_),
        "neighbour_names": np.array(names, dtype=np.str_),
        "query_images": _thumbnails(query_set, queries),
        "neighbour_images": _thumbnails(gallery_set, neighbours.ravel()),
    }
    require_folder(folder)
    with replacing(folder / NEIGHBOURS) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, **arrays)


def _searched(protocol: Protocol) -> ImageSet:
    """Return the images that neighbours are numbered by: the gallery, then the distractors."""
    images = protocol.query if protocol.gallery is None else protocol.gallery
    extra = protocol.distractors
    if extra is None:
        return images
    size = len(images)
    return ImageSet(
        np.concatenate([images.labels, extra.labels]),
        [*images.names, *extra.names],
        lambda index: images.image(index) if index < size else extra.image(index - size),
    )


def _thumbnails(image_set: ImageSet, indices: np.ndarray) -> np.ndarray:
    """Return (n, 64, 64, 3) uint8 pictures."""
    pictures = np.zeros((len(indices), THUMBNAIL, THUMBNAIL, 3), np.uint8)
    for index in np.unique(indices):
        picture = image_set.image(int(index)).convert("RGB").resize((THUMBNAIL, THUMBNAIL))
        pictures[indices == index] = np.asarray(picture)
    return pictures
