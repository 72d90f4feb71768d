r"""Pack response headers into a small block, without loss.

Archives need the headers of every response, also of 304s, which are most of the responses once a
mirror is complete. Servers send nearly the same lines each time, so zstd compresses them against a
fixed dictionary of common lines.

Block: one format byte, then a zstd frame without magic number, checksum and dictionary id.
`\x01`: names and values in turn, joined by line feeds. `\x02`: the same for headers that contain
line feeds (no client accepts them, but nothing is lost here): each text after its length as a
4-byte integer. An empty block is no headers.

The dictionary is part of the file format: DICTIONARY_1 may never change. Better lines need a new
dictionary and a new format byte.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterable, Sequence
from typing import Final

import zstandard

from crawld.errors import CorruptDatabaseError

Headers = Sequence[tuple[bytes, bytes]]

_LINES: Final = b"\x01"
_LENGTHS: Final = b"\x02"

MAX_BYTES: Final = 16 * 1024 * 1024
"""No block unpacks to more, so that a damaged length cannot exhaust the memory."""

# Rare lines first: zstd spends the fewest bits on what is nearest the end.
_NAMES: Final = """
P3P|Public-Key-Pins|X-Runtime|X-Generator|X-Drupal-Cache|X-AspNet-Version|X-Pingback|Refresh|Warning
Content-MD5|Content-Disposition|Content-Location|WWW-Authenticate|Clear-Site-Data|Origin-Trial
X-Download-Options|X-Permitted-Cross-Domain-Policies|X-DNS-Prefetch-Control|X-Robots-Tag|Retry-After
Access-Control-Expose-Headers|Access-Control-Max-Age|Access-Control-Allow-Credentials
Access-Control-Allow-Methods|Access-Control-Allow-Headers|Timing-Allow-Origin|Critical-CH|Accept-CH
Cross-Origin-Opener-Policy|Cross-Origin-Embedder-Policy|Cross-Origin-Resource-Policy
Reporting-Endpoints
Content-Security-Policy-Report-Only|Content-Security-Policy|Permissions-Policy|Feature-Policy
X-Amz-Cf-Pop|X-Amz-Cf-Id|x-amz-request-id|x-amz-id-2|x-amz-version-id|x-goog-generation|x-goog-hash
X-GitHub-Request-Id|X-Fastly-Request-ID|X-Timer|X-Served-By|X-Cache-Hits|X-Cache-Status|X-Varnish
X-Request-Id|X-Backend|Server-Timing|Surrogate-Control|Cache-Status|CF-RAY|cf-cache-status|Report-To|NEL
"""
_FULL: Final = """
Strict-Transport-Security=max-age=63072000; includeSubDomains; preload
strict-transport-security=max-age=106384710; includeSubDomains; preload
strict-transport-security=max-age=31536000; includeSubDomains
Set-Cookie=session=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; Secure; SameSite=Lax
X-XSS-Protection=1; mode=block
Referrer-Policy=strict-origin-when-cross-origin
Referrer-Policy=no-referrer-when-downgrade
X-Frame-Options=DENY
X-Frame-Options=SAMEORIGIN
Access-Control-Allow-Origin=*
alt-svc=h3=":443"; ma=86400
report-to={"group":"cf-nel","max_age":604800,"endpoints":[{"url":"https://a.nel.cloudflare.com/report/v4?s=
nel={"report_to":"cf-nel","success_fraction":0.0,"max_age":604800}
Link=<https://www.example.org/wp-json/>; rel="https://api.w.org/"
X-Powered-By=PHP/8.2.0
X-Powered-By=ASP.NET
X-Powered-By=Express
Via=1.1 varnish (Varnish/7.1)
Via=1.1 google
Age=0
Age=12345
Expires=0
Expires=-1
Expires=Thu, 01 Jan 1970 00:00:00 GMT
Pragma=no-cache
X-Cache=HIT from
X-Cache=MISS
x-cache=Hit from cloudfront
via=1.1 cloudfront.net (CloudFront)
x-cache-status=hit-front
server-timing=cache;desc="hit-front", host;desc="cp3066"
x-client-ip=
accept-ch=
cf-cache-status=DYNAMIC
server=cloudflare
server=AmazonS3
server=GitHub.com
Server=Microsoft-IIS/10.0
Server=LiteSpeed
Server=Caddy
Server=Apache/2.4.62 (Debian)
Server=Apache/2.4.58 (Ubuntu)
Server=Apache
Server=nginx/1.22.1
Server=nginx
Content-Encoding=br
Content-Encoding=gzip
Transfer-Encoding=chunked
Content-Language=en
Content-Language=de
Cache-Control=public, max-age=31536000, immutable
Cache-Control=private, must-revalidate, max-age=0
Cache-Control=s-maxage=18000, must-revalidate, max-age=0
Cache-Control=no-store, no-cache, must-revalidate, post-check=0, pre-check=0
Cache-Control=max-age=3600
Cache-Control=max-age=0
Cache-Control=no-cache
Vary=Accept-Encoding,Cookie,Authorization
Vary=Accept-Encoding, Origin
Vary=Accept-Encoding
X-Content-Type-Options=nosniff
Keep-Alive=timeout=5, max=100
Keep-Alive=timeout=20
Connection=close
Connection=keep-alive
Accept-Ranges=bytes
Content-Type=application/pdf
Content-Type=image/png
Content-Type=image/jpeg
Content-Type=text/css
Content-Type=application/json; charset=utf-8
Content-Type=text/plain; charset=utf-8
content-type=text/html; charset=utf-8
Content-Type=text/html; charset=UTF-8
Content-Type=text/html
Content-Length=0
Content-Length=12345
ETag=W/"
ETag="
etag="
date=Sun, 04 Feb 2029 02:31:44 GMT
last-modified=Sat, 12 Apr 2025 11:05:27 GMT
Last-Modified=Fri, 09 Jan 2026 10:28:16 GMT
Last-Modified=Mon, 07 Dec 2026 13:40:53 GMT
Date=Tue, 25 Aug 2026 17:59:02 GMT
Date=Wed, 18 Mar 2027 08:14:39 GMT
Date=Thu, 30 Sep 2028 23:46:50 GMT
Server=nginx
Connection=keep-alive
"""


def _dictionary() -> bytes:
    names = "\n".join(_NAMES.replace("|", "\n").split())
    lines = "".join("\n".join(line.split("=", 1)) + "\n" for line in _FULL.strip().splitlines())
    return f"{names}\n{lines}".encode()


DICTIONARY_1: Final = _dictionary()
"""Dictionary of the frames of format bytes 1 and 2."""

_LEVEL: Final = 6

_local = threading.local()


def pack(headers: Headers) -> bytes:
    """Return header lines as a block; order, spelling and repetitions are kept.

    Args:
        headers: names and values as received.
    """
    if not headers:
        return b""
    texts = [text for line in headers for text in line]
    joined = b"\n".join(texts)
    if joined.count(b"\n") == len(texts) - 1:
        return _LINES + _compressor().compress(joined)
    return _LENGTHS + _compressor().compress(b"".join(map(_with_length, texts)))


def unpack(block: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header lines of a block.

    Raises:
        CorruptDatabaseError: the block is damaged.
    """
    if not block:
        return ()
    try:
        joined = _decompressor().decompress(block[1:], max_output_size=MAX_BYTES)
        texts = joined.split(b"\n") if block[:1] == _LINES else list(_split_lengths(joined))
        return tuple(zip(texts[::2], texts[1::2], strict=True))
    except (zstandard.ZstdError, struct.error, ValueError) as error:
        raise CorruptDatabaseError(
            "a stored header block is damaged", hint="check the file with: crawld doctor"
        ) from error


def _with_length(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


def _split_lengths(joined: bytes) -> Iterable[bytes]:
    position = 0
    while position < len(joined):
        (length,) = struct.unpack_from(">I", joined, position)
        position += 4 + length
        yield joined[position - length : position]


def _compressor() -> zstandard.ZstdCompressor:
    """Return this thread's compressor; threads that share one get damaged frames."""
    if not hasattr(_local, "compressor"):
        content = zstandard.ZstdCompressionDict(
            DICTIONARY_1, dict_type=zstandard.DICT_TYPE_RAWCONTENT
        )
        content.precompute_compress(level=_LEVEL)
        parameters = zstandard.ZstdCompressionParameters.from_level(
            _LEVEL,
            format=zstandard.FORMAT_ZSTD1_MAGICLESS,
            write_content_size=1,
            write_checksum=0,
            write_dict_id=0,
        )
        _local.compressor = zstandard.ZstdCompressor(
            dict_data=content, compression_params=parameters
        )
    compressor: zstandard.ZstdCompressor = _local.compressor
    return compressor


def _decompressor() -> zstandard.ZstdDecompressor:
    if not hasattr(_local, "decompressor"):
        content = zstandard.ZstdCompressionDict(
            DICTIONARY_1, dict_type=zstandard.DICT_TYPE_RAWCONTENT
        )
        _local.decompressor = zstandard.ZstdDecompressor(
            dict_data=content, format=zstandard.FORMAT_ZSTD1_MAGICLESS
        )
    decompressor: zstandard.ZstdDecompressor = _local.decompressor
    return decompressor
