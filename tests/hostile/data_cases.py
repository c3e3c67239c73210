"""Hostile pickles, ground truths, lists and tables of datasets."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path

import numpy as np

from hostile.cases import cases
from hostile.data_targets import FOLDER_CSV
from hostile.image_cases import BOMB


class Call:
    """Ask to call a function with arguments when it is unpickled."""

    def __init__(self, function: object, *arguments: object):
        self.call = (function, arguments)

    def __reduce__(self) -> tuple:
        return self.call


def nested(levels: int, parts: int) -> list:
    """Return a list that is small in a file, and has ``parts ** levels`` leaves."""
    value: list = [1]
    for _ in range(levels):
        value = [value] * parts
    return value


DTYPE = b"\x80\x02cnumpy\ndtype\n"
OBJECTS = b"h\x01cnumpy\ndtype\nU\x02O8K\x00K\x01\x87RK\x00\x86s"  # a field of objects
ARRAY = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
SCALAR = b"\x80\x02cnumpy.core.multiarray\nscalar\n"
INT64 = (
    b"cnumpy\ndtype\nU\x02i8K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
)
POINTER = b"U\x08\x41\x41\x41\x41\x00\x00\x00\x00"


def global_name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n(S'touch owned'\ntR.".encode()


PICKLES = cases(
    "pickle",
    {
        "os.system": pickle.dumps(Call(Path, "x"), 0).replace(b"pathlib", b"os     "),
        **{
            f"{module}.{name}": global_name(module, name)
            for module, name in (
                ("os", "system"),
                ("posix", "system"),
                ("subprocess", "Popen"),
                ("builtins", "eval"),
                ("builtins", "getattr"),
                ("builtins", "__import__"),
                ("builtins", "open"),
                ("__builtin__", "apply"),
                ("codecs", "decode"),
                ("operator", "attrgetter"),
                ("functools", "partial"),
                ("importlib", "import_module"),
                ("numpy", "load"),
                ("numpy", "fromfile"),
                ("numpy", "memmap"),
                ("numpy.testing._private.utils", "runstring"),
                ("numpy.core.multiarray", "fromfile"),
                ("pandas", "read_pickle"),
                ("torch", "load"),
                ("benchmark.datasets.io.unpickling", "read_plain_pickle"),
            )
        },
        "a path of a class": b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
        "raw bytes with a field of objects": DTYPE
        + b"U\x02V8K\x00K\x01\x87R(K\x03U\x01|NU\x01aq\x01\x85}"
        + OBJECTS
        + b"K\x08K\x01K\x10tb.",
        "numbers with a field of objects": DTYPE
        + b"U\x02i8K\x00K\x01\x87R(K\x03U\x01|NU\x01aq\x01\x85}"
        + OBJECTS
        + b"K\x08K\x01K\x10tb.",
        "numbers with a subarray": DTYPE
        + b"U\x02i8K\x00K\x01\x87R(K\x03U\x01|cnumpy\ndtype\nU\x02O8K\x00K\x01\x87RK\x04\x86"
        + b"NNK\x08K\x01K\x10tb.",
        "a scalar of objects": SCALAR
        + b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R"
        + POINTER
        + b"\x86R.",
        "a scalar of raw bytes": SCALAR
        + b"cnumpy\ndtype\nU\x02V8K\x00K\x01\x87R"
        + POINTER
        + b"\x86R.",
        "an array of objects": np.array([[1], "b"], dtype=object).dumps(),
        "an array of records": np.zeros(1, dtype=[("a", "i4")]).dumps(),
        "an array of dates": np.zeros(1, dtype="M8[s]").dumps(),
        "an array of complex numbers": np.zeros(1, dtype="c16").dumps(),
        "a type of 10^6 letters": np.zeros(1, dtype="U1").dumps().replace(b"U1", b"U1000000"),
        "lists of lists, 4^11 leaves": pickle.dumps(nested(11, 4)),
        "a list 30 deep": pickle.dumps(nested(30, 1)),
        "an integer of 400 digits": pickle.dumps(10**400),
        "a memory of 2 billion entries": b"\x80\x02Nr\xff\xff\xff\x7f.",
    },
    "but only lists, dicts, numbers, text and plain numpy arrays|is damaged or no pickle",
) + cases(
    "pickle",
    {
        "nothing": b"",
        "text": b"hello",
        "zip": b"PK\x03\x04" + bytes(30),
        "cut": pickle.dumps(list(range(99)))[:-20],
        "an array of negative length": ARRAY
        + b"(K\x01J\xff\xff\xff\xff\x85"
        + INT64
        + b"\x89U\x08aaaaaaaatb.",
        "an array of 10^18 numbers": ARRAY
        + b"(K\x01\x8a\x08\x00\x00\x64\xa7\xb3\xb6\xe0\x0d\x85"
        + INT64
        + b"\x89U\x08aaaaaaaatb.",
        "an array of too few bytes": ARRAY + b"(K\x01K\x08\x85" + INT64 + b"\x89U\x08aaaaaaaatb.",
        "a scalar of too many bytes": SCALAR + INT64 + b"U\x10aaaaaaaaaaaaaaaa\x86R.",
        "a persistent object": b"\x80\x02U\x01aQ.",
        "an extension": b"\x80\x02\x82\x01.",
        "a protocol of the future": b"\x80\x63N.",
        "no object": b"\x80\x02.",
        "only a mark": b"(.",
        "text of another encoding": b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR.",
        "bytes of another process": b"\x80\x05\x97.",
        "a frame of 2^60 bytes": b"\x80\x04\x95" + struct.pack("<Q", 2**60) + b"N.",
        "text of 2^31 bytes": b"\x80\x04X\xff\xff\xff\x7fabc.",
        "a long of 2^31 bytes": b"\x80\x02\x8b\xff\xff\xff\x7fabc.",
    },
    "damaged or no pickle",
)

TRUTHS = cases(
    "list roxford5k: gnd_roxford5k.pkl",
    {
        name: pickle.dumps(value, 2)
        for name, value in {
            "a list": [1],
            "no keys": {},
            "numbers for names": {"imlist": [1], "qimlist": [2], "gnd": []},
            "names that leave": {"imlist": ["../x"], "qimlist": ["/etc/passwd"], "gnd": []},
            "names with escapes": {"imlist": ["\x1b[2J"], "qimlist": ["q"], "gnd": [{}]},
            "a box of text": {"imlist": ["a"], "qimlist": ["q"], "gnd": [{"bbx": "abcd"}]},
            "a box of nan": {
                "imlist": ["a"],
                "qimlist": ["q"],
                "gnd": [{"bbx": [float("nan")] * 4}],
            },
            "an index beyond": {
                "imlist": ["a"],
                "qimlist": ["q"],
                "gnd": [{"bbx": [0, 0, 1, 1], "easy": [9], "hard": [], "junk": []}],
            },
            "an index of 10^18": {
                "imlist": ["a"],
                "qimlist": ["q"],
                "gnd": [{"bbx": [0, 0, 1, 1], "easy": [10**18], "hard": [], "junk": []}],
            },
        }.items()
    },
    "gnd_roxford5k.pkl",
)

LISTS = [
    case
    for target, good in (
        ("list sop: Ebay_train.txt", "image_id class_id super_class_id path\n"),
        ("list inshop: list_eval_partition.txt", "1\nimage_name item_id evaluation_status\n"),
        ("list cub: images.txt", ""),
        ("list vehicleid: train_test_split/train_list.txt", ""),
        ("list revisitop1m: revisitop1m.txt", ""),
        ("list landmarks_clean: annotations/annotation_clean_train.txt", ""),
        ("list vggface2: bb_landmark/loose_bb_train.csv", "NAME_ID,X,Y,W,H\n"),
        ("list ijbc: protocols/ijbc_metadata.csv", ""),
    )
    for case in cases(
        target,
        {
            "nothing": "",
            "a blank line": "\n",
            "only the header": good,
            "random bytes": bytes(range(256)) * 3,
            "another encoding": (good + "1 1 1 ü.jpg\n").encode("utf-16"),
            "a path that leaves": good + "1 1 1 ../../etc/passwd\n",
            "an absolute path": good + "1 1 1 /etc/passwd\n",
            "numbers of 30 digits": good + f"{'9' * 30} {'9' * 30} {'9' * 30} a.jpg\n",
            "digits of another script": good + "١ ١ ١ a.jpg\n",
            "negative numbers": good + "-1 -1 -1 a.jpg\n",
            "an escape sequence": good + "1 1 1 \x1b[2J.jpg\n",
            "a NUL": good + "1 1 1 a\0.jpg\n",
            "one long line": good + "a" * 100_000,
        },
        "dataset '",
    )
]

MATRICES = cases(
    "list sfm120k: retrieval-SfM-120k-imagenames-clusterids.mat",
    {
        "nothing": b"",
        "text": b"hello",
        "only a header": b"MATLAB 5.0".ljust(126) + b"IM",
        "a version 7.3": b"\x89HDF\r\n\x1a\n" + bytes(200),
        "a size beyond the end": b"MATLAB".ljust(126) + b"IM" + struct.pack("<II", 14, 2**31),
        "a bomb": b"MATLAB".ljust(126) + b"IM" + struct.pack("<II", 15, len(BOMB)) + BOMB,
    },
    "clusterids.mat",
)

CSVS = (
    cases(
        "split csv",
        {
            "nothing": "",
            "no rows": "path,label,split\n",
            "other columns": "a,b,c\n1,2,3\n",
            "a column twice": FOLDER_CSV.replace("label", "path", 1),
            "more fields than columns": FOLDER_CSV.replace("cat/0.png,", "cat/0.png,,", 1),
            "an open quote": FOLDER_CSV.replace("cat/0.png", '"cat/0.png', 1),
            "a path that leaves": FOLDER_CSV.replace("cat/0.png", "../cat/0.png"),
            "an absolute path": FOLDER_CSV.replace("cat/0.png", "/etc/passwd"),
            "a NUL": FOLDER_CSV.replace("cat/0.png", "cat/0\0.png"),
            "a folder": FOLDER_CSV.replace("cat/0.png", "cat"),
            "another split": FOLDER_CSV.replace("train", "=cmd()"),
            "an image twice": FOLDER_CSV.replace("cat/1", "cat/0"),
            "another encoding": FOLDER_CSV.encode("utf-16"),
            "no text": bytes(range(256)),
        },
        "dataset 'folder'",
    )
    + cases(
        "packed index",
        {
            "nothing": "",
            "other columns": "a,b\n1,2\n",
            "more fields than columns": "path,shard,offset,size\na.jpg,0,0,9,9\n",
            "a negative offset": "path,shard,offset,size\na.jpg,0,-5,9\n",
            "a negative size": "path,shard,offset,size\na.jpg,0,0,-9\n",
            "a size of 20 digits": f"path,shard,offset,size\na.jpg,0,0,{'9' * 20}\n",
            "a size that wraps": f"path,shard,offset,size\na.jpg,0,{2**63 - 1},{2**63 - 1}\n",
            "a shard beyond": "path,shard,offset,size\na.jpg,99,0,9\n",
            "text for a number": "path,shard,offset,size\na.jpg,0,x,9\n",
            "an image twice": "path,shard,offset,size\na.jpg,0,0,9\na.jpg,0,0,9\n",
            "no image": "path,shard,offset,size\na.jpg,0,0,0\n",
        },
        "packed|cannot decode",
    )
    + cases(
        "packed record",
        {
            "a list": "[]",
            "a number": "3",
            "cut": '{"side": 8',
            "nested": "[" * 50_000,
            "nothing": "",
        },
        "cannot read the packed|does not describe",
    )
)

NAMES = cases(
    "gpr1200",
    {
        "nothing": "",
        "no class": "a.jpg",
        "a class beyond": "1200_a.jpg",
        "a class of 4,000 digits": "9" * 200 + "_a.jpg",
        "digits of another script": "\u0661_a.jpg\n\u00b2_b.jpg",
        "a negative class": "-1_a.jpg",
        "no name behind the class": "0_",
        "no picture": "0_a.exe",
        "an escape sequence": "0_\x1b[2J.jpg",
        "bytes that are no text": b"0_\xff\xfe.jpg",
        "letters that turn the line": "0_\u202egpj.exe",
    },
    "dataset 'gpr1200'",
)
SHARDS = cases(
    "shard list",
    {
        "nothing": b"",
        "no text": bytes(range(256)),
        "other columns": b"a,b\n1,2\n",
        "text for a number": b"path,shard,offset,size\na.png,x,0,9\n",
        "more rows than images": b"path,shard,offset,size\n" + b"a.png,0,0,9\n" * 5,
        "a path that leaves": b"path,shard,offset,size\n../../x,0,0,9\n",
    },
)

CASES = [*PICKLES, *TRUTHS, *LISTS, *MATRICES, *CSVS, *NAMES, *SHARDS]
