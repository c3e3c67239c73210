"""``python -m benchmark data``: list datasets, prepare one on the disk, check one."""

import dataclasses
import json
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from typer import Argument, BadParameter, Exit, Option, Typer

from benchmark.cli import MAX_PROCESSES, StudyName, app, echo, folder_to_write, load, parse_pairs
from benchmark.core.environment import available_cores
from benchmark.core.errors import DataError
from benchmark.core.files import alone, write_json

if TYPE_CHECKING:
    from benchmark.core.registry import RegistryEntry
    from benchmark.datasets.base import Archive, Dataset

group = Typer(no_args_is_help=True, help="List, prepare and check datasets.")
app.add_typer(group, name="data")

Name = Annotated[str, Argument(metavar="NAME", help="registered name; 'data list' shows all")]
ROOT_HELP = "directory of the dataset; default for published ones: $BENCHMARK_DATA/NAME"
Root = Annotated[Path | None, Option(help=ROOT_HELP, callback=folder_to_write)]
PARAM_HELP = "another parameter of it; repeatable"
Params = Annotated[list[str] | None, Option("--param", metavar="KEY=VALUE", help=PARAM_HELP)]
DIGEST_HELP = "digest of a source; repeatable"
Digests = Annotated[list[str] | None, Option(metavar="[FILE=]HEX", help=DIGEST_HELP)]
AllowCounts = Annotated[bool, Option("--allow-counts", help="accept any other counts")]
Workers = Annotated[int | None, Option(help="threads; default: all", min=1, max=MAX_PROCESSES)]
RECORD = "prepared.json"


@app.command()
def weights(
    study: StudyName, listed: bool = Option(False, "--list", help="list them, fetch nothing")
) -> None:
    """Fetch the pretrained weights of a study.

    Into the caches of HF_HOME and TORCH_HOME, for machines without a network.

    Example: python -m benchmark weights roadmap
    """
    from benchmark.runs.needs import weights_of

    models = [block.recipe.model for block in load(study).blocks]
    files = {name: (model, there) for model in models for name, there in weights_of(model).items()}
    for name, (model, there) in files.items():
        state = "there" if there else "missing"
        if not (there or listed or model.checkpoint):
            from benchmark.models.backbone import create_backbone

            create_backbone(model)
            state = "fetched"
        echo(f"{state}: {name}")


@group.command("list")
def list_datasets() -> None:
    """List the datasets, their files and the pages that offer them.

    Example: python -m benchmark data list
    """
    from benchmark.datasets import DATASETS
    from benchmark.datasets.base import counts_text

    paragraphs = []
    for entry in DATASETS:
        loader = entry.target
        summary = (loader.__doc__ or "").partition("\n")[0]
        lines = [f"{entry.name}  {entry.display}. {summary}".rstrip()]
        if loader.archives:
            for split, counts in loader.expected.items():
                kinds = ", ".join(f"{number:,} {kind}" for kind, number in counts.items())
                lines.append(f"{split}: {kinds}")
            if loader.distributed:
                lines.append(f"files as distributed: {counts_text(loader.distributed)}")
            lines.append(f"files, all needed: {_names(loader.archives)}")
            if loader.other_archives:
                lines.append(f"or: {_names(loader.other_archives)}")
            lines.append(f"from: {_pages(entry)}")
        elif "root" in (options := {field.name for field in dataclasses.fields(loader.Config)}):
            lines.append("files: your own, below --root")
        elif "file" in options:
            lines.append("files: your own, --param file=FILE")
        else:
            lines.append("files: none; it is drawn when needed")
        paragraphs.append(textwrap.indent("\n".join(lines), "    ").strip())
    echo("\n\n".join(paragraphs))


@group.command()
def prepare(
    name: Name,
    root: Root = None,
    source: list[str] | None = Option(
        None,
        help="archive, file or unpacked directory (a path, or an http, https or file address); "
        "repeatable. Leave it out when the dataset is below --root already",
    ),
    md5: Digests = None,
    sha256: Digests = None,
    link: bool = Option(
        False, "--link", help="link the content of an unpacked directory, copy nothing"
    ),
    pack: int | None = Option(
        None, metavar="SIDE", help="also pack images, shorter side SIDE", min=1, max=10_000
    ),
    pixels: bool = Option(
        False, "--pixels", help="pack plain pixels: five times the bytes, faster"
    ),
    param: Params = None,
    workers: Workers = None,
    allow_counts: AllowCounts = False,
) -> None:
    """Fetch, unpack and index a dataset.

    Example: python -m benchmark data prepare cub --source CUB_200_2011.tgz --pack 256
    """
    from benchmark.datasets import DATASETS, loader_of
    from benchmark.datasets.index import IndexedLoader
    from benchmark.datasets.io.packed import pack as write_packed
    from benchmark.datasets.io.sources import Installer, parse_source

    params = params_of(name, root, param)
    loader = loader_of(name, params)
    if not loader.archives:
        raise BadParameter(f"'{name}' needs no preparing; 'data check' looks at its images")
    if pack and not hasattr(loader.config, "packed"):
        raise BadParameter(f"'{name}' cannot be read from a packed copy; leave out --pack")
    sources = {path.name: (path, url) for path, url in map(parse_source, source or ())}
    if len(sources) < len(source or ()):
        raise BadParameter("two sources have the same name; rename one")
    digests: dict[str, dict[str, str]] = {file: {} for file in sources}
    for algorithm, values in (("md5", md5), ("sha256", sha256)):
        for value in values or ():
            file, _, digest = value.rpartition("=")
            file = file or ", ".join(sources)  # the only one
            if file not in sources:
                raise BadParameter(f"'{value}' is not FILE=HEX with one of: {file}")
            digests[file][algorithm] = digest
    folder = Path(params["root"])
    record = _record(params["root"])
    if not (sources or folder.is_dir()):
        raise DataError(
            f"fetch {_names(loader.archives)} from: {_pages(DATASETS[name])}; then name each "
            "with --source"
        )
    with alone(folder / ".prepare.lock", f"another 'data prepare' is working in {folder}"):
        installer = Installer(name, (*loader.archives, *loader.other_archives), folder)
        for file, (path, url) in sources.items():
            if file in record["sources"] and installer.holds(file):
                echo(f"{file}: its content is in {folder} already")
                continue
            record["sources"][file] = installer.install(path, url, digests[file], link)
            write_json(folder / RECORD, record)
            echo(f"{file}: installed")
        dataset, wrong = _load(name, params, allow_counts)
        if wrong:
            raise DataError(f"{folder} contains {wrong}")
        if pack and isinstance(loader, IndexedLoader):
            paths = loader.table()["path"].unique().tolist()
            workers = workers or available_cores()
            echo(f"packed: {write_packed(folder, pack, paths, workers, compressed=not pixels)}")
        record |= {"schema": 1, "dataset": name, "counts": dataset.counts}
        write_json(folder / RECORD, record | {"fingerprint": dataset.fingerprint})
        echo(f"prepared: {folder / RECORD}; {folder / 'downloads'} is no longer needed")


@group.command()
def check(
    name: Name,
    root: Root = None,
    param: Params = None,
    images: bool = Option(False, "--images", help="decode every image and list the broken ones"),
    workers: Workers = None,
    allow_counts: AllowCounts = False,
) -> None:
    """Compare counts with the published ones.

    The exit status is 0 only if all is right.

    Example: python -m benchmark data check cub --root data/cub --images
    """
    params = params_of(name, root, param)
    dataset, wrong = _load(name, params, allow_counts)
    if wrong:
        echo(wrong)
    for file, facts in _record(params.get("root"))["sources"].items():
        digest = f"  sha256 {facts['sha256']}" if "sha256" in facts else ""
        echo(f"prepared from {file}{digest}")
    broken = 0
    if images:
        broken = _decode(dataset, workers or available_cores())
    if wrong or broken:
        raise Exit(1)


def _decode(dataset: "Dataset", workers: int) -> int:
    """Decode every image of a dataset; print the broken images, and return their number."""
    from tqdm import tqdm

    from benchmark.core.words import one_a_line
    from benchmark.datasets.io.images import DIM_WORDS, Opener
    from benchmark.datasets.io.packed import ordered_map

    images: dict[str, Any] = {}  # by path: an image of two splits is decoded once
    for split in dataset.image_sets():
        for index, path in enumerate(split.names):
            images.setdefault(path, (split, index))

    def decode(image: Any) -> tuple[str, bool]:
        """Return the error of an image ("" for none), and whether it uses few of its bits."""
        split, index = image
        try:
            split.image(index)
            return "", isinstance(split.opener, Opener) and split.opener.is_dim(index)
        except DataError as error:
            return str(error), False

    decoded = ordered_map(decode, list(images.values()), workers)
    outcomes = list(tqdm(decoded, "decoding", len(images), leave=False, disable=None))
    errors = [error for error, _ in outcomes if error]
    dim = [path for path, (_, is_dim) in zip(images, outcomes, strict=True) if is_dim]
    if dim:
        echo(f"warning: {len(dim):,} {DIM_WORDS}{one_a_line(dim)}")
    echo("\n".join([*errors, f"{len(errors):,} broken of {len(images):,} images"]))
    return len(errors)


def _names(archives: "Iterable[Archive]") -> str:
    return ", ".join(archive.file for archive in archives)


def _pages(dataset: "RegistryEntry") -> str:
    """Return the official pages of a dataset, or that it has no page."""
    return " and ".join(dataset.facts["pages"]) or "no public page (docs/datasets.md)"


def _record(root: str | None) -> dict[str, Any]:
    """Return the content of prepared.json, which has only the sources until all is prepared."""
    if root is None or not (path := Path(root, RECORD)).is_file():
        return {"sources": {}}
    return json.loads(path.read_text())


def _load(name: str, params: dict[str, Any], allow_counts: bool) -> "tuple[Dataset, str]":
    """Return a dataset, and an error if its counts are not the published ones ("" for none)."""
    import pandas as pd

    from benchmark.datasets import loader_of
    from benchmark.datasets.base import count_differences

    loader = loader_of(name, params)
    if hasattr(loader.config, "allow_counts"):
        loader = loader_of(name, {**params, "allow_counts": True})
    dataset = loader.load()
    expected = loader.expected_counts(dataset.counts)
    rows = []  # "-": no published number, or no difference
    for split in dict.fromkeys([*dataset.counts, *expected]):
        counted = dataset.counts.get(split, {})
        published = expected.get(split, {})
        for kind in dict.fromkeys([*counted, *published]):
            number = counted.get(kind, 0)
            gap = number - published.get(kind, number)
            wanted = f"{published[kind]:,}" if kind in published else "-"
            difference = f"{gap:+,}" if gap else "-"
            rows.append((split, kind, f"{number:,}", wanted, difference))
    table = pd.DataFrame(rows, columns=["split", "what", "found", "expected", "difference"])
    echo(f"{name}  fingerprint {dataset.fingerprint}\n{table.to_string(index=False)}")
    if which := loader.which_counts(dataset.counts):
        echo(f"{name}: {which}")
    differences = [difference for _, difference in count_differences(dataset.counts, expected)]
    wrong = [*differences, *loader.other_names]
    if allow_counts or not wrong:
        return dataset, ""
    if differences:
        wrong += [each.also_known for each in (loader, *loader.others().values())]
    listed = "; ".join(filter(None, wrong))
    kind = "counts" if differences else "names"
    return dataset, f"not the published {kind}: {listed}; --allow-counts accepts them"


def params_of(name: str, root: Path | None, pairs: list[str] | None) -> dict[str, Any]:
    """Return root and KEY=VALUE pairs as parameters."""
    from benchmark.core.options import hints_of
    from benchmark.datasets import DATASETS, with_root

    hints = hints_of(DATASETS[name].target.Config).items()
    texts = [key for key, hint in hints if str in (hint, *get_args(hint))]
    given = {} if root is None else {"root": str(root)}
    return with_root(name, parse_pairs("--param", pairs or (), texts) | given)
