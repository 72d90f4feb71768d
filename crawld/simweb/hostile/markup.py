"""Markup that is costly to parse, or to read after it is parsed."""

from __future__ import annotations

from crawld.simweb.hostile.case import HostileCase, html, page


def _each(pattern: str, count: int) -> str:
    return "".join(pattern.format(k) for k in range(count))


def _meta(content: str) -> bytes:
    return html("", f'<meta http-equiv="refresh" content="{content}">')


def _open(*tags: str, count: int) -> bytes:
    """Return a page of tags that are never closed."""
    return html("".join(f"<{tag}>" for tag in tags) * count + "deep inside")


def _nested(tag: str, count: int) -> bytes:
    return html(f"<{tag}>" * count + "deep inside" + f"</{tag}>" * count)


_ATTRIBUTES = _each("a{0} ", 1_999)
_TITLE = f"title='{'x' * 300_000}'"

CASES: tuple[HostileCase, ...] = (
    page("refresh-blanks", lambda: _meta(" " * 400 + "'a'b'"), quick=True),
    page("refresh-blanks-4096", lambda: _meta(" " * 4080 + "'a'b'")),
    page("refresh-blanks-later", lambda: _meta("0;" + " " * 2000 + "url" + " " * 2000 + "=" + "'")),
    page("refresh-digits", lambda: _meta("0" * 2000 + "." * 2000 + ";")),
    page("refresh-quotes", lambda: _meta("0;url=" + "&quot;'" * 400)),
    page("refresh-urls", lambda: _meta("0;" + "url=url= " * 400)),
    page("refresh-separators", lambda: _meta("0" + " ;, " * 1000)),
    page("refresh-tabs", lambda: _meta("\t\n\f\r " * 800 + "\"'")),
    page("refresh-many", lambda: html("", "<meta http-equiv=refresh content='9;url=/a'>" * 20_000)),
    page("merged-html-attributes", lambda: html(_each("<html a{0}=1>", 25_000)), quick=True),
    page("merged-html-attributes-1mb", lambda: html(_each("<html attribute{0}=1>", 50_000))),
    page("merged-body-attributes", lambda: html(_each("<body b{0}=1>", 60_000))),
    page("merged-in-turn", lambda: html(_each("<html a{0}=1><body b{0}=1><p>", 30_000))),
    page("merged-many-per-tag", lambda: html(_each("<html " + "x{0}a x{0}b x{0}c>", 30_000))),
    page("attributes-100000", lambda: html("<p " + _each("a{0}=1 ", 100_000) + ">text")),
    page("attributes-equal", lambda: html("<p " + "a=1 " * 100_000 + ">text")),
    page("attributes-on-links", lambda: html("<a href=/x " + _each("a{0} ", 90_000) + ">x</a>")),
    page("attribute-4mb", lambda: html("<p title='" + "a " * 1_000_000 + "'>text")),
    page("attribute-unclosed", lambda: html("<a href='/x" + "a" * 1_000_000)),
    page("class-names", lambda: html("<p class='" + _each("c{0} ", 100_000) + "'>text")),
    page("ids-equal", lambda: html("<p id=a>text" * 100_000)),
    page("deep-div", lambda: _open("div", count=300_000), quick=True),
    page("deep-closed", lambda: _nested("section", 50_000)),
    page("deep-lists", lambda: _open("ul", "li", count=50_000)),
    page("deep-tables", lambda: _open("table", "tr", "td", count=40_000)),
    page("deep-templates", lambda: _open("template", count=50_000)),
    page("deep-svg", lambda: _open("svg", "foreignObject", count=50_000)),
    page("deep-math", lambda: _open("math", "mi", "svg", "desc", count=30_000)),
    page("deep-select", lambda: _open("select", "optgroup", "option", count=50_000)),
    page("deep-buttons", lambda: _open("button", "p", count=60_000)),
    page("deep-framesets", lambda: "<!DOCTYPE html><html>" + "<frameset>" * 100_000),
    page("formatting-unclosed", lambda: html("<p><b><i><u><font><em>" * 4_000)),
    page("formatting-in-paragraphs", lambda: html("<b id=a><p>" * 20_000)),
    page("formatting-attributes", lambda: html(_each("<font size={0}><p>", 10_000))),
    page("formatting-adoption", lambda: html("<a><b><div>" * 5_000 + "</a></b>" * 5_000)),
    page("formatting-misnested", lambda: html("<b><i><p></b></i>" * 20_000)),
    page("formatting-stray-ends", lambda: html(_each("<i a{0}></b>", 5_000) + "<p>x" * 5_000)),
    page("clones-of-a-link", lambda: html(f"<p><a {_ATTRIBUTES}></p>" + "<p>x</p>" * 2_000)),
    page("clones-of-a-title", lambda: html(f"<p><a {_TITLE}></p>" + "<p>x</p>" * 2_000)),
    page("clones-adopted", lambda: html(f"<i {_TITLE}>" + "<div>" * 2_000 + "</i>" * 2_000)),
    page("clones-adopted-links", lambda: html(f"<a {_ATTRIBUTES}>" + "<div>" * 900 + "<a>" * 900)),
    page("clones-in-svg", lambda: html(f"<b {_ATTRIBUTES}><svg><desc>" + "<p>x" * 2_000)),
    page(
        "clones-hidden-by-svg",
        lambda: html(f"<svg><desc><style><p title='</style><b {_ATTRIBUTES}>" + "<p>x" * 2_000),
    ),
    page("foster-parents", lambda: html("<table>" + "x<b>y" * 60_000)),
    page("foster-links", lambda: html("<table>" + "<a href=/x>x" * 30_000)),
    page("table-cells", lambda: html("<table>" + ("<tr>" + "<td>1" * 500) * 2_000)),
    page("comment-dashes", lambda: html("<!--" + "-" * 1_000_000)),
    page("comments-500000", lambda: html("<!-->" * 125_000)),
    page("comments-bogus", lambda: html("<!a" * 250_000)),
    page("comments-nested", lambda: html("<!--<!" * 100_000)),
    page("cdata-unclosed", lambda: html("<svg><![CDATA[" + "]]" * 250_000)),
    page("processing-instructions", lambda: html("<?x" * 200_000)),
    page("less-than", lambda: html("<" * 1_000_000)),
    page("end-tags", lambda: html("</p>" * 125_000)),
    page("end-tags-unknown", lambda: html("<x-a>" * 5_000 + "</x-b>" * 100_000)),
    page("entities-bare", lambda: html("&" * 1_000_000)),
    page("entities-long", lambda: html("&CounterClockwiseContourIntegral" * 80_000)),
    page("entities-digits", lambda: html("&#" + "9" * 1_000_000 + ";")),
    page("entities-in-links", lambda: html("<a href='/?" + "&amp" * 75_000 + "'>x</a>")),
    page("script-escaped", lambda: html("<script><!--<script>" * 50_000)),
    page("script-unclosed", lambda: html("<script>" + "</scrip" * 125_000)),
    page("textarea-unclosed", lambda: html("<textarea>" + "</textare" * 100_000)),
    page("plaintext", lambda: html("<plaintext>" + "<a href=/x>" * 100_000)),
    page("noscript-nested", lambda: html("<noscript><img src=/x.png>" * 40_000)),
    page("tag-blanks", lambda: html("<a" + " " * 1_000_000 + "href=/x>x</a>")),
    page("tag-slashes", lambda: html("<a" + "/" * 1_000_000 + ">x</a>")),
    page("tag-name-3mb", lambda: html("<" + "a" * 1_000_000 + ">")),
    page("tag-names-unique", lambda: html(_each("<t{0}>", 100_000))),
    page("text-one-word", lambda: html("a" * 8_000_000)),
    page("text-blanks", lambda: html(" " * 1_000_000)),
    page("text-lines", lambda: html("\n" * 1_000_000)),
    page("text-nuls", lambda: html("\0" * 1_000_000)),
    page("text-combining", lambda: html("e" + "\u0301" * 375_000)),
    page("text-pre", lambda: html("<pre>" + "a\t" * 1_000_000)),
    page("empty-blocks", lambda: html("<p>" * 250_000)),
    page("line-breaks", lambda: html("a<br>" * 250_000)),
    page("title-2mb", lambda: "<title>" + "a title " * 125_000 + "</title><p>text"),
    page("titles-many", lambda: html(_each("<title>{0}</title>", 50_000))),
    page("links-8mb", lambda: html(_each("<a href='/p/{0}'>x</a>", 350_000)), quick=True),
    page("links-equal", lambda: html("<a href=/x>x</a>" * 100_000)),
    page("links-long", lambda: html(_each("<a href='/{0}/" + "p/" * 900 + "'>x</a>", 3_000))),
    page("areas", lambda: html("<map>" + _each("<area href='/m/{0}'>", 100_000))),
    page("base-many", lambda: html(_each("<base href='/b{0}/'><a href=x>x</a>", 60_000))),
    page("base-data", lambda: html("<a href=x>x</a>", "<base href='data:text/html," + "x" * 10**6)),
    page("base-userinfo", lambda: html("<a href=x>", "<base href='//u:p@other.hostile.test:1/'>")),
    page("canonical-many", lambda: html("", _each("<link rel=canonical href='/c{0}'>", 60_000))),
    page(
        "alternates", lambda: html("", _each("<link rel=alternate hreflang=x href=/{0}>", 60_000))
    ),
    page("rel-tokens", lambda: html("<a href=/x rel='" + "nofollo " * 75_000 + "'>x</a>")),
    page("json-ld-deep", lambda: html("<script type=application/ld+json>" + "[" * 1_000_000)),
    page("srcset-commas", lambda: html("<img srcset='" + "," * 80_000 + "'>"), quick=True),
    page("srcset-commas-1mb", lambda: html("<img srcset='" + ", " * 125_000 + "'>")),
    page("srcset-parentheses", lambda: html("<img srcset='a " + "(" * 100_000 + "'>")),
    page("srcset-entries", lambda: html("<img srcset='" + _each("/{0}.png 1x,", 50_000) + "'>")),
    page("srcset-blanks", lambda: html("<img srcset='a" + " " * 200_000 + ",b'>")),
    page("srcset-many", lambda: html("<img srcset='/a 1x, /b 2x,,,'>" * 60_000)),
    page("sizes-nested", lambda: html("<img src=/a sizes='" + "calc(" * 100_000 + "'>")),
    page("csrf-pattern", lambda: html("<input name='" + "csrf" * 4_000 + "' value=1>"), quick=True),
    page("csrf-pattern-dashes", lambda: html("<input type=hidden name='" + "csrf-_" * 40_000)),
    page("token-pattern", lambda: html("<meta name='" + "token_" * 40_000 + "' content=1>")),
    page("nonce-pattern", lambda: html("<script nonce='" + "a1" * 75_000 + "'></script>")),
    page("hidden-inputs", lambda: html(_each("<input type=hidden name=n{0} value={0}>", 60_000))),
    page("data-url", lambda: html("<img src='data:image/png;base64," + "A" * 1_000_000 + "'>")),
    page("data-urls", lambda: html("<img src='data:,x'>" * 100_000)),
    page("onclick", lambda: html("<a onclick=\"location='" + "\\'" * 100_000 + '">x</a>')),
)
