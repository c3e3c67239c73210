"""Files of a study's folder on the page: downloads, and markup that can do nothing.

Of figures and tables, whoever wrote them, only known elements and attributes stay; scripts,
handlers, styles and links to elsewhere do not. What remains needs no inline style, so that the
page's content security policy can forbid it.
"""

import base64
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from xml.etree.ElementTree import Element

from benchmark.core.paths import file_below, read_regular

LARGEST = 5_000_000  # letters of a figure or table in the page; each element takes memory
EMBEDDED = 300_000  # bytes of one embedded file; a larger one is linked beside the page


@dataclass(frozen=True)
class Download:
    """A link: what it says, the name to save under, and the address."""

    label: str
    name: str
    address: str


def download(label: str, study: Path, file: str, name: str = "") -> Download:
    """Return the link to ``file`` of a study's folder, saved as ``name`` (default: its own)."""
    path = file_below(study, file)
    content = read_regular(path)
    address = f"../{file}"
    if len(content) <= EMBEDDED:
        kind = "text/csv" if path.suffix == ".csv" else "text/plain"
        address = f"data:{kind};charset=utf-8;base64,{base64.b64encode(content).decode()}"
    return Download(label, name or path.name, address)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SVG_NAMESPACE = "{http://www.w3.org/2000/svg}"
XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
SVG_ELEMENTS = _names(
    "svg g defs path use rect circle ellipse line polyline polygon clipPath text tspan title"
)
PAINT = _names(
    "fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap stroke-linejoin "
    "stroke-dasharray stroke-dashoffset stroke-miterlimit opacity font-size font-family "
    "font-weight font-style text-anchor clip-path"
)
SVG_ATTRIBUTES = PAINT | _names(
    "id d x y x1 y1 x2 y2 cx cy r rx ry dx dy points width height transform viewBox version "
    "preserveAspectRatio clipPathUnits"
)
# A function in a value can be a place in the same figure, a colour or a transformation.
_FUNCTION = r"url\(#[\w.-]+\)|(?:var|rgba?|matrix|translate|scale|rotate|skew[XY])\([^()]*\)"
_VALUE = re.compile(rf"(?:[^()<>\\]|{_FUNCTION})*")
HTML_ELEMENTS = _names(
    "figure figcaption div table caption thead tbody tfoot tr th td colgroup col span small "
    "strong em b i sub sup code p br ul ol li abbr a"
)
HTML_ATTRIBUTES = _names("scope colspan rowspan title role tabindex aria-label aria-sort data-sort")
# Of tables alone: with others, such as those of notices, a table would look like the page's word.
HTML_CLASSES = _names(
    "table wide scroll tall sortable num words beside line notes section best second "
    "tone-good tone-bad tone-unsure tone-muted"
)
MAX_DEPTH = 100
EMPTY = frozenset({"br", "col"})


def safe_svg(text: str) -> str:
    """Return the ``svg`` element of a file with known elements and attributes alone.

    Declarations of a ``style`` attribute become attributes. Raise ValueError when it is no SVG.
    """
    root = _parsed(text, "figure")
    if root.tag != f"{SVG_NAMESPACE}svg":
        raise ValueError("its figure is no SVG; make it again")
    # what matplotlib says of all elements in a style sheet
    root.attrib = {"stroke-linejoin": "round", "stroke-linecap": "butt", **root.attrib}
    parts: list[str] = []
    _write(root, parts, SVG_ELEMENTS, _svg_attributes)
    return "".join(parts)


def safe_html(text: str, name: str) -> str:
    """Return the well-formed HTML of a table with known elements and attributes alone.

    No id stays but that of the table ``name``: others could be places of the page. Raise
    ValueError when the text is not well-formed; what this package writes is.
    """
    parts: list[str] = []
    attributes = partial(_html_attributes, own=f"table-{name}")
    for child in _parsed(f"<div>{text}</div>", "table"):
        _write(child, parts, HTML_ELEMENTS, attributes)
    return "".join(parts)


def _parsed(text: str, what: str) -> Element:
    """Return the root of a text; Python's parser for HTML takes minutes for some kilobytes."""
    try:
        if len(text) > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} letters")
        if "<!ENTITY" in text:
            raise ValueError("it declares entities")
        root = ElementTree.fromstring(text)
        _check_depth(root)
        return root
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"its {what} cannot be shown ({error}); make it again") from error


def _check_depth(root: Element) -> None:
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [child for element in level for child in element]
    if level:
        raise ValueError(f"more than {MAX_DEPTH} levels of nesting")


def _write(
    element: Element,
    parts: list[str],
    elements: Container[str],
    attributes: Callable[[Element], dict[str, str]],
) -> None:
    name = str(element.tag).removeprefix(SVG_NAMESPACE)
    if name in elements:
        written = "".join(f' {key}="{escape(text)}"' for key, text in attributes(element).items())
        parts.append(f"<{name}{written}>{escape(element.text or '', quote=False)}")
        for child in element:
            _write(child, parts, elements, attributes)
        parts.append("" if name in EMPTY else f"</{name}>")
    parts.append(escape(element.tail or "", quote=False))


def _svg_attributes(element: Element) -> dict[str, str]:
    found = {}
    for key, text in element.attrib.items():
        if key in (XLINK_HREF, "href") and re.fullmatch(r"#[\w.-]+", text):
            found["href"] = text
        elif key == "style":
            pairs = [one.partition(":") for one in text.split(";")]
            found |= {one[0].strip(): one[2].strip() for one in pairs if one[0].strip() in PAINT}
        elif key in SVG_ATTRIBUTES:
            found[key] = text
    return {key: text for key, text in found.items() if _VALUE.fullmatch(text)}


def _html_attributes(element: Element, own: str) -> dict[str, str]:
    found = {key: text for key, text in element.attrib.items() if key in HTML_ATTRIBUTES}
    classes = [each for each in element.get("class", "").split() if each in HTML_CLASSES]
    if classes:
        found = {"class": " ".join(classes), **found}
    if element.get("id") == own:
        found["id"] = own
    link = element.get("href", "")
    return {**found, "href": link} if re.match(r"https?://|#", link) else found
