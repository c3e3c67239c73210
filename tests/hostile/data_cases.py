"""Hostile images, pickles and lists."""

from __future__ import annotations

import io
import pickle
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from hostile.cases import cases
from hostile.data_targets import FOLDER_CSV, image_seeds


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """Return a PNG of that size in its header, with these chunks."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def jpeg_of_size(height: int, width: int) -> bytes:
    """Return a JPEG whose frame header gives another size than its content."""
    content = image_seeds()["jpeg"]
    at = content.index(b"\xff\xc0") + 5
    return content[:at] + struct.pack(">HH", height, width) + content[at + 4 :]


def jpeg_with_exif(*entry: int) -> bytes:
    """Return a JPEG with one EXIF entry: tag, type, count, value or offset."""
    exif = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<HHHII", 1, *entry) + b"\0\0\0\0"
    stream = io.BytesIO()
    Image.new("RGB", (8, 8)).save(stream, "JPEG", exif=exif)
    return stream.getvalue()


def bmp(width: int, height: int) -> bytes:
    return b"BM" + struct.pack(
        "<IIIIiiHHIIiiII", 70, 0, 54, 40, width, height, 1, 24, 0, 16, 0, 0, 0, 0
    )


def tiff(*entries: tuple[int, int, int, int], following: int = 0) -> bytes:
    directory = struct.pack("<H", len(entries)) + b"".join(
        struct.pack("<HHII", *entry) for entry in entries
    )
    return b"II*\0\x08\0\0\0" + directory + struct.pack("<I", following)


BOMB = zlib.compress(bytes(30_000_000), 9)
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n"
NOT_DECODED = "cannot decode .*replace the file by one of JPEG, PNG"

IMAGES = cases(
    "image",
    {
        "postscript that loops for ever": POSTSCRIPT + b"{} loop\n",
        "postscript that runs a program": POSTSCRIPT + b"(%pipe%touch /tmp/owned) (w) file\n",
        "postscript with a DOS header": b"\xc5\xd0\xd3\xc6"
        + struct.pack("<II", 32, 60)
        + bytes(22),
        "sound eps": image_seeds()["eps"],
        "pdf": b"%PDF-1.4\n1 0 obj\n<< >>\nendobj\n",
        "svg with a script": b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>",
        "dds": image_seeds()["dds"],
        "dds of an unknown kind": b"DDS " + struct.pack("<II", 124, 0x1007) + b"\xff" * 116,
        "avif": image_seeds()["avif"],
        "icon": image_seeds()["ico"],
        "windows metafile": b"\xd7\xcd\xc6\x9a" + bytes(40),
        "x pixmap": b'/* XPM */\nstatic char *x[] = {"1 1 1 1","a c #000","a"};',
        "flexible image transport": b"SIMPLE  =" + b" " * 2871,
        "photoshop": b"8BPS\0\1" + bytes(30),
        "jpeg 2000": b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(40),
        "login page": b"<!DOCTYPE html><title>Sign in</title>",
        "nothing": b"",
        "one byte": b"\xff",
        "zeros": bytes(5000),
        "jpeg cut in the header": image_seeds()["jpeg"][:20],
        "jpeg cut in the pixels": image_seeds()["jpeg"][:-40],
        "jpeg without pixels": jpeg_of_size(0, 0),
        "jpeg of four gigapixels": jpeg_of_size(65535, 65535),
        "png without pixels": png(0, 0),
        "png of 10^18 pixels": png(2**31 - 1, 2**31 - 1),
        "png without content": png(8, 8),
        "png with a wrong checksum": image_seeds()["png"].replace(b"IDAT", b"IDAX"),
        "png with a text of 30 MB": png(8, 8, (b"zTXt", b"a\0\0" + BOMB)),
        "bmp of negative width": bmp(-8, 8),
        "bmp of two gigapixels": bmp(60000, 40000),
        "ppm of 10^18 pixels": b"P6 1000000000 1000000000 255\n",
        "ppm of negative size": b"P6 -1 -1 255\n",
        "gif without frames": b"GIF89a\x08\0\x08\0\0\0\0;",
        "tiff without tags": tiff(),
        "tiff that follows itself": tiff((256, 3, 1, 8), (257, 3, 1, 8), following=8),
        "tiff of 4 billion strips": tiff(
            (256, 3, 1, 8), (257, 3, 1, 8), (273, 4, 2**32 - 1, 8), (279, 4, 2**32 - 1, 8)
        ),
        "webp cut": image_seeds()["webp"][:40],
    },
    NOT_DECODED,
) + cases(
    "image",
    {
        "png with a profile of 30 MB": png(8, 8, (b"iCCP", b"a\0\0" + BOMB)),
        "jpeg with an odd exif offset": jpeg_with_exif(0x0112, 5, 1, 0x7FFFFFFF),
        "jpeg with 2^32 exif values": jpeg_with_exif(0x0112, 3, 2**32 - 1, 1),
        "jpeg with an orientation of text": jpeg_with_exif(0x0112, 2, 4, 0x41414141),
        "jpeg with an orientation of 99": jpeg_with_exif(0x0112, 3, 1, 99),
        "jpeg with exif that contains itself": jpeg_with_exif(0x8769, 4, 1, 8),
        "mpo without its second picture": image_seeds()["mpo"][
            : len(image_seeds()["mpo"]) // 2 + 9
        ],
    },
)


class Call:
    """Asks to call a function with arguments when it is unpickled."""

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

CASES = [*IMAGES, *PICKLES, *TRUTHS, *LISTS, *MATRICES, *CSVS]
