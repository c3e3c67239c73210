"""What a step made of tables or figures: one record each, which the page reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from benchmark.core.errors import RunError
from benchmark.core.files import write_json
from benchmark.core.paths import read_regular

Group = Literal["study", "paper", "sweep"]
FILE = "contents.json"  # in the folder of the tables, and in that of the figures


@dataclass(frozen=True)
class Artefact:
    """A table or figure, whose files have its name; or the reason why there is none.

    group      whether it is the study's own, a paper's, or that of a sweep
    caption    of a figure, with ``alt``, its description for those who cannot see it
    html       of a table: the element that a page shows
    measured   whether any number in it is ours
    """

    name: str
    title: str
    group: Group = "study"
    reason: str = ""
    rows: int = 0
    caption: str = ""
    alt: str = ""
    html: str = ""
    measured: bool = True

    @property
    def summary(self) -> str:
        """Return what was made, in a few words."""
        return f"nothing to show: {self.reason}" if self.reason else f"{self.rows} rows"


def write_artefacts(folder: Path, artefacts: Iterable[Artefact]) -> None:
    """Write the records into ``folder``, last of its files."""
    write_json(folder / FILE, [asdict(artefact) for artefact in artefacts])


def read_artefacts(folder: Path, command: str) -> list[Artefact]:
    """Return the records of ``folder``, which ``command`` writes."""
    return read_record(list[Artefact], folder / FILE, command)


def read_record(kind: Any, path: Path, command: str) -> Any:
    """Return the JSON file at ``path`` as a ``kind``.

    Raise RunError, naming the ``command`` that writes it, when it is missing or of another shape.
    """
    try:
        return TypeAdapter(kind).validate_json(read_regular(path))
    except FileNotFoundError:
        raise RunError(f"{path} does not exist: run '{command}'") from None
    except ValidationError as error:
        wrong = error.errors()[0]
        reason = f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}"
        raise RunError(f"{path} cannot be read ({reason}); run '{command}' again") from error
