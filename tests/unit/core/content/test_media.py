"""Media types and charsets, one case a row."""

import codecs
import random

import pytest

from crawld.core.content.media import (
    charset_parameter,
    codec_of,
    decode,
    decode_as,
    media_type,
    sniff,
    sniff_text,
)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
ZIP = b"PK\x03\x04" + bytes(40)
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
OLD_RSS = b'<?xml version="1.0"?><rss version="2.0"><channel>'


@pytest.mark.parametrize(
    ("declared", "head", "believed"),
    [
        ("text/html; charset=utf-8", b"<p>hello", "text/html"),
        ("TEXT/HTML", b"", "text/html"),
        ("text/html", PNG, "image/png"),
        ("text/html", b"%PDF-1.7", "application/pdf"),
        ("text/plain", b"GIF89a...", "image/gif"),
        ("image/png", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("image/png", b"\n<!DOCTYPE HTML><title>404", "text/html"),
        ("image/svg+xml", b"<svg xmlns='x'>", "image/svg+xml"),
        (DOCX, ZIP, DOCX),
        ("text/html", ZIP, "application/zip"),
        ("text/plain", b"<html><p>as text", "text/plain"),
        ("text/plain", b"BM is a text", "text/plain"),
        ("text/plain", b"\x00\x01\x02garbage", "application/octet-stream"),
        ("text/html", b"<p>stray \x00 nul", "text/html"),
        ("text/html", b"\x00\x01\x02\x03garbage", "application/octet-stream"),
        ("text/html", "<p>wide</p>".encode("utf-16-le"), "text/html"),
        ("text/plain", codecs.BOM_UTF16_LE + "x".encode("utf-16-le"), "text/plain"),
        (None, b"<!-- c -->\n<div >x", "text/html"),
        (None, b"just words", "text/plain"),
        (None, b"", "text/plain"),
        (None, bytes(100), "application/octet-stream"),
        ("application/octet-stream", b"<html><head>", "text/html"),
        (None, b'<?xml version="1.0"?><urlset>', "application/xml"),
        (None, b'<?xml version="1.0"?><html xmlns="x">', "application/xhtml+xml"),
        (None, OLD_RSS, "application/rss+xml"),
        ("text/xml", OLD_RSS, "application/rss+xml"),
        ("text/html", b"<feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml"),
        ("text/html", b'<?xml version="1.0"?><!DOCTYPE html><html >', "text/html"),
        (None, b'{"a": 1}', "application/json"),
        (None, b"[1, 2]", "application/json"),
        (None, b"[note] a text", "text/plain"),
        ("application/json", b"<html>", "text/html"),
        ("application/json", b"\n<!doctype html><p>sign in", "text/html"),
        ("application/json", b"null", "application/json"),
        ("text/html", b'{"html": "<p>x</p>"}', "application/json"),
        ("text/html", codecs.BOM_UTF8 + b' [{"a": 1}]', "application/json"),
        ("text/html", b'["a", "b"]', "application/json"),
        ("text/html", b"[1] a footnote", "text/html"),
        ("text/html", b'{"quoted"} words', "text/html"),
        ("text/plain", b'{"a": 1}', "text/plain"),
        ("nonsense", b"<p>x", "text/html"),
        (None, b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (None, b"\x00\x00\x00\x20ftypisom", "video/mp4"),
    ],
)
def test_sniff(declared, head, believed):
    assert sniff(declared, head) == believed


@pytest.mark.parametrize(
    ("declared", "head", "believed"),
    [
        ("text/plain", b'{"a": 1}', "application/json"),
        ("text/plain", b"<!doctype html><p>x", "text/html"),
        ("text/plain", b"just words", "text/plain"),
        ("application/pdf", b"%PDF-1.7", "application/pdf"),
    ],
)
def test_sniff_text(declared, head, believed):
    assert sniff_text(declared, head) == believed


RUSSIAN = "Вчера вечером в городе прошёл сильный дождь, и река вышла из берегов. " * 8
JAPANESE = "これは日本語の文章です。今日は天気がいいので、散歩に行きました。" * 8


@pytest.mark.parametrize(
    ("body", "declared", "text", "charset"),
    [
        (b"\xef\xbb\xbfa\xc3\xa9", "latin1", "aé", "utf-8"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), None, "é", "utf-16-be"),
        (b"\x93q\x94", "ISO-8859-1", "“q”", "cp1252"),
        (b"a\xff", "utf-8", "a\ufffd", "utf-8"),
        (b"<meta charset=koi8-r>\xc1", "no-such", "<meta charset=koi8-r>а", "koi8-r"),
        (b"<!--<meta charset=koi8-r>-->\xc3\xa9", None, None, "utf-8"),
        (b"<meta charset=utf-16>\xc3\xa9", None, "<meta charset=utf-16>é", "utf-8"),
        (b'<?xml version="1.0" encoding="latin1"?>\xe9', None, None, "cp1252"),
        ("naïve".encode(), None, "naïve", "utf-8"),
        ("cut é".encode()[:-1], None, "cut \ufffd", "utf-8"),
        (RUSSIAN.encode("cp1251"), None, RUSSIAN, "cp1251"),
        (JAPANESE.encode("cp932"), None, JAPANESE, "cp932"),
        (b"", None, "", "utf-8"),
    ],
)
def test_decode(body, declared, text, charset):
    decoded = decode(body, declared)
    assert decoded.charset == charset
    assert text is None or decoded.text == text


def test_random_bytes_are_decoded():
    assert len(decode(bytes(range(256)) * 300).text) > 0


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("Latin1", "cp1252"),
        (" UTF8 ", "utf-8"),
        ("shift_jis", "cp932"),
        ("GB2312", "gb18030"),
        ("iso-8859-2", "iso8859-2"),
        ("us-ascii", "cp1252"),
        ("rot13", None),
        ("utf-7", None),
        ("cp500", None),
        ("cp037", None),
        ("hz", None),
        ("cp866", "cp866"),
        ("idna", None),
        ("undefined", None),
        ("x" * 999, None),
        ("\0", None),
        (None, None),
    ],
)
def test_labels_have_their_meaning_on_the_web(label, codec):
    assert codec_of(label) == codec
    if codec:
        assert b"abc".decode(codec) == "abc"


@pytest.mark.parametrize(
    "codec", ["cp1252", "utf-8", "utf-16-le", "cp932", "gb18030", "iso2022_jp"]
)
def test_a_body_decoded_in_slices_has_the_text_of_the_whole(codec):
    chance = random.Random(codec)
    for body in (
        chance.randbytes(200_001),
        bytes(chance.choices(b"\x81\x40\x1b$(Ba\xd8", k=131_075)),
    ):
        assert decode_as(body, codec) == body.decode(codec, "replace")


def test_content_type_fields():
    assert media_type("text/html, text/plain") == "text/html"
    assert media_type(None) == ""
    assert charset_parameter('text/html; Charset="utf-8"') == "utf-8"
    assert charset_parameter("text/html") is None
