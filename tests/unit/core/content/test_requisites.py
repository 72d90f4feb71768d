"""Requisites of pages, compared with the URLs in their text."""

import pytest

from crawld.core.content.html import parse
from crawld.core.content.requisites import MIRRORED_KINDS, page_requisites, stylesheet_requisites
from crawld.core.content.url_kind import UrlKind
from crawld.core.url import resolve
from tests.unit.core.content.page_urls import PAGE_URL, urls_of

PAGES = [
    "<img src=a.png srcset='a.png 1x, b,c.png 2x'><picture><source srcset=w.webp></picture>",
    "<link rel=stylesheet href=s.css><link rel='shortcut icon' href=i.ico><link rel=next href=n>",
    "<link rel=preload as=font href=f.woff2><link rel=preload as=fetch href=d.json>",
    "<link rel=preload as=image imagesrcset='p.png 1x' href=q.png><link rel=canonical href=c>",
    "<style>@import 'x.css'; p { background: url(u.png) }</style><p style='background:url(v.png)'>",
    "<style>@font-face { src: url(f.ttf) }</style><script src=j.js></script><script>x</script>",
    "<body background=back.png><table background=t.png><tr><td background=d.png></table>",
    "<svg><image href=s.png /><use xlink:href='#here' /><image xlink:href=x.png /></svg>",
    "<video src=v.mp4 poster=p.png></video><audio src=a.ogg></audio><input type=IMAGE src=n.gif>",
    "<img src='data:image/png;base64,x'><iframe src=f.html></iframe><embed src=e.swf>",
    "<a href=l.html>l</a><img alt=nothing><link rel=icon><script></script>",
    "<noscript><img src=no.png></noscript>",
    "<img data-src=late.png data-srcset='late2.png 2x'><source data-srcset=late3.png>",
]


@pytest.mark.parametrize("html", PAGES)
def test_the_tree_gives_the_same_urls_as_the_text(html):
    named = {url for kind, url in urls_of(html.encode()) if kind in MIRRORED_KINDS}
    assert set(resolve(PAGE_URL, page_requisites(parse(html)))) == named
    played = {url for kind, url in urls_of(html.encode()) if kind is UrlKind.MEDIA}
    everything = page_requisites(parse(html), include_media=True)
    assert set(resolve(PAGE_URL, everything)) == named | played


def test_each_requisite_is_listed_once():
    assert page_requisites(parse("<img src=a.png>" * 3)) == ["a.png"]


def test_a_style_sheet_needs_styles_images_and_fonts():
    css = "@import url(a.css); @font-face{src:url(f.woff)} b{background:url('b.png')} /* url(c) */"
    assert list(stylesheet_requisites(css)) == ["a.css", "f.woff", "b.png"]
