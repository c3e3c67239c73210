"""``python -m benchmark data``: list datasets, prepare one on the disk, check one."""

import re
import string
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmark.cli import MAX_PROCESSES, MAX_SIDE, app, echo

if TYPE_CHECKING:
    from benchmark.core.registry import Entry

group = typer.Typer(no_args_is_help=True, help="List, prepare and check datasets.")
app.add_typer(group, name="data")

Name = Annotated[str, typer.Argument(metavar="NAME", help="registered name; 'data list' shows all")]
Root = Annotated[
    Path | None,
    typer.Option(help="directory of the dataset; default for published ones: $BENCHMARK_DATA/NAME"),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="KEY=VALUE", help="another parameter of the dataset; repeatable"
    ),
]
AllowCounts = Annotated[
    bool,
    typer.Option(
        "--allow-counts", help="accept other numbers of images and classes than the published ones"
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="processes that decode images; default: the CPU cores there are",
        min=1,
        max=MAX_PROCESSES,
    ),
]


@group.command("list")
def list_datasets() -> None:
    """Print the datasets: what they are, how many images, from which files, and where these are.

    Example: python -m benchmark data list
    """
    from benchmark.datasets import DATASETS

    echo("\n\n".join(_description(entry) for entry in DATASETS))


@group.command()
def prepare(
    name: Name,
    root: Root = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="archive, file or unpacked directory (a path, or an http, https or file address); "
            "repeatable. Leave it out when --root holds the dataset already"
        ),
    ] = None,
    md5: Annotated[
        list[str] | None, typer.Option(metavar="[FILE=]HEX", help="digest of a source; repeatable")
    ] = None,
    sha256: Annotated[
        list[str] | None, typer.Option(metavar="[FILE=]HEX", help="digest of a source; repeatable")
    ] = None,
    link: Annotated[
        bool, typer.Option("--link", help="link the content of an unpacked directory, copy nothing")
    ] = False,
    pack: Annotated[
        int | None,
        typer.Option(
            metavar="SIDE",
            help="also write a packed copy of the images, shorter side SIDE",
            min=1,
            max=MAX_SIDE,
        ),
    ] = None,
    pixels: Annotated[
        bool,
        typer.Option(
            "--pixels", help="pack plain pixels: five times the bytes, but faster to read"
        ),
    ] = False,
    param: Params = None,
    workers: Workers = None,
    allow_counts: AllowCounts = False,
) -> None:
    """Fetch, unpack and index a dataset; started again after an interruption, it continues.

    Example: python -m benchmark data prepare cub --source CUB_200_2011.tgz --pack 256
    """
    from benchmark.core.environment import available_cores
    from benchmark.datasets.prepare.install import parse_source
    from benchmark.datasets.prepare.prepare import prepare as prepare_dataset

    sources = [parse_source(text) for text in source or []]
    files = [one.file for one in sources]
    digests: dict[str, dict[str, str]] = {}
    for kind, length, values in (("md5", 32, md5), ("sha256", 64, sha256)):
        for value in values or []:
            file, digest = _digest(kind, length, value, files)
            digests.setdefault(file, {})[kind] = digest
    prepare_dataset(
        name,
        sources,
        params=_params(name, root, param),
        digests=digests,
        link=link,
        side=pack,
        compressed=not pixels,
        workers=workers or available_cores(),
        allow_counts=allow_counts,
        say=echo,
    )


@group.command()
def check(
    name: Name,
    root: Root = None,
    param: Params = None,
    images: Annotated[
        bool, typer.Option("--images", help="decode every image and list the broken ones")
    ] = False,
    workers: Workers = None,
    allow_counts: AllowCounts = False,
) -> None:
    """Print found and published counts per split; the exit status is 0 only if all is right.

    Example: python -m benchmark data check cub --root data/cub --images
    """
    from benchmark.core.environment import available_cores
    from benchmark.datasets import published_counts
    from benchmark.datasets.counts import count_differences, counts_table
    from benchmark.datasets.prepare.prepare import (
        broken_images,
        load_with_any_counts,
        recorded_sources,
    )

    params = _params(name, root, param)
    sources = recorded_sources(Path(str(params["root"]))) if "root" in params else {}
    dataset = load_with_any_counts(name, params)
    expected = published_counts(name, params)
    echo(f"{name}  fingerprint {dataset.fingerprint}")
    for file, digest in sources.items():
        echo(f"prepared from {file}{'  sha256 ' * bool(digest)}{digest}")
    echo(counts_table(dataset.counts, expected))
    wrong = [] if allow_counts else count_differences(dataset.counts, expected)
    if wrong:
        echo(f"not the published counts: {'; '.join(map(str, wrong))}; --allow-counts accepts them")
    bad: list[str] = []
    if images:
        bad, total = broken_images(dataset, workers or available_cores())
        for line in bad:
            echo(line)
        echo(f"{len(bad):,} broken of {total:,} images")
    if wrong or bad:
        raise typer.Exit(1)


def _digest(kind: str, length: int, value: str, files: Sequence[str]) -> tuple[str, str]:
    """Return (file, digest) of a text ``HEX`` (of the only source) or ``FILE=HEX``."""
    file, equals, digest = value.rpartition("=")
    if not equals and len(files) == 1:
        file = files[0]
    if file not in files:
        sources = ", ".join(files) or "none given"
        raise typer.BadParameter(f"'{value}' belongs to none of the sources ({sources}): FILE=HEX")
    if len(digest) != length or not set(digest) <= set(string.hexdigits):
        raise typer.BadParameter(f"'{digest}' is not an {kind} of {length} hexadecimal digits")
    return file, digest


def _params(name: str, root: Path | None, pairs: list[str] | None) -> dict[str, object]:
    """Return root and KEY=VALUE pairs as parameters: text where they are text, else YAML."""
    import yaml

    from benchmark.core.options import schema_of
    from benchmark.datasets import DATASETS
    from benchmark.datasets.io.roots import with_root

    loader = DATASETS[name].target
    properties = schema_of(loader.Config)["properties"]
    params: dict[str, object] = {}
    for pair in [*([] if root is None else [f"root={root}"]), *(pairs or [])]:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(
                f"'{pair}' is not KEY=VALUE; for example: --param categories=true"
            )
        if key in params:
            raise typer.BadParameter(f"'{key}' is given twice; give it once")
        is_text = "string" in properties.get(key, {}).get("type", ())
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError) as error:
            if not is_text:
                words = f"'{text}' for '{key}' is not a YAML value: {error}"
                raise typer.BadParameter(words) from error
            value = text
        # a folder may be called null
        params[key] = text if is_text and (value is not None or key == "root") else value
    return with_root(name, loader, params)


def _description(entry: "Entry") -> str:
    """Return a paragraph on a dataset: name, description, published counts, files, pages."""
    from benchmark.datasets.prepare.prepare import options_of

    loader = entry.target
    words = (loader.__doc__ or "").partition("\n")[0]
    lines = [f"{entry.name}  {entry.display}. {words}".rstrip()]
    for split, counts in loader.expected.items():
        lines.append(f"{split}: " + ", ".join(f"{n:,} {kind}" for kind, n in counts.items()))
    if loader.archives:
        lines.append("files, all needed: " + ", ".join(archive.file for archive in loader.archives))
        if loader.other_archives:
            lines.append("or: " + ", ".join(archive.file for archive in loader.other_archives))
        pages = f"{sys.modules[loader.__module__].__doc__} {loader.__doc__}"
        lines.append("from: " + " and ".join(re.findall(r"https?://[^\s,;)]+[^\s,;).]", pages)))
    elif "root" in options_of(loader):
        lines.append("files: your own, below --root")
    else:
        lines.append("files: none; it is drawn when needed")
    return textwrap.indent("\n".join(lines), "    ").strip()
