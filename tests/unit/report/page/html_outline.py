"""What a page of HTML is made of, as tests ask for it."""

from __future__ import annotations

import html.parser
import re

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(html.parser.HTMLParser):
    """Collects ids, links, headings and tags that were not closed in order."""

    def __init__(self, page: str):
        super().__init__()
        self.ids = []
        self.links = []
        self.outside = []
        self.headings = []
        self.open = []
        self.torn = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        self.outside += [found[key] for key in ("src", "srcset", "data") if key in found]
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.torn.append(tag)
