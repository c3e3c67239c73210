"""What people need to know about a dataset before they fetch it."""

import re
import sys
import textwrap

from benchmark.core.registry import Entry
from benchmark.datasets.prepare.prepare import options_of

ADDRESS = re.compile(r"https?://[^\s,;)]+[^\s,;).]")


def describe(entry: Entry) -> str:
    """Return a paragraph on a dataset: name, description, published counts, files, pages."""
    loader = entry.target
    words = (loader.__doc__ or "").partition("\n")[0]
    lines = [f"{entry.name}  {entry.display}. {words}".rstrip()]
    for split, counts in loader.expected.items():
        lines.append(f"{split}: " + ", ".join(f"{n:,} {kind}" for kind, n in counts.items()))
    if loader.archives:
        lines.append("files, all needed: " + ", ".join(archive.file for archive in loader.archives))
        if loader.other_archives:
            lines.append("or: " + ", ".join(archive.file for archive in loader.other_archives))
        pages = ADDRESS.findall(f"{sys.modules[loader.__module__].__doc__} {loader.__doc__}")
        lines.append("from: " + " and ".join(pages))
    elif "root" in options_of(loader):
        lines.append("files: your own, below --root")
    else:
        lines.append("files: none; it is drawn when needed")
    return textwrap.indent("\n".join(lines), "    ").strip()
