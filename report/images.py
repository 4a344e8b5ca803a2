"""Pictures of examples as data URIs."""

import base64
import struct
import zlib

from tfx_edge.schemas import ExampleImage

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOUR = {1: 0, 3: 2, 4: 6}  # PNG's colour types


def data_uri(image: ExampleImage) -> str:
    """The picture as a PNG.

    Source: PNG specification, third edition (W3C 2025), sections 5 and 11.
    """
    pixels, stride = base64.b64decode(image.pixels), image.width * image.channels
    rows = b"".join(b"\0" + pixels[at : at + stride] for at in range(0, len(pixels), stride))  # 0: the row isn't filtered
    header = struct.pack(">IIBBBBB", image.width, image.height, 8, _COLOUR[image.channels], 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(_SIGNATURE + chunks).decode()}"


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
