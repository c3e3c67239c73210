"""Where the values of a study's recipes come from, and where they differ from the authors'."""

from benchmark.papers.fidelity import study_ledger
from benchmark.report.table import Section, Table, TableCell, text_column
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


def recipe_deviations(study: Study) -> Table | None:
    """Return one section per recipe with its values that may move a score; None without a paper."""
    rows = study_ledger(study)
    if not rows:
        return None
    moving = [row for row in rows if row.deviates]
    sections = [
        Section(
            name,
            [
                [
                    *(TableCell(text or "–") for text in (row.item, row.paper, row.code, row.ours)),
                    TableCell(row.effect, tone="bad" if row.large else ""),
                    TableCell(row.reason),
                ]
                for row in moving
                if row.recipe == name
            ],
        )
        for name in dict.fromkeys(row.recipe for row in moving)
    ]
    stated = [row for row in rows if row.equal != "not stated"]
    equal = sum(row.equal == "yes" for row in stated)
    return Table(
        "Where our recipes and the authors' differ",
        "Values of the recipes that may move a score: what the paper states, what the authors' "
        "code does, ours, and the expected effect in points, which is judged and not measured.",
        [text_column(name) for name in ("Value", "Paper", "Code", "Ours", "Effect", "Reason")],
        sections,
        [
            f"Of {len(rows)} values, {len(stated)} are stated by the paper or its code, and "
            f"{equal} "
            f"of these are equal; 'python -m benchmark fidelity {study.name}' prints all of them."
        ],
    )
