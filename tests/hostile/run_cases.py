"""Hostile records and tables: what a run folder from elsewhere or a killed writer may hold."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmark.core.records import METRICS, PROVENANCE, RESULT, SPEC
from hostile.cases import Case, cases
from hostile.run_targets import neighbours_seeds, record_seeds, table_seeds


def edited(file: str, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a good record of that name after ``change`` has worked on it."""
    data = json.loads(record_seeds(file)()[file])
    change(data)
    return json.dumps(data).encode()


def with_value(file: str, *keys: str | int, value: Any) -> bytes:
    """Return a good record with one value replaced."""

    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return edited(file, change)


SHAPES = {
    "nothing": b"",
    "cut": b'{"run_id": "x"',
    "a list": b"[]",
    "a number": b"3",
    "null": b"null",
    "text": b'"x"',
    "an empty mapping": b"{}",
    "no utf-8": b"\xff\xfe{}",
    "deep nesting": b"[" * 100_000,
    "a number of 5,000 digits": b'{"schema": ' + b"9" * 5000 + b"}",
    "a key twice": b'{"schema": 1, "schema": 2}',
}
SCORES = ("last", "test", "recall_at_1")
ODD_SCORES = {
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "text": "high",
    "7": 7,
    "-0.1": -0.1,
    "true": True,
    "null": None,
    "a list": [0.5],
}
ODD_DIGESTS = ("/tmp/evil", "../../evil", "..", "", "0123456789abcde", "0123456789ABCDEF", 7, None)

# A damaged record is the failure of its run; the reader checks that the other run stays well.
CASES: list[Case] = [
    case for file in (SPEC, RESULT, PROVENANCE, METRICS) for case in cases(f"record {file}", SHAPES)
]
CASES += [
    *cases(
        f"record {RESULT}",
        {
            **{
                f"a score of {name}": with_value(RESULT, "metrics", *SCORES, value=value)
                for name, value in ODD_SCORES.items()
            },
            **{
                f"the digest {digest!r}": with_value(RESULT, "spec_digest", value=digest)
                for digest in ODD_DIGESTS
            },
            "a status of its own": with_value(RESULT, "status", value="perfect"),
            "no metrics": with_value(RESULT, "metrics", value=None),
            "a curve of text": with_value(RESULT, "curve", value=["x"]),
            "an epoch of text": with_value(RESULT, "curve", 0, "epoch", value="1"),
            "a loss of NaN": with_value(RESULT, "curve", 0, "loss", value=float("nan")),
            "another schema": with_value(RESULT, "schema", value=99),
            "the run of somebody else": with_value(RESULT, "run_id", value="../../x"),
            "a metric with a path": with_value(
                RESULT, "metrics", "last", "test", value={"../../x": 0.5}
            ),
            "a split with a script": with_value(
                RESULT, "metrics", "last", value={"<script>": {"recall_at_1": 0.5}}
            ),
            "10^18 epochs": with_value(RESULT, "epochs", value=10**18),
            "10^30 epochs": with_value(RESULT, "epochs", value=10**30),
        },
    ),
    *cases(
        f"record {PROVENANCE}",
        {
            "seconds of text": with_value(PROVENANCE, "timing", "total_seconds", value="long"),
            "packages of lists": with_value(PROVENANCE, "packages", value=[1]),
            "memory of NaN": with_value(PROVENANCE, "memory", "peak_rss_mb", value=float("nan")),
            "a platform of 10^6 letters": with_value(PROVENANCE, "platform", value="x" * 10**6),
            "no hardware": edited(PROVENANCE, lambda data: data.pop("hardware")),
        },
    ),
    *cases(
        f"parse {SPEC}",
        {
            "no loss": edited(SPEC, lambda data: data.pop("loss")),
            "a run id that leaves": with_value(SPEC, "run_id", value="../../x"),
            "an absolute run id": with_value(SPEC, "run_id", value="/etc/x"),
            "another schema": with_value(SPEC, "schema", value=2),
            "a batch size of true": with_value(SPEC, "batch_size", value=True),
            "a negative seed": with_value(SPEC, "seed", value=-1),
            "a seed of text": with_value(SPEC, "seed", value="0"),
            "a label of two lines": with_value(SPEC, "setting", value="a\nb"),
            "a recipe of null": with_value(SPEC, "recipe", value=None),
        },
        "x.json",
    ),
]


def table(file: str, change: Callable[[list[str]], object]) -> bytes:
    """Return a good table of that name after ``change`` has worked on its lines."""
    lines = table_seeds(file)()[file].decode().splitlines()
    change(lines)
    return ("\n".join(lines) + "\n").encode()


TABLES = {
    "nothing": b"",
    "only a header": lambda lines: lines.__delitem__(slice(1, None)),
    "a row twice": lambda lines: lines.append(lines[1]),
    "a row that is cut": lambda lines: lines.append(lines[1][:5]),
    "a longer row": lambda lines: lines.append(lines[1] + ",1,2"),
    "longer rows": lambda lines: lines.__setitem__(
        slice(1, None), [line + ",1" for line in lines[1:]]
    ),
    "a column twice": lambda lines: lines.__setitem__(
        0, lines[0].replace("run_id", "run_id,run_id", 1)
    ),
    "no run_id": lambda lines: lines.__setitem__(0, lines[0].replace("run_id", "id", 1)),
    "a formula": lambda lines: lines.__setitem__(1, "=cmd()" + lines[1]),
    "an open quote": lambda lines: lines.__setitem__(1, '"' + lines[1]),
    "a byte-order mark": lambda lines: lines.__setitem__(0, "\ufeff" + lines[0]),
    "semicolons": lambda lines: lines.__setitem__(
        slice(None), [line.replace(",", ";") for line in lines]
    ),
}
for _file in ("runs.csv", "scores.csv"):
    CASES += cases(
        f"table {_file}",
        {
            name: change if isinstance(change, bytes) else table(_file, change)
            for name, change in TABLES.items()
        },
    )
    CASES += cases(
        f"table {_file}",
        {
            "zeros": bytes(5000),
            "another encoding": table_seeds(_file)()[_file].decode().encode("utf-16"),
        },
        _file,
    )
CASES += cases(
    "table runs.csv",
    {
        "deep nesting in a setting": table(
            "runs.csv",
            lambda lines: lines.__setitem__(1, lines[1].replace("glyphs_smoke", "[" * 50_000)),
        ),
        "an unknown status": table(
            "runs.csv", lambda lines: lines.__setitem__(1, lines[1].replace(",ok,", ",fine,"))
        ),
        "a seed of text": table(
            "runs.csv", lambda lines: lines.__setitem__(1, lines[1].replace(",0,ok", ",x,ok"))
        ),
    },
)

CHECKPOINTS = {
    "nothing": b"",
    "text": b"hello",
    "a pickle that runs a program": b"cos\nsystem\n(S'touch owned'\ntR.",
    "a zip of nothing": b"PK\x05\x06" + bytes(18),
    "a cut zip": b"PK\x03\x04" + bytes(200),
    "an old tar of torch": b"./" + bytes(510),
}
CASES += cases("checkpoint", CHECKPOINTS)
CASES += cases("weights", CHECKPOINTS, "not a state dict")


def arrays(**changes: Any) -> bytes:
    """Return recorded neighbours with some arrays replaced, or left out by None."""
    with np.load(io.BytesIO(neighbours_seeds()["npz"])) as good:
        content = {name: good[name] for name in good.files} | changes
    stream = io.BytesIO()
    np.savez(stream, **{name: value for name, value in content.items() if value is not None})
    return stream.getvalue()


def huge(name: str) -> bytes:
    """Return neighbours one of whose arrays announces 10^15 bytes."""
    header = str({"descr": "|u1", "fortran_order": False, "shape": (10**15,)}).encode()
    stream = io.BytesIO(arrays(**{name: None}))
    with zipfile.ZipFile(stream, "a") as archive:
        length = struct.pack("<H", len(header) + 1)
        archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + length + header + b"\n")
    return stream.getvalue()


CASES += cases(
    "neighbours",
    {
        "nothing": b"",
        "text": b"hello",
        "a zip of nothing": b"PK\x05\x06" + bytes(18),
        "cut": neighbours_seeds()["npz"][:-300],
        "no matches": arrays(matches=None),
        "objects": arrays(query_names=np.array([{}] * 12, dtype=object)),
        "records": arrays(queries=np.zeros(12, dtype=[("a", "i4")])),
        "10^15 queries": huge("queries"),
        "pictures of 10^15 bytes": huge("query_images"),
        "ranks of NaN": arrays(positive_ranks=np.full(90, np.nan)),
        "ranks of zero": arrays(positive_ranks=np.zeros(200, np.int64)),
        "too few ranks": arrays(positive_ranks=np.arange(1, 3)),
        "negative positives": arrays(positives=np.full(12, -1)),
        "another number of names": arrays(query_names=np.array(["a"])),
        "another number of pictures": arrays(neighbour_images=np.zeros((3, 64, 64, 3), np.uint8)),
        "pictures without colours": arrays(query_images=np.zeros((12, 64, 64), np.uint8)),
        "pictures of real numbers": arrays(query_images=np.zeros((12, 64, 64, 3))),
        "no queries": arrays(queries=np.zeros(0, np.int64)),
        "matches of text": arrays(matches=np.full((12, 6), "x")),
    },
    "neighbours.npz cannot be read",
)

CASES += cases("study provenance", SHAPES, "x.json cannot be read")

# What steps leave for later ones, and what people freeze or hand over.
LOOKS = {
    **{name: json.dumps({"look": look, "begun": []}) for name, look in (("text", "2"), ("0", 0))},
    "a look of -1": '{"look": -1, "begun": []}',
    "true for a look": '{"look": true, "begun": []}',
    "a look of 10^18": json.dumps({"look": 10**18, "begun": []}),
    "a look beyond the plan": '{"look": 4, "begun": ["a", "b", "c"]}',
    "fewer days than looks": '{"look": 2, "begun": []}',
    "days of numbers": '{"look": 2, "begun": [1]}',
    "another key": '{"look": 1, "begun": [], "x": 1}',
}
CASES += cases("parse looks.json", SHAPES | {name: LOOKS[name].encode() for name in LOOKS}, "looks")
for _target, _words in (
    ("analysis", ""),
    ("gap summary", ""),
    ("gallery", ""),
    ("contents.json", ""),
    ("printed cells", ""),
    ("parse selection.json", "selection.json cannot be read"),
    ("parse registration.json", "registration.json"),
):
    CASES += cases(_target, SHAPES, _words)
CASES += cases(
    "frozen runs",
    {"zeros": bytes(5000), "no text": bytes(range(256)), "nothing": b"", "a header": b"a,b\n"}
    | {"a long field": b"dataset," + b"a" * 200_000, "an open quote": b'"dataset'},
    "frozen.csv",
)
CASES += cases(
    "arrays", {"nothing": b"", "text": b"hello", "a zip of nothing": b"PK\x05\x06" + bytes(18)}
)
