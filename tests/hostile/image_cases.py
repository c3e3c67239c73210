"""Hostile images."""

from __future__ import annotations

import io
import struct
import zlib

from PIL import Image

from hostile.cases import cases
from hostile.data_targets import image_seeds


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
