"""``score`` of files that differ in format, types, separators, roles and number.

What a file means is known here before it is written. The answer is the number of a brute force
over that meaning, or an error: never another number, and never another exception.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from typer.testing import CliRunner

from benchmark.__main__ import app
from benchmark.core.errors import BenchmarkError

SEEDS = range(9)  # of 12 cases each: some 600 files in all tests here
LABELS = {
    "numbers": lambda kind: kind - 3,
    "large": lambda kind: 2**53 + kind,
    "huge": lambda kind: 10**20 + kind,
    "zeros": lambda kind: "0" * (kind % 3) + "17"[kind // 3],
    "padded": lambda kind: f"{kind:02d}",
    "words": lambda kind: ["red", "Red", "é", "a b", "#1", "true"][kind],
    "quoted": lambda kind: ["a, b", "a; b", "a;b", "a\tb", 'the "a"', "1,2"][kind],
}


@dataclass
class World:
    """Rows, what is known of each, and the numbers of those that search and are searched."""

    rows: np.ndarray
    labels: list
    cameras: np.ndarray
    query: np.ndarray
    gallery: np.ndarray


def made_world(rng, of_label):
    count = int(rng.integers(12, 30))
    kinds = rng.integers(0, 6, count)
    centres = rng.standard_normal((6, 5))
    rows = (centres[kinds] + rng.standard_normal((count, 5))).astype(np.float32)
    order = rng.permutation(count)
    size = int(rng.integers(3, count - 3))
    labels = [of_label(kind) for kind in kinds.tolist()]
    return World(rows, labels, rng.integers(0, 3, count), order[:size], order[size:])


def brute_force(world, query, gallery, *, itself=False, cameras=False):
    """Return R@1 and mAP, one query after the other; None if no query has a positive."""
    unit = world.rows.astype(float)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    hits = []
    precisions = []
    for number in query:
        ranked = sorted(gallery, key=lambda item: -float(unit[number] @ unit[item]))
        found = []
        for item in ranked:
            same = world.labels[item] == world.labels[number]
            if (itself and item == number) or (
                cameras and same and world.cameras[item] == world.cameras[number]
            ):
                continue
            found.append(same)
        if any(found):
            places = [place for place, same in enumerate(found, start=1) if same]
            precisions.append(np.mean([(n + 1) / place for n, place in enumerate(places)]))
            hits.append(found[0])
    return (np.mean(hits), np.mean(precisions)) if hits else None


def expected(world, with_roles, with_cameras):
    every = np.arange(len(world.rows))
    found = {"others": brute_force(world, every, every, itself=True)}
    if with_roles:
        found["gallery"] = brute_force(world, world.query, world.gallery)
    if with_cameras:
        found["others_other_camera"] = brute_force(world, every, every, itself=True, cameras=True)
    return {protocol: numbers for protocol, numbers in found.items() if numbers}


def as_mask(numbers, count):
    return np.isin(np.arange(count), numbers)


ROLES = {
    "mask": as_mask,
    "bytes": lambda numbers, count: as_mask(numbers, count).astype(np.uint8),
    "ones": lambda numbers, count: as_mask(numbers, count).astype(int),
    "numbers": lambda numbers, count: numbers,
}
TABLE_ROLES = {
    "ones": lambda numbers, count: as_mask(numbers, count).astype(int).tolist(),
    "True": lambda numbers, count: [str(each) for each in as_mask(numbers, count)],
    "TRUE": lambda numbers, count: [str(each).upper() for each in as_mask(numbers, count)],
    "true": lambda numbers, count: [str(each).lower() for each in as_mask(numbers, count)],
}
WRONG_ROLES = {
    "beyond": lambda numbers, count: np.append(numbers, count),
    "negative": lambda numbers, count: np.append(numbers, -1),
    "twice": lambda numbers, count: np.append(numbers, numbers[0]),
    "short": lambda numbers, count: as_mask(numbers, count)[:-1],
    "floats": lambda numbers, count: as_mask(numbers, count).astype(float),
    "column": lambda numbers, count: as_mask(numbers, count)[:, None],
    "none": lambda numbers, count: np.zeros(count, bool),
    "yes": lambda numbers, count: np.where(as_mask(numbers, count), "yes", "no"),
}


def pick(rng, values):
    return list(values)[int(rng.integers(len(values)))]


def quoted(cell, separator, rng):
    text = str(cell)
    if any(mark in text for mark in ',;\t"') or rng.random() < 0.1:
        return '"' + text.replace('"', '""') + '"'
    return text + " " * int(rng.integers(0, 2))


def write_table(path, columns, rng, separator):
    end = pick(rng, ["\n", "\r\n"])
    lines = [separator.join(f" {name}" for name in columns)]
    for cells in zip(*columns.values(), strict=True):
        lines.append(separator.join(quoted(cell, separator, rng) for cell in cells))
    text = end.join(lines) + pick(rng, ["", end, end + end])
    path.write_text(text, encoding=pick(rng, ["utf-8", "utf-8-sig"]), newline="")


def write_arrays(path, arrays):
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".safetensors":
        save_file({name: np.ascontiguousarray(each) for name, each in arrays.items()}, path)
    else:
        plain = {
            name: each.tolist() if each.dtype.kind in "UO" else torch.from_numpy(each.copy())
            for name, each in arrays.items()
        }
        torch.save(plain, path)


def label_array(labels, rng):
    """Return labels as numpy keeps them, in one of the types that keep them."""
    if isinstance(labels[0], str):
        return np.array(labels)
    if max(labels) >= 2**63:
        return None
    kinds = [np.int64]
    if min(labels) >= 0:
        kinds.append(np.uint64)
    if max(labels) < 100:
        kinds += [np.int8, np.float32]
    return np.array(labels).astype(pick(rng, kinds))


def write_case(folder, world, rng, with_roles, with_cameras, role=None):
    """Write one file or two of all rows; return the words of the command line."""
    count = len(world.rows)
    labels = label_array(world.labels, rng)
    as_table = labels is None or rng.random() < 0.6
    said = {}
    if with_cameras:
        said["cameras"] = world.cameras
    formats = ROLES
    if as_table:
        formats = TABLE_ROLES
        said["labels"] = world.labels
    else:
        said["labels"] = labels
    if with_roles:
        change = role or pick(rng, list(formats.values()))
        said["query"] = change(world.query, count)
        said["gallery"] = pick(rng, list(formats.values()))(world.gallery, count)
    if as_table:
        table = folder / pick(rng, ["labels.csv", "labels.tsv", "LABELS.CSV"])
        write_table(table, said, rng, pick(rng, ",;\t"))
        path = folder / pick(rng, ["rows.npy", "rows.npz", "rows.pt"])
        if path.suffix == ".npy":
            np.save(path, world.rows)
        else:
            write_arrays(path, {"embeddings": world.rows})
        return [path, "--labels", table]
    formats = ["all.npz", "all.pt"]
    if said["labels"].dtype.kind != "U":
        formats.append("all.safetensors")
    path = folder / pick(rng, formats)
    if rng.random() < 0.5:
        write_arrays(path, {"embeddings": world.rows, **said})
        return [path]
    write_arrays(path, said)
    np.save(folder / "rows.npy", world.rows)
    return [folder / "rows.npy", "--labels", path]


def write_pair(folder, world, rng, gallery_label=None):
    """Write queries and gallery apart; return the words of the command line."""
    words = []
    for option, numbers in (("", world.query), ("gallery", world.gallery)):
        labels = [world.labels[number] for number in numbers]
        if option and gallery_label:
            labels = [gallery_label(label) for label in labels]
        array = label_array(labels, rng)
        path = folder / f"{option or 'query'}.npz"
        if array is None or rng.random() < 0.5:
            write_arrays(path, {"embeddings": world.rows[numbers]})
            table = folder / f"{option or 'query'}.csv"
            write_table(table, {"labels": labels}, rng, ",")
            given = [path, f"--{option}-labels".replace("---", "--"), table]
        else:
            write_arrays(path, {"embeddings": world.rows[numbers], "labels": array})
            given = [path]
        words += [f"--{option}", *given] if option else given
    return words


def answer(folder, words):
    """Return R@1 and mAP by protocol; None for an error of the suite; raise any other."""
    out = folder / "scores.json"
    out.unlink(missing_ok=True)
    done = CliRunner().invoke(app, ["score", *map(str, words), "--json", str(out)])
    if isinstance(done.exception, BenchmarkError):
        assert len(str(done.exception)) < 2000
        return None
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    found = {}
    for record in json.loads(out.read_text())["records"]:
        if record["metric"] in ("recall_at_1", "map"):
            found.setdefault(record["protocol"], []).append(record["value"])
    return found


def check(found, numbers):
    for protocol, values in numbers.items():
        assert found[protocol] == pytest.approx(values, abs=1e-6), protocol


@pytest.mark.parametrize("seed", SEEDS)
def test_files_that_mean_something_give_the_number_of_a_brute_force(seed, tmp_path):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        world = made_world(rng, LABELS[pick(rng, LABELS)])
        with_roles = rng.random() < 0.6
        with_cameras = rng.random() < 0.4
        words = write_case(tmp_path, world, rng, with_roles, with_cameras)
        found = answer(tmp_path, words)
        assert found is not None, words
        check(found, expected(world, with_roles, with_cameras))


@pytest.mark.parametrize("seed", SEEDS)
def test_queries_and_gallery_of_two_files_give_it_or_an_error_where_types_differ(seed, tmp_path):
    rng = np.random.default_rng(1000 + seed)
    for _ in range(12):
        name = pick(rng, LABELS)
        world = made_world(rng, LABELS[name])
        change = pick(rng, [None, None, str, "{:>03}".format])
        words = write_pair(tmp_path, world, rng, change)
        if change and isinstance(world.labels[0], str):
            for number in world.gallery:
                world.labels[number] = change(world.labels[number])
        found = answer(tmp_path, words)
        if found is None:
            if brute_force(world, world.query, world.gallery) is None:
                continue
            # texts that are whole numbers are numbers in a table in which all are
            assert name == "zeros" or (change and not isinstance(world.labels[0], str))
        else:
            check(found, expected(world, with_roles=True, with_cameras=False))


@pytest.mark.parametrize("name", WRONG_ROLES)
def test_roles_that_fit_no_meaning_are_an_error(name, tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(3):
        world = made_world(rng, LABELS["numbers"])
        count = len(world.rows)
        said = {"labels": np.array(world.labels), "gallery": world.gallery}
        said["query"] = WRONG_ROLES[name](world.query, count)
        path = tmp_path / pick(rng, ["all.npz", "all.pt"])
        write_arrays(path, {"embeddings": world.rows, **said})
        assert answer(tmp_path, [path]) is None


@pytest.mark.parametrize("cell", ["", " ", "nan", "NA", "None", "<NA>"])
def test_labels_that_are_missing_are_an_error_or_leave_their_rows_out(cell, tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(5):
        world = made_world(rng, LABELS[pick(rng, ["numbers", "padded", "huge"])])
        count = len(world.rows)
        gone = rng.random(count) < 0.2
        gone[rng.integers(count)] = True
        said = [cell if each else label for each, label in zip(gone, world.labels, strict=True)]
        mask = TABLE_ROLES["ones"]
        columns = {
            "labels": said,
            "query": mask(world.query, count),
            "gallery": mask(world.gallery, count),
            "cameras": world.cameras,
        }
        np.save(tmp_path / "rows.npy", world.rows)
        write_table(tmp_path / "labels.csv", columns, rng, ";")
        words = [tmp_path / "rows.npy", "--labels", tmp_path / "labels.csv"]
        assert answer(tmp_path, words) is None
        found = answer(tmp_path, [*words, "--unlabelled", "leave-out"])
        rest = World(
            world.rows[~gone],
            [label for each, label in zip(gone, world.labels, strict=True) if not each],
            world.cameras[~gone],
            np.flatnonzero(np.isin(np.flatnonzero(~gone), world.query)),
            np.flatnonzero(np.isin(np.flatnonzero(~gone), world.gallery)),
        )
        check(found, expected(rest, with_roles=True, with_cameras=True))


def test_numbers_of_rows_are_those_among_the_rows_that_stay(tmp_path):
    rng = np.random.default_rng(0)
    world = made_world(rng, LABELS["numbers"])
    labels = np.array(world.labels, float)
    labels[[2, 5]] = np.nan
    stays = np.flatnonzero(~np.isnan(labels))
    sides = {"query": world.query, "gallery": world.gallery}
    np.savez(tmp_path / "all.npz", embeddings=world.rows, labels=labels, **sides)
    found = answer(tmp_path, [tmp_path / "all.npz", "--unlabelled", "leave-out"])
    place = {number: position for position, number in enumerate(stays)}
    rest = World(
        world.rows[stays],
        labels[stays].tolist(),
        world.cameras[stays],
        np.array([place[number] for number in world.query if number in place]),
        np.array([place[number] for number in world.gallery if number in place]),
    )
    check(found, expected(rest, with_roles=True, with_cameras=False))


TWICE = [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("column", "words", "told"),
    [
        (["", "NA", "-", "?", "null", "nan"], ["--unlabelled", "leave-out"], r"float32 \(0, 4\)"),
        ([0, 0, 1, 1, "-", 2], [], "row 4: '-'"),
        ([0, 0, 1, 1, 2, "?"], [], "row 5: '[?]'"),
        (["0", "0.0", 1, 1, 2, 2], [], "labels have 0 and 0.0"),
    ],
)
def test_labels_that_no_number_should_rest_on_are_an_error(tmp_path, column, words, told):
    rows = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    (tmp_path / "labels.csv").write_text("\n".join(["labels", *map(str, column)]))
    paths = [str(tmp_path / "rows.npy"), "--labels", str(tmp_path / "labels.csv")]
    done = CliRunner().invoke(app, ["score", *paths, *words])
    assert isinstance(done.exception, BenchmarkError)
    assert re.search(told, str(done.exception))


def test_a_missing_camera_is_named_by_its_row_in_the_file(tmp_path):
    rows = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    (tmp_path / "labels.csv").write_text("labels,cameras\n,1\n0,1\n0,2\n1,\n1,2\n2,2\n")
    words = [str(tmp_path / "rows.npy"), "--labels", str(tmp_path / "labels.csv")]
    done = CliRunner().invoke(app, ["score", *words, "--unlabelled", "leave-out"])
    assert "1 cameras are missing (row 3: ''" in str(done.exception)


def test_big_endian_rows_give_the_same_scores(tmp_path):
    rows = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    (tmp_path / "labels.csv").write_text("\n".join(["labels", *map(str, TWICE)]))
    outputs = []
    for kind in ("<f4", ">f4"):
        np.save(tmp_path / "rows.npy", rows.astype(kind))
        words = [str(tmp_path / "rows.npy"), "--labels", str(tmp_path / "labels.csv")]
        outputs.append(CliRunner().invoke(app, ["score", *words]).output)
    assert "others" in outputs[0]
    assert outputs[0] == outputs[1]
