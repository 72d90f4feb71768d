"""What a page shows besides its text: frames, media, fields, data in scripts, drawings."""

import pytest

from crawld.core.content.embedded import embedded_digest

ORIGINS = ("https://a.test", "https://www.a.test")

TOKEN = "c2VjcmV0IG9mIGEgc2Vzc2lvbg/"
JSON = "<script type=application/json>['{}']</script>"
NONCE = "<script>time = {}; nonce = '{}'</script>"
DATA = '<script type="application/ld+json">{{"price": {}}}</script>'
ESCAPED = "<script>u = 'https:\\/\\/{}\\/x'</script>"


def of(markup, origins=ORIGINS):
    page = f"<title>One</title><p>text{markup}".encode()
    return embedded_digest(page, "text/html", origins)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<iframe src=//b.test/embed/1></iframe>", "<iframe src=//b.test/embed/2></iframe>"),
        ("<video src=/1.mp4></video>", "<video src=/2.mp4></video>"),
        ("<video><source src=/1.mp4></video>", "<video><source src=/2.mp4></video>"),
        ("<object data=/1.pdf></object>", "<object data=/2.pdf></object>"),
        ("<img src='/image?id=1'>", "<img src='/image?id=2'>"),
        ("<img src=0.gif data-src=/1.jpg>", "<img src=0.gif data-src=/2.jpg>"),
        ("<img srcset='/1.jpg 1x, /b.jpg 2x'>", "<img srcset='/2.jpg 1x, /b.jpg 2x'>"),
        ("<picture><source srcset=/1.png></picture>", "<picture><source srcset=/2.png></picture>"),
        ("<input type=hidden name=price value=12.50>", "<input type=hidden name=price value=13>"),
        ("<input value=Anna>", "<input value=Berta>"),
        ("<i style='width:10%'></i>", "<i style='width:70%'></i>"),
        ("<script>data = {'name': 'Anna'}</script>", "<script>data = {'name': 'Berta'}</script>"),
        (JSON.format("Anna"), JSON.format("Berta")),
        ("<script>draw([1, 2.5, -3])</script>", "<script>draw([1, 2.5, -4])</script>"),
        ("<input type=radio checked>", "<input type=radio>"),
        ("<select><option selected>1</select>", "<select><option>1</select>"),
        ("<del>not</del>", "<span>not</span>"),
        ("<svg><path d='M0 1'/></svg>", "<svg><path d='M0 2'/></svg>"),
        ("<style>p {src: url(/1.jpg)}</style>", "<style>p {src: url(/2.jpg)}</style>"),
        ("<table><td class=yes></table>", "<table><td class=no></table>"),
        ("<td><i class='icon icon-ok'> </i>", "<td><i class='icon icon-off'> </i>"),
        ("<i class='stars-4'></i>", "<i class='stars-5'></i>"),
        ("<i title=open></i>", "<i title=closed></i>"),
        ("<span data-price=12.50></span>", "<span data-price=13.50></span>"),
        ("<x-price amount=12></x-price>", "<x-price amount=13></x-price>"),
        ("<svg><use href='#ok'/></svg>", "<svg><use href='#off'/></svg>"),
        ("<meta itemprop=price content=12>", "<meta itemprop=price content=13>"),
        ("<meter value=.2></meter>", "<meter value=.8></meter>"),
        (DATA.format("12.50"), DATA.format("13.50")),
        (DATA.format('"12"'), DATA.format('"13"')),
    ],
)  # fmt: skip
def test_what_the_text_leaves_out_counts(one, other):
    assert of(one) != of(other)
    assert of(one) == of(one)
    assert of(one) != of("")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<input type=hidden value=f00>", "<input type=hidden value=ba7>"),
        ("<input type=hidden value=1764200000>", "<input type=hidden value=1764200900>"),
        ("<iframe src='/ad?token=1'></iframe>", "<iframe src='/ad?token=2'></iframe>"),
        ("<img src='/x.png?_=17'>", "<img src='/x.png?_=18'>"),
        ("<img data-src='/x.png?_=17'>", "<img data-src='/x.png?_=18'>"),
        ("<img data-id=a9f8e7>", "<img data-id=0c1b2a>"),
        (NONCE.format(1764200000, "a9f8e7"), NONCE.format(1764200900, "0c1b2a")),
        ("<script>u = 'https://a.test/x'</script>", "<script>u = 'https://www.a.test/x'</script>"),
        (ESCAPED.format("a.test"), ESCAPED.format("www.a.test")),
        ("<iframe src='https://a.test/x'></iframe>", "<iframe src='https://www.a.test/x'></iframe>"),
        ("<style>p {color: red}</style>", "<style>p {color: blue}</style>"),
        ("<script>[1764, 12]</script>", "<script>[1765, 13]</script>"),
        ("<script src=/a.js></script>", "<script src=/b.js></script>"),
        ("<p class=a id=b>", "<p class=c id=d>"),
        ("<i class=a>one</i>", "<i class=b>one</i>"),
        ("<i class=ok-a9f8e7></i>", "<i class=ok-0c1b2a></i>"),
        ("<span data-nonce=a9f8e7></span>", "<span data-nonce=0c1b2a></span>"),
        (f"<i data-t={TOKEN}ab+cd></i>", f"<i data-t={TOKEN}bc+de></i>"),
        ("<span data-at=1764200000></span>", "<span data-at=1764200900></span>"),
        ("<span data-u=https://a.test/x></span>", "<span data-u=https://www.a.test/x></span>"),
        ("<meta name=csrf content=f00>", "<meta name=csrf content=ba7>"),
        (DATA.format(1764200000), DATA.format(1764200900)),
    ],
)  # fmt: skip
def test_what_two_copies_of_a_page_may_have_apart_does_not_count(one, other):
    assert of(one) == of(other)


def test_other_documents_embed_nothing():
    assert embedded_digest(b"<iframe src=1>", "text/plain", ORIGINS) == of("")
