"""Style sheets in elements, attributes and files: strings, escapes, addresses, imports."""

from __future__ import annotations

from collections.abc import Callable

from crawld.simweb.fault import Fault, Handler
from crawld.simweb.hostile.case import HostileCase, Place, html, page
from crawld.simweb.message import SimRequest, SimResponse, build_response

_CSS = "text/css"


def _element(css: str) -> bytes:
    return html("", f"<style>{css}</style>")


def _attribute(css: str) -> bytes:
    return html(f"<p style='{css}'>text")


def _file(name: str, css: Callable[[SimRequest], str], *, content_type: str = _CSS) -> HostileCase:
    """Return a case whose page names one style sheet; it and all it names are made by `css`."""

    def respond(place: Place) -> Fault:
        def handler(request: SimRequest, _: Handler) -> SimResponse:
            if request.path == "/robots.txt":
                return build_response(request, 404)
            if request.path == "/":
                body = html("", "<link rel=stylesheet href='/0.css'>")
                return build_response(request, 200, body)
            return build_response(request, 200, css(request).encode(), content_type=content_type)

        return handler

    return HostileCase(name=name, family="", respond=respond, owns=True)


def _fixed(css: str) -> Callable[[SimRequest], str]:
    return lambda request: css


def _next(request: SimRequest) -> str:
    digits = "".join(filter(str.isdigit, request.path)) or "0"
    return f"@import '/{int(digits[:9]) + 1}.css';"


def _each(pattern: str, count: int) -> str:
    return "".join(pattern.replace("#", str(k)) for k in range(count))


CASES: tuple[HostileCase, ...] = (
    page("css-strings", lambda: _element('"' + '\\"' * 40_000), quick=True),
    page("css-strings-1mb", lambda: _element('a{b:"' + '\\"' * 166_666)),
    page("css-strings-unclosed", lambda: _element("a{b:'x" * 66_666)),
    page("css-strings-lines", lambda: _element('"\n' * 133_333)),
    page("css-attribute-strings", lambda: _attribute('"' + '\\"' * 20_000), quick=True),
    page("css-attribute-urls", lambda: _attribute("background:url(" * 80_000)),
    page("css-attributes-many", lambda: html('<p style="a:url(/x.png)">x' * 60_000)),
    page("css-escapes", lambda: _element("\\" * 333_333)),
    page("css-escapes-hex", lambda: _element("\\75\\72\\6c(" * 100_000)),
    page("css-escapes-blanks", lambda: _element("\\75 \\72 \\6c " * 100_000 + "(/x)")),
    page("css-urls-unclosed", lambda: _element("url(" * 133_333)),
    page("css-urls-quotes", lambda: _element("url('" * 100_000)),
    page("css-urls-blanks", lambda: _element("url(" + " " * 666_666)),
    page("css-urls-blanks-inside", lambda: _element("url(a" + " " * 166_666 + "b" * 10)),
    page("css-urls-escaped", lambda: _element("url(" + "\\)" * 166_666)),
    page("css-urls-100000", lambda: _element(_each("a{b:url(/#.png)}", 100_000))),
    page("css-urls-data", lambda: _element("a{b:url(data:," + "x" * 1_000_000 + ")}")),
    page("css-comments-open", lambda: _element("/*" * 266_666)),
    page("css-comments-stars", lambda: _element("/" + "*" * 666_666)),
    page("css-comments-in-urls", lambda: _element("url/**/(" * 66_666)),
    page("css-imports-in-element", lambda: _element(_each("@import '/#.css';", 50_000))),
    page("css-imports-unclosed", lambda: _element("@import " * 66_666)),
    page("css-imports-media", lambda: _element("@import 'a' " + "screen and (" * 66_666)),
    page("css-brackets", lambda: _element("(" * 333_333)),
    page("css-braces", lambda: _element("a{" * 166_666)),
    page("css-image-set", lambda: _element("image-set(" * 100_000 + "'a' 1x")),
    page("css-entities", lambda: _attribute("&quot;" + "\\&quot;" * 20_000)),
    _file("css-file-strings", _fixed('"' + '\\"' * 166_666)),
    _file("css-file-urls", _fixed("url(" * 166_666)),
    _file("css-file-import-chain", _next),
    _file("css-file-import-self", _fixed("@import '/0.css';" * 10_000)),
    _file("css-file-imports", _fixed(_each("@import url('/#.css');", 30_000))),
    _file("css-file-charset", _fixed('@charset "cp500";' + "a{b:url(/x.png)}" * 1_000)),
    _file("css-file-as-html", _fixed("<html a=1>" * 30_000), content_type="text/html"),
    _file("css-file-8mb", _fixed("a{b:c}" * 433_333)),
)
