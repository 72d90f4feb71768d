"""Requisites of pages and style sheets, and their admission."""

import pytest

from crawld.core.content.requisites import Needs
from crawld.core.robots import Robots
from crawld.daemon.frontier.admission import Admission, Referrer
from crawld.daemon.visit.content import needed_by, read_content
from crawld.net.exchange import FetchResponse
from tests.unit.daemon.site_values import make_site

HOME = "http://a.test/deep/page"
NOW = 1_780_000_000.0

PAGE = b"""<html><head><base href="/base/"><link rel=stylesheet href=s.css>
<link rel="shortcut icon" href="i.ico"><link rel=preload as=font href=f.woff2>
<link rel=canonical href=c><style>p { background: url("p.png") }</style>
<script src=j.js></script></head><body background=back.png>
<img src="a.png" srcset="a.png 1x, b.png 2x"><img src="data:image/png;base64,xx">
<picture><source srcset="w.webp"></picture><div style="background:url(d.png)"></div>
<a href=l.html>l</a><video src=v.mp4 poster=v.png></video><iframe src=fr.html></iframe>
<img src="javascript:no"><img src="a.png"></body></html>"""

STYLE = b"@import 'x.css'; @font-face { src: url(f.ttf) } p { background: url(../up.png) }"


def make_response(body, content_type="text/html"):
    return FetchResponse(
        status=200,
        reason="OK",
        http_version="HTTP/1.1",
        headers=((b"Content-Type", content_type.encode()),),
        body=body,
        wire_bytes=len(body),
        address="192.0.2.1",
        sent_at=0.0,
        arrived_at=0.0,
        ended_at=0.0,
        duration_s=0.0,
    )


def requisites(url, body, content_type="text/html", *, media=False):
    response = make_response(body, content_type)
    needs = Needs(100, media)
    found = needed_by(url, response, read_content(url, response, 100), needs)
    at_once = read_content(url, response, 100, needs=needs).needs
    assert at_once is None or at_once == found
    assert (at_once is None) == (content_type != "text/html")
    return found


def test_a_page_needs_what_it_displays():
    names = ["s.css", "i.ico", "f.woff2", "p.png", "j.js", "back.png", "a.png", "b.png", "w.webp"]
    names += ["d.png", "v.png"]
    urls = requisites(HOME, PAGE)
    assert sorted(urls) == sorted(f"http://a.test/base/{name}" for name in names)
    assert "http://a.test/base/v.mp4" in requisites(HOME, PAGE, media=True)


def test_a_style_sheet_needs_the_urls_it_names():
    urls = requisites("http://a.test/css/s.css", STYLE, "text/css")
    assert urls == [f"http://a.test/{name}" for name in ("css/x.css", "css/f.ttf", "up.png")]


def test_a_script_needs_nothing():
    assert requisites("http://a.test/j.js", b"url(x.png)", "text/javascript") == []


@pytest.mark.parametrize(
    ("site", "url", "reason"),
    [
        ({}, "http://a.test/x.png", None),
        ({"max_depth": 0, "include": ["prefix:/deep/"]}, "http://a.test/x.png", None),
        ({}, "http://img.a.test/x.png", None),
        ({}, "http://b.test/x.png", "requisite_host"),
        ({"requisite_hosts": ["b.test"]}, "http://b.test/x.png", None),
        ({"requisite_hosts": ["*"]}, "http://c.test/x.png", None),
        ({"requisites": False}, "http://a.test/x.png", "requisite"),
        ({}, "http://a.test/secret.png", "robots"),
    ],
)
async def test_requisites_may_be_out_of_scope_but_not_on_every_host(site, url, reason):
    robots = Robots.parse(b"User-agent: *\nDisallow: /secret", "crawld")
    admission = Admission(lambda origin: robots)
    active = make_site(seeds=["http://a.test/"], **site)
    for expected in ([reason] if reason else [], []):
        # A refusal is reported once, an admitted URL each time.
        result = await admission.admit_requisites(active, [url], Referrer(7, 9), NOW)
        assert [each.reason for each in result.refusals] == expected
        assert [each.url for each in result.found] == ([] if reason else [url])


@pytest.mark.parametrize(
    ("site", "host", "permitted"),
    [
        ({}, "a.test", False),
        ({"allow_private": True}, "a.test", True),
        ({"allow_private": True}, "img.a.test", True),
        ({"allow_private": True, "requisite_hosts": ["*"]}, "b.test", False),
        ({"allow_private": True, "requisite_hosts": ["b.test"]}, "b.test", True),
        ({"allow_private_hosts": ["a.test"]}, "img.a.test", False),
    ],
)
def test_only_hosts_of_the_site_permit_private_requisites(site, host, permitted):
    active = make_site(seeds=["http://a.test/"], **site)
    assert active.permits_private_requisite(host) is permitted
