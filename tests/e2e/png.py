"""Small PNG images for mirrored pages."""

import struct
import zlib


def grey_png(shades):
    """Return a grey image one pixel high; each byte of `shades` is a pixel."""
    header = struct.pack(">IIBBBBB", len(shades), 1, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" + shades)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
