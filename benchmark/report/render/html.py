"""Table -> HTML: a ``figure`` element for the report, and the same in a small page of its own."""

import functools

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from benchmark.report.render.table import Table

TALL = 40  # rows from which a table scrolls inside its box
WIDE = 8  # columns from which a table is printed across the page
LIMIT = 250  # rows on a page; the CSV beside it has them all


def to_html(table: Table, name: str, *, limit: int = LIMIT) -> str:
    """Return the element with caption, scrolling table and notes; all text is escaped."""
    first = table.first_rows(limit)
    notes = [*table.notes]
    if table.rows > limit:
        hidden = table.rows - limit
        notes.append(f"{hidden} more rows are not shown here; the CSV file has all {table.rows}.")
    return _template("table.html.j2").render(
        table=first,
        name=name,
        notes=notes,
        wide=len(table.columns) >= WIDE,
        tall=first.rows > TALL,
        zip=zip,
    )


def to_page(table: Table, name: str) -> str:
    """Return a complete small page with the table alone."""
    return _template("page.html.j2").render(table=table, content=to_html(table, name))


@functools.cache
def _template(name: str) -> Template:
    return environment("benchmark.report.render").get_template(name)


def environment(package: str) -> Environment:
    """Return the Jinja environment of the templates of ``package``, which escapes every text."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
