import io
import random
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from crawld.export.zim_icon import MAX_ICON_BYTES, make_icon, plain_icon


def encoded(image, form="PNG", **options):
    target = io.BytesIO()
    image.save(target, form, **options)
    return target.getvalue()


def picture(width, height, mode="RGBA", seed=1):
    """A picture with smooth and rough parts, so that every filter of PNG is used."""
    rng = np.random.default_rng(seed)
    across, down = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    rough = rng.integers(0, 255, (height, width))
    full = np.stack([across, down, rough, np.maximum(across, 40)], axis=-1).astype(np.uint8)
    return Image.fromarray(full, "RGBA").convert(mode)


def read_icon(data):
    image = Image.open(io.BytesIO(data))
    assert (image.format, image.size) == ("PNG", (48, 48))
    return np.asarray(image.convert("RGBA")).astype(int)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_a_png_of_the_right_size_keeps_its_pixels(mode):
    image = picture(48, 48, mode)
    data = encoded(image, bits=4) if mode == "P" else encoded(image)
    if mode == "1":  # a bit of gray: as rare as icons without colors
        assert make_icon(data) is None
        return
    expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")).astype(int)
    seen = read_icon(make_icon(data))
    assert np.abs(seen - expected).max() <= 3  # colors under opacity are rounded twice
    assert (seen[..., 3] == expected[..., 3]).all()


@pytest.mark.parametrize("size", [(16, 16), (64, 64), (100, 50), (1, 1), (512, 512), (50, 400)])
def test_any_size_becomes_an_icon(size):
    read_icon(make_icon(encoded(picture(*size))))


def test_a_larger_image_is_averaged():
    image = Image.new("RGBA", (96, 96), (200, 100, 50, 255))
    image.putpixel((0, 0), (0, 100, 50, 255))
    seen = read_icon(make_icon(encoded(image)))
    assert seen[0, 0].tolist() == [150, 100, 50, 255]
    assert seen[1, 1].tolist() == [200, 100, 50, 255]


def test_a_flat_image_is_centred_on_transparent_ground():
    seen = read_icon(make_icon(encoded(Image.new("RGB", (48, 24), (9, 9, 9)))))
    assert seen[11, 0, 3] == seen[36, 0, 3] == 0
    assert seen[12, 0].tolist() == seen[35, 47].tolist() == [9, 9, 9, 255]


@pytest.mark.parametrize("form", ["png", "bmp"])
def test_the_best_image_of_an_ico_is_taken(form):
    data = encoded(picture(64, 64), "ICO", sizes=[(16, 16), (32, 32), (48, 48)], bitmap_format=form)
    ico = Image.open(io.BytesIO(data))
    ico.size = (48, 48)
    expected = np.asarray(ico.convert("RGBA")).astype(int)
    assert np.abs(read_icon(make_icon(data)) - expected).max() <= 8


def header(width, height, *, depth=8, color=6, interlaced=0):
    return struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)


def png(head, pixels=b""):
    parts = [b"\x89PNG\r\n\x1a\n"]
    for name, content in ((b"IHDR", head), (b"IDAT", pixels), (b"IEND", b"")):
        parts.append(struct.pack(">I", len(content)) + name + content)
        parts.append(struct.pack(">I", zlib.crc32(name + content)))
    return b"".join(parts)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"\x89PNG\r\n\x1a\n",
        b"\0\0\1\0\xff\xff",
        png(header(10**6, 10**6), zlib.compress(b"")),
        png(header(2**31, 1), zlib.compress(b"")),
        png(header(0, 5), zlib.compress(b"")),
        png(header(5, 5), zlib.compress(b"too short")),
        png(header(5, 5), b"not deflated"),
        png(header(5, 5, interlaced=1), zlib.compress(bytes(200))),
        png(header(5, 5, color=5), zlib.compress(bytes(200))),
        png(header(5, 5, depth=8, color=3), zlib.compress(bytes([0, 9, 9, 9, 9, 9] * 5))),
        png(header(1, 1), zlib.compress(b"\x09" + bytes(4))),
        bytes(MAX_ICON_BYTES + 1),
    ],
)
def test_what_cannot_be_read_gives_no_icon(data):
    assert make_icon(data) is None


def test_damaged_images_give_an_icon_or_none():
    chance = random.Random(7)
    whole = [
        encoded(picture(20, 20)),
        encoded(picture(20, 20, "P"), bits=2),
        encoded(picture(32, 32), "ICO", sizes=[(16, 16), (32, 32)], bitmap_format="bmp"),
    ]
    for _ in range(600):
        data = bytearray(chance.choice(whole))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        made = make_icon(bytes(data[: chance.randrange(len(data) + 1)]))
        assert made is None or read_icon(made).shape == (48, 48, 4)


def test_a_bomb_is_cut_at_the_size_its_header_tells():
    bomb = zlib.compress(bytes(200 << 20))
    assert read_icon(make_icon(png(header(4, 4), bomb)))[..., 3].max() == 0


def test_the_plain_icon_has_one_color():
    assert {tuple(pixel) for pixel in read_icon(plain_icon()).reshape(-1, 4).tolist()} == {
        (38, 99, 140, 255)
    }
