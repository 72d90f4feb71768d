"""The icon of a ZIM file: 48 × 48 pixels as PNG, made from an icon of the site.

Reads PNG without interlacing and with 8 bits per sample or a palette, and ICO whose images are PNG
or bitmaps of 24 or 32 bits. Size and time are bounded; whatever else comes gives no icon.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

PIXELS: Final = 48
MAX_ICON_BYTES: Final = 1 << 20
_MAX_SIDE: Final = 512
"""Larger images are not read: the time of decoding grows with the area."""
_MAX_IMAGES: Final = 32
"""Images of an ICO file that are looked at."""
_COLOR: Final = (38, 99, 140)

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PALETTE: Final = 3

_Image = npt.NDArray[np.uint8]
"""Height × width × 4: red, green, blue, opacity."""


def make_icon(data: bytes) -> bytes | None:
    """Return an image as an icon; None if it cannot be read."""
    if len(data) > MAX_ICON_BYTES:
        return None
    try:
        image = _read_png(data) if data.startswith(_PNG) else _read_ico(data)
    except (ValueError, IndexError, struct.error, zlib.error):
        return None
    return None if image is None else _write_png(_resized(image))


def plain_icon() -> bytes:
    """Return the icon of a site without one: a square of one color."""
    return _write_png(np.full((PIXELS, PIXELS, 4), (*_COLOR, 255), dtype=np.uint8))


def _write_png(image: _Image) -> bytes:
    height, width = image.shape[:2]
    lines = np.zeros((height, 1 + 4 * width), dtype=np.uint8)
    lines[:, 1:] = image.reshape(height, 4 * width)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = [_PNG]
    for chunk in (b"IHDR" + header, b"IDAT" + zlib.compress(lines.tobytes(), 9), b"IEND"):
        parts.append(struct.pack(">I", len(chunk) - 4) + chunk)
        parts.append(struct.pack(">I", zlib.crc32(chunk)))
    return b"".join(parts)


def _resized(image: _Image) -> _Image:
    """Scale the longer side to the size of an icon, centred on transparent ground."""
    side = max(image.shape[:2])
    square = np.zeros((side, side, 4), dtype=np.float64)
    top, left = (side - image.shape[0]) // 2, (side - image.shape[1]) // 2
    square[top : top + image.shape[0], left : left + image.shape[1]] = image
    square[..., :3] *= square[..., 3:] / 255.0  # a transparent pixel has no color to mix
    if side >= PIXELS:
        edges = np.arange(PIXELS) * side // PIXELS
        counts = np.diff(np.append(edges, side))
        square = np.add.reduceat(np.add.reduceat(square, edges, axis=0), edges, axis=1)
        square /= counts[:, None, None] * counts[None, :, None]
    else:
        nearest = np.arange(PIXELS) * side // PIXELS
        square = square[nearest][:, nearest]
    opacity = np.maximum(square[..., 3:], 1e-9) / 255.0
    square[..., :3] = np.minimum(square[..., :3] / opacity, 255.0)
    return np.rint(square).astype(np.uint8)


# --- PNG -------------------------------------------------------------------------------------


def _read_png(data: bytes) -> _Image | None:
    """Source: w3.org/TR/png-3, sections 5, 9 and 11."""
    chunks = _png_chunks(data)
    width, height, depth, color, *_, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if not 0 < width <= _MAX_SIDE or not 0 < height <= _MAX_SIDE or interlaced:
        return None
    if color not in _CHANNELS or (depth != 8 and (color != _PALETTE or depth not in (1, 2, 4))):
        return None
    channels = _CHANNELS[color]
    line_bytes = (width * channels * depth + 7) // 8
    needed = height * (1 + line_bytes)
    raw = zlib.decompressobj().decompress(chunks[b"IDAT"], needed)
    if len(raw) < needed:
        return None
    lines = _unfiltered(raw, height, line_bytes, max(channels * depth // 8, 1))
    if color == _PALETTE:
        return _with_palette(_samples(lines, width, depth), chunks)
    return _with_opacity(lines.reshape(height, width, channels))


def _png_chunks(data: bytes) -> dict[bytes, bytes]:
    chunks: dict[bytes, bytes] = {}
    pixels: list[bytes] = []
    at = len(_PNG)
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        content = data[at + 8 : at + 8 + size]
        if kind == b"IDAT":
            pixels.append(content)
        else:
            chunks.setdefault(kind, content)
        at += 12 + size
    if b"IHDR" not in chunks or len(chunks[b"IHDR"]) != 13:
        raise ValueError("no header")
    return {**chunks, b"IDAT": b"".join(pixels)}


def _unfiltered(raw: bytes, height: int, line_bytes: int, step: int) -> _Image:
    """Undo the filter of each line, which predicts a byte from those to its left and above."""
    above = bytearray(line_bytes)
    lines = np.empty((height, line_bytes), dtype=np.uint8)
    for number in range(height):
        start = number * (1 + line_bytes)
        line = bytearray(raw[start + 1 : start + 1 + line_bytes])
        _undo_filter(raw[start], line, above, step)
        lines[number] = line
        above = line
    return lines


def _undo_filter(kind: int, line: bytearray, above: bytearray, step: int) -> None:
    if kind > 4:
        raise ValueError("unknown filter")
    if kind == 0:
        return
    for at in range(len(line)):
        left = line[at - step] if at >= step else 0
        up = above[at]
        if kind == 1:
            predicted = left
        elif kind == 2:
            predicted = up
        elif kind == 3:
            predicted = (left + up) // 2
        else:
            predicted = _nearest(left, up, above[at - step] if at >= step else 0)
        line[at] = (line[at] + predicted) & 0xFF


def _nearest(left: int, up: int, corner: int) -> int:
    """Return the neighbour nearest to left + up - corner (Paeth's predictor)."""
    to_left, to_up = abs(up - corner), abs(left - corner)
    to_corner = abs(left + up - 2 * corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner


def _samples(lines: _Image, width: int, depth: int) -> _Image:
    if depth == 8:
        return lines
    bits = np.unpackbits(lines, axis=1).reshape(len(lines), -1, depth)
    weights = 1 << np.arange(depth - 1, -1, -1)
    return (bits @ weights)[:, :width].astype(np.uint8)


def _with_palette(numbers: _Image, chunks: dict[bytes, bytes]) -> _Image:
    colors = np.frombuffer(chunks.get(b"PLTE", b"")[: 3 * 256], dtype=np.uint8).reshape(-1, 3)
    palette = np.full((len(colors), 4), 255, dtype=np.uint8)
    palette[:, :3] = colors
    opacity = np.frombuffer(chunks.get(b"tRNS", b"")[: len(colors)], dtype=np.uint8)
    palette[: len(opacity), 3] = opacity
    return palette[numbers]


def _with_opacity(pixels: _Image) -> _Image:
    """Return pixels of gray or colors, with or without opacity, as colors with opacity."""
    height, width, channels = pixels.shape
    image = np.full((height, width, 4), 255, dtype=np.uint8)
    gray = channels <= 2
    image[..., :3] = pixels[..., :1] if gray else pixels[..., :3]
    if channels in (2, 4):
        image[..., 3] = pixels[..., -1]
    return image


# --- ICO -------------------------------------------------------------------------------------


def _read_ico(data: bytes) -> _Image | None:
    """Return the image of an icon file whose size is best for `PIXELS`."""
    if data[:4] != b"\0\0\1\0":
        return None
    count = min(int.from_bytes(data[4:6], "little"), _MAX_IMAGES)
    found: list[_Image] = []
    for number in range(count):
        size, at = struct.unpack_from("<II", data, 6 + 16 * number + 8)
        part = data[at : at + size]
        image = _read_png(part) if part.startswith(_PNG) else _read_bitmap(part)
        if image is not None:
            found.append(image)
    # The smallest that need not be enlarged, else the largest.
    enough = [image for image in found if len(image) >= PIXELS]
    return min(enough, key=len) if enough else max(found, key=len, default=None)


def _read_bitmap(data: bytes) -> _Image | None:
    """Return a bitmap of an ICO file: lines from the bottom up, then a mask of one bit."""
    start, width, doubled, _, bits, packing = struct.unpack_from("<IiiHHI", data)
    height = doubled // 2
    if not 0 < width <= _MAX_SIDE or not 0 < height <= _MAX_SIDE or packing:
        return None
    if bits not in (24, 32):
        return None
    line_bytes = (width * bits // 8 + 3) // 4 * 4
    pixels = np.frombuffer(data, np.uint8, height * line_bytes, start).reshape(height, line_bytes)
    colors = pixels[::-1, : width * bits // 8].reshape(height, width, bits // 8)
    image = np.full((height, width, 4), 255, dtype=np.uint8)
    image[..., :3] = colors[..., 2::-1]
    if bits == 32:
        image[..., 3] = colors[..., 3]
        return image
    mask_bytes = (width + 31) // 32 * 4
    mask = np.frombuffer(data, np.uint8, height * mask_bytes, start + pixels.size)
    clear = np.unpackbits(mask.reshape(height, mask_bytes)[::-1], axis=1)[:, :width]
    image[clear == 1, 3] = 0
    return image
