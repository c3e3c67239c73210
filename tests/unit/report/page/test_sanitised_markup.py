"""Figures and tables from elsewhere: they look as before, and can do nothing."""

from __future__ import annotations

import re
from functools import partial

import pytest

from benchmark.report.page import files
from benchmark.report.page.files import safe_html, safe_svg

NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
ACTIVE = re.compile(
    r"script|alert|on\w+=|javascript|<style|style=|foreignObject|http|@import|data:"
)


def svg(inside: str, attributes: str = "") -> str:
    return f'<?xml version="1.0"?><svg {NAMESPACES} {attributes}>{inside}</svg>'


SVG_ATTACKS = {
    "script": svg("<script>alert(1)</script>"),
    "script in another case": svg("<SCRIPT>alert(1)</SCRIPT>"),
    "handler": svg('<rect onclick="alert(1)"/>', 'onload="alert(1)"'),
    "link": svg('<a xlink:href="javascript:alert(1)"><text>x</text></a>'),
    "foreign object": svg(
        '<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script>'
        "</body></foreignObject>"
    ),
    "image from elsewhere": svg('<image href="http://example.org/x.png"/>'),
    "use from elsewhere": svg('<use xlink:href="http://example.org/x.svg#a"/>'),
    "use of data": svg('<use href="data:image/svg+xml;base64,AAAA#a"/>'),
    "animated link": svg('<a><set attributeName="href" to="javascript:alert(1)"/></a>'),
    "style sheet": svg("<style>@import url(http://example.org)</style>"),
    "style from elsewhere": svg('<rect style="fill: url(http://example.org/a)"/>'),
    "paint from elsewhere": svg('<rect fill="url(//example.org/a)"/>'),
    "escaped function": svg(r'<rect fill="u\72l(http://example.org)"/>'),
    "expression": svg('<rect fill="expression(alert(1))"/>'),
    "another namespace": svg(
        '<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>'
    ),
    "instruction": svg('<?xml-stylesheet href="http://example.org"?>'),
}


@pytest.mark.parametrize("case", SVG_ATTACKS)
def test_nothing_active_stays_in_a_figure(case):
    assert not ACTIVE.search(safe_svg(SVG_ATTACKS[case]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "<svg/>",
        f"<!DOCTYPE svg [<!ENTITY a 'b'>]>{svg('&a;')}",
        svg("<g>" * 500 + "</g>" * 500),
        svg("<g>"),
    ],
)
def test_what_is_no_figure_is_refused(text):
    with pytest.raises(ValueError, match="make it again"):
        safe_svg(text)


def test_a_figure_of_matplotlib_looks_as_before():
    drawn = svg(
        "<defs><style>*{stroke-linejoin: round}</style></defs>"
        '<g id="a" clip-path="url(#b)"><path d="M 0 0" style="fill: none; stroke: #1f77b4"/>'
        '<use xlink:href="#a" transform="translate(1 2) scale(-1)"/></g>',
        'viewBox="0 0 9 9"',
    )
    found = safe_svg(drawn)
    for piece in (
        'viewBox="0 0 9 9"',
        '<g id="a" clip-path="url(#b)">',
        '<path d="M 0 0" fill="none" stroke="#1f77b4">',
        '<use href="#a" transform="translate(1 2) scale(-1)">',
        'stroke-linejoin="round"',
    ):
        assert piece in found


HTML_ATTACKS = {
    "script": "<script>alert(1)</script>",
    "script cut": "<table><script>alert(1)",
    "style": "<style>p{background:url(http://example.org)}</style>",
    "handler": '<td onclick="alert(1)"></td>',
    "style attribute": '<td style="background:url(http://example.org)"/>',
    "image": '<img src="x" onerror="alert(1)"/>',
    "frame": '<iframe srcdoc="&lt;script>alert(1)&lt;/script>"></iframe>',
    "link": '<a href="javascript:alert(1)">x</a>',
    "link with blanks": '<a href=" java\nscript:alert(1)">x</a>',
    "link to data": '<a href="data:text/html,alert(1)">x</a>',
    "form": '<form action="http://example.org"><input onfocus="alert(1)"/></form>',
    "svg": '<svg onload="alert(1)"></svg>',
    "meta": '<meta http-equiv="refresh" content="0;http://example.org"/>',
    "base": '<base href="http://example.org"/>',
    "comment": "<!--><script>alert(1)</script>-->",
    "declaration": "<![CDATA[<script>alert(1)</script>]]>",
    "template": "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
}


@pytest.mark.parametrize("case", HTML_ATTACKS)
def test_nothing_active_stays_in_a_table(case):
    for text in (HTML_ATTACKS[case], f"<table><tr><td>{HTML_ATTACKS[case]}</td></tr></table>"):
        try:
            tags = re.findall(r"<[^>]*>", safe_html(text, "t"))
        except ValueError as error:
            assert "make it again" in str(error)
        else:
            assert not any(ACTIVE.search(tag) for tag in tags)


@pytest.mark.parametrize("text", ["<td " * 100_000, "<div>" * 100_000, "<td", "</div></div><div>"])
def test_html_that_is_not_well_formed_is_refused_at_once(text):
    with pytest.raises(ValueError, match="make it again"):
        safe_html(text, "t")


@pytest.mark.parametrize("safe", [partial(safe_html, name="t"), safe_svg])
def test_markup_of_megabytes_is_refused_before_it_is_read(safe, monkeypatch):
    text = '<svg xmlns="http://www.w3.org/2000/svg">' + "<g/>" * 300 + "</svg>"
    safe(text)
    monkeypatch.setattr(files, "LARGEST", 1_000)
    with pytest.raises(ValueError, match=r"cannot be shown .* more than 1,000 .*make it again"):
        safe(text)


def test_a_table_stays_as_it_is():
    table = (
        '<figure class="table wide" id="table-t"><figcaption>A &lt; B</figcaption>\n<table><thead>'
        '<tr><th scope="col">x <small>of y</small> z</th></tr></thead><tbody><tr>'
        '<td class="num" data-sort="1">1</td></tr></tbody></table></figure>'
    )
    assert safe_html(table, "t") == table


def test_a_table_takes_neither_places_nor_looks_of_the_page():
    text = (
        '<figure class="notice" id="verdicts"><div class="scroll banner tall" id="table-t">'
        '<div id="table-other" class="skip">x</div></div></figure>'
    )
    assert safe_html(text, "t") == (
        '<figure><div class="scroll tall" id="table-t"><div>x</div></div></figure>'
    )
