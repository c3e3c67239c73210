"""Images, pickles, weights and lists of strangers: refused with their names, and nothing runs."""

from __future__ import annotations

import io
import os
import pickle
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import archives
import numpy as np
import pytest
import torch
from PIL import Image

from benchmark.core.errors import DataError
from benchmark.models.weights import read_checkpoint


def encoded(kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    Image.effect_noise((48, 36), 50).convert("RGB").save(stream, kind, **options)
    return stream.getvalue()


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def with_two_sizes() -> bytes:
    """Return a JPEG whose second frame header has another size than its first."""
    content = encoded("JPEG")
    at = content.index(b"\xff\xc0")
    frame = content[at : at + 19]
    return content[:at] + frame + frame[:5] + struct.pack(">HH", 60_000, 60_000) + frame[9:]


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n"
IMAGES = {
    "a web page": b"<!DOCTYPE html><title>Sign in</title>",
    "postscript": POSTSCRIPT + b"(%pipe%touch owned) (w) file\n",
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>",
    "nothing": b"",
    "zeros": bytes(5000),
    "a cut jpeg": encoded("JPEG")[:-400],
    "a jpeg of two sizes": with_two_sizes(),
    "a cut png": encoded("PNG")[:400],
    "a format that is not read": encoded("ICO"),
    "a png of 10^18 pixels": png(2**31 - 1, 2**31 - 1),
    "a png of 10^10 pixels": png(10**5, 10**5, (b"IDAT", zlib.compress(bytes(10**7)))),
    "a png with a text of 30 MB": png(8, 8, (b"zTXt", b"a\0\0" + zlib.compress(bytes(3 * 10**7)))),
    "a ppm of 10^18 pixels": b"P6 1000000000 1000000000 255\n",
    "a tiff that follows itself": b"II*\0\x08\0\0\0\0\0\x08\0\0\0",
}


@pytest.mark.parametrize("case", IMAGES)
def test_a_broken_image_is_listed_by_its_path(command, case):
    archives.make_sop(Path("sop"))
    path = next(Path("sop").rglob("*.JPG"))
    path.write_bytes(IMAGES[case])
    arguments = ("data", "check", "sop", "--root", "sop", "--allow-counts", "--images")
    status, said = command(*arguments)
    assert status == 1
    assert said.count(str(path)) == 1
    assert "1 broken of 16" in said


DTYPE = b"\x80\x02cnumpy\ndtype\n"
OBJECTS = b"h\x01cnumpy\ndtype\nU\x02O8K\x00K\x01\x87RK\x00\x86s"  # a field of objects
STATE = b"(K\x03U\x01|NU\x01aq\x01\x85}" + OBJECTS + b"K\x08K\x01K\x10tb"
SCALAR = b"\x80\x02cnumpy.core.multiarray\nscalar\n"
POINTER = b"U\x08\x41\x41\x41\x41\x00\x00\x00\x00"


def call(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n(S'touch owned'\ntR.".encode()


PICKLES = {
    "os.system": call("os", "system"),
    "eval": call("builtins", "eval"),
    "getattr": call("__builtin__", "getattr"),
    "numpy.load": call("numpy", "load"),
    "numpy.fromfile": call("numpy.core.multiarray", "fromfile"),
    "pandas.read_pickle": call("pandas", "read_pickle"),
    "a method by its path": b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
    "an attribute of what is allowed": b"\x80\x04\x8c\x07_codecs\x8c\x0fencode.__self__\x93.",
    "a type given fields of objects": DTYPE + b"U\x02V8K\x00K\x01\x87R" + STATE + b".",
    "an array of a type given fields of objects": SCALAR
    + DTYPE[2:] + b"U\x02V8K\x00K\x01\x87R" + STATE + POINTER + b"\x86R.",
    "a pointer": SCALAR + DTYPE[2:] + b"U\x02O8K\x00K\x01\x87R" + POINTER + b"\x86R.",
    "an array of objects": np.array([[1], "b"], dtype=object).dumps(),
    "an array of records": np.zeros(1, dtype=[("a", object)]).dumps(),
    "a persistent object": b"\x80\x02U\x01aQ.",
    "an extension": b"\x80\x02\x82\x01.",
    "a deep list": b"\x80\x02" + b"]" * 10**5 + b"a" * (10**5 - 1) + b".",
    "cut": pickle.dumps(list(range(99)))[:-20],
    "a large number for a remembered list": b"\x80\x02]r\xff\xff\xff\x07.",
    "lists that share their parts": b"\x80\x02}U\x06imlist]" + b"q\x00]h\x00ah\x00a" * 60 + b"s.",
    "text": b"hello",
    "a list": pickle.dumps([1]),
    "numbers for names": pickle.dumps({"imlist": [1], "qimlist": [2], "gnd": []}),
    "names that leave": pickle.dumps({"imlist": ["../x"], "qimlist": ["/etc/passwd"], "gnd": []}),
    "a box of text": pickle.dumps({"imlist": ["a"], "qimlist": ["q"], "gnd": [{"bbx": "abcd"}]}),
}  # fmt: skip


@pytest.mark.parametrize("case", PICKLES)
def test_a_pickle_that_is_no_ground_truth_is_refused(command, case):
    archives.make_roxford5k(Path("in"))
    Path("in/gnd_roxford5k.pkl").write_bytes(PICKLES[case])
    status, said = command("data", "check", "roxford5k", "--root", "in", "--allow-counts")
    assert status == 2
    assert "gnd_roxford5k.pkl" in said


HEAVY = {
    "a pickle of 9 bytes": ("x.pkl", b"\x80\x02]r\xff\xff\xff\x03."),
    "YAML of aliases below a long name": (
        "x.yaml",
        f"a: &a [{'1, ' * 900}]\n? {'k' * 5000}\n: [{'*a, ' * 900}]\n".encode(),
    ),
}


@pytest.mark.parametrize("case", HEAVY)
def test_a_small_file_does_not_take_much_memory(case):
    name, content = HEAVY[case]
    Path(name).write_bytes(content)
    code = (
        "import resource, sys\n"
        "from benchmark.core.documents import read_document\n"
        "from benchmark.datasets.io.lists import read_plain_pickle\n"
        "from pathlib import Path\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "path = Path(sys.argv[1])\n"
        "try:\n    (read_document if path.suffix == '.yaml' else read_plain_pickle)(path)\n"
        "except Exception as error:\n    print(error, file=sys.stderr)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True)
    assert int(done.stdout) < 100 * 1024, done.stderr  # KiB


class Attack:
    """Calls a function when it is unpickled without care."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_weights_with_code_are_refused(legacy, nested):
    attack = Attack(os.system, "touch owned")
    content = {"a": torch.zeros(2), "b": attack} if nested else attack
    torch.save(content, "w.pt", _use_new_zipfile_serialization=not legacy)
    with pytest.raises(DataError, match=r"w\.pt"):
        read_checkpoint("w.pt")


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04" + bytes(99), call("os", "system")]
)
@pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
def test_files_that_are_no_weights_are_refused(name, content):
    Path(name).write_bytes(content)
    with pytest.raises(DataError, match=name):
        read_checkpoint(name)


SOP = "image_id class_id super_class_id path\n"
MATLAB = b"MATLAB 5.0".ljust(126) + b"IM"
BAD_LINES = {
    "nothing": b"",
    "random bytes": bytes(range(256)) * 3,
    "another encoding": (SOP + "1 1 1 ü.jpg\n").encode("utf-16"),
    "a path that leaves": SOP.encode() + b"1 1 1 ../../etc/passwd\n",
    "an absolute path": SOP.encode() + b"1 1 1 /etc/passwd\n",
    "a NUL": SOP.encode() + b"1 1 1 a\0.jpg\n",
    "an escape sequence": SOP.encode() + b"1 1 1 \x1b[2J.jpg\n",
    "a long line": SOP.encode() + b"a" * 10**6,
    "digits of another script": (SOP + "١ ١ ١ a.jpg\n").encode(),
}
LISTS = [
    *(("sop", "Ebay_train.txt", content) for content in BAD_LINES.values()),
    *(("cub", "image_class_labels.txt", content) for content in BAD_LINES.values()),
    ("cub", "image_class_labels.txt", b"1 " + b"9" * 5000 + b"\n"),
    ("inshop", "list_eval_partition.txt", b"1\nimage_name item_id evaluation_status\n"),
    *(
        ("vggface2", "bb_landmark/loose_bb_train.csv", b"NAME_ID,X,Y,W,H\n" + content)
        for content in (*BAD_LINES.values(), b"../../x,1,1,1,1\n", b"a/b,1e999,nan,x,-inf\n")
    ),
    *(
        ("sfm120k", "retrieval-SfM-120k-imagenames-clusterids.mat", content)
        for content in (b"", b"hello", MATLAB, MATLAB + struct.pack("<II", 14, 2**31), b"\x89HDF")
    ),
]


@pytest.mark.parametrize(("name", "file", "content"), LISTS)
def test_a_bad_list_is_named(command, name, file, content):
    (archives.MAKERS | archives.BROUGHT)[name](Path("in"))
    (Path("in") / file).write_bytes(content)
    status, said = command("data", "check", name, "--root", "in", "--allow-counts")
    assert status == 2
    assert f"dataset '{name}' at in: " in said
    assert "\x1b" not in said
    assert len(said) < 20_000


SPLITS = {
    "nothing": b"",
    "other columns": b"a,b,c\n1,2,3\n",
    "a path that leaves": b"path,label,split\n../a.jpg,a,train\n",
    "an absolute path": b"path,label,split\n/etc/passwd,a,train\n",
    "a NUL": b"path,label,split\na/0\0.jpg,a,train\n",
    "a folder": b"path,label,split\na,a,train\n",
    "another split": b"path,label,split\na/0.jpg,a,=cmd()\n",
    "no text": bytes(range(256)),
}


@pytest.mark.parametrize("case", SPLITS)
def test_a_bad_split_of_a_folder_is_named(command, case):
    for label in "abcd":
        for number in (0, 1):
            archives.write_jpeg(Path("in") / label / f"{number}.jpg", number)
    Path("split.csv").write_bytes(SPLITS[case])
    arguments = ("data", "check", "folder", "--root", "in", "--param", "split_csv=split.csv")
    status, said = command(*arguments)
    assert status == 2
    assert "dataset 'folder' at in: " in said
