"""The retrieval gallery on the page: the pictures go into it as far as they fit, the rest stays in its folder."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmark.report.figures.drawing import inline_svg
from benchmark.report.tables.labels import metric_label, place_label

SCHEMA = 1
LIMIT = 2_500_000  # bytes of pictures and curves in one page
SIDES = ("first", "second")


@dataclass
class ShownGallery:
    """What the page shows: ``places``, each with its queries; ``reason`` when there is nothing."""

    places: list[dict[str, Any]] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    left_out: int = 0  # queries that did not fit into the page


def load_gallery(folder: Path, limit: int = LIMIT) -> ShownGallery:
    """Returns the gallery below ``folder`` (``results/<study>/gallery``), its pictures as data addresses."""
    path = Path(folder) / "gallery.json"
    command = f"python -m benchmark gallery {Path(folder).parent.name}"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.get("schema") != SCHEMA:
            return ShownGallery(
                reason=f"its file has schema {found.get('schema')}, this version reads {SCHEMA}"
            )
        shown = ShownGallery(reasons=found["reasons"], reason=found["reason"])
        room = limit
        for place in found["places"]:
            queries = []
            for query in place["queries"]:
                embedded = _embedded(query, Path(folder))
                size = sum(len(embedded[side]["address"]) for side in SIDES) + len(embedded["svg"])
                if size > room:
                    shown.left_out += 1
                    continue
                room -= size
                queries.append(embedded)
            title = place_label(place["dataset"], place["setting"])
            words = f"{title} · batch size {place['batch_size']} · seed {place['seed']}"
            shown.places.append(
                {
                    **place,
                    "title": words,
                    "metric_label": metric_label(place["metric"]),
                    "queries": queries,
                }
            )
    except FileNotFoundError:
        return ShownGallery(reason=f"no gallery has been made: run '{command}'")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        words = f"its files cannot be read ({type(error).__name__}); make it again with '{command}'"
        return ShownGallery(reason=words)
    return shown


def _embedded(query: dict[str, Any], folder: Path) -> dict[str, Any]:
    curve = (folder / f"{query['curve']}.svg").read_text(encoding="utf-8")
    found = {**query, "svg": inline_svg(curve, f"gallery-{query['curve']}", query["caption"])}
    for side in SIDES:
        content = base64.b64encode((folder / query[side]["picture"]).read_bytes()).decode()
        found[side] = {**query[side], "address": f"data:image/png;base64,{content}"}
    return found
