"""Where the values of a study's recipes come from: requested of everybody who writes a recipe, shown to everybody."""

from __future__ import annotations

from typing import Any

from benchmark.report.tables.table import Cell, Section, Table, text_column


def recipe_sources(study: Any) -> Table | None:
    """Returns one section per recipe with the source of each of its parts; None when no recipe names any."""
    recipes = {block.recipe_name: block.sources for block in study.blocks if block.recipe_name}
    sections = [
        Section(name, [[Cell(place), Cell(source)] for place, source in sources.items()])
        for name, sources in sorted(recipes.items())
        if sources
    ]
    if not sections:
        return None
    silent = sorted(name for name, sources in recipes.items() if not sources)
    return Table(
        "Sources of the recipes",
        "What each part of a recipe follows, as its file says. The values themselves stand in the specification of "
        "every run.",
        [text_column("Part of the recipe"), text_column("Where its values come from")],
        sections,
        [f"No sources are given in: {', '.join(silent)}."] if silent else [],
    )
