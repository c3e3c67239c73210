"""Where the values of a study's recipes come from, as the recipes say."""

from __future__ import annotations

from benchmark.report.render.table import Section, Table, TableCell, text_column
from benchmark.study import Study


def recipe_sources(study: Study) -> Table | None:
    """Return one section per recipe with the source of each of its parts; None without any."""
    recipes = {block.recipe_name: block.sources for block in study.blocks if block.recipe_name}
    sections = [
        Section(name, [[TableCell(part), TableCell(source)] for part, source in sources.items()])
        for name, sources in sorted(recipes.items())
        if sources
    ]
    if not sections:
        return None
    silent = ", ".join(sorted(name for name, sources in recipes.items() if not sources))
    return Table(
        "Sources of the recipes",
        "What each part of a recipe follows, as its file says. The values themselves stand in the "
        "specification of every run.",
        [text_column("Part of the recipe"), text_column("Where its values come from")],
        sections,
        [f"No sources are given in: {silent}."] * bool(silent),
    )
