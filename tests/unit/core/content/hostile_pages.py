"""Pages that make a parser work: one function for each kind, of about the given size in bytes."""

from collections.abc import Callable


def _repeat(unit: str, before: str = "") -> Callable[[int], str]:
    return lambda size: before + unit * (size // len(unit))


def _numbered(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """Return a function that repeats a unit, `#` in it replaced by a number."""
    return lambda size: (
        before
        + "".join(unit.replace("#", f"{n:06}") for n in range(size // (len(unit) + 5)))
        + after
    )


def _halves(first: str, second: str) -> Callable[[int], str]:
    return lambda size: first * (size // 2 // len(first)) + second * (size // 2 // len(second))


def _clones(size: int) -> str:
    return "<p>" + _numbered("<b id=#>")(size // 2) + "</p>" + "<p>x</p>" * (size // 16)


def _one_large_clone(size: int) -> str:
    return "<p><b title=" + "a" * (size // 2) + "></p>" + "<p>x</p>" * (size // 16)


def _formatting_with_attributes(size: int) -> str:
    attributes = " ".join(f"a{n}" for n in range(60))
    return _numbered(f"<b {attributes} x=#>")(size)


def _few_tags(unit: str, rest: str) -> Callable[[int], str]:
    """Return a function that repeats a tag so rarely that a page of 2**20 bytes is not counted."""
    return lambda size: unit * min(6_900, size // 2 // len(unit)) + rest * (size // 2 // len(rest))


HOSTILE_PAGES: dict[str, Callable[[int], str]] = {
    "nested": _repeat("<div>"),
    "nested lists": _repeat("<ul><li>"),
    "nested terms": _repeat("<li><dd>"),
    "nested tables": _repeat("<table><tr><td>"),
    "nested templates": _repeat("<template>"),
    "nested selects": _repeat("<select><optgroup><option>"),
    "nested details": _repeat("<details><dialog>"),
    "nested svg": _repeat("<svg><foreignObject><math><annotation-xml encoding=text/html>"),
    "hidden in comments": _repeat("<div><!--</div>-->"),
    "hidden in attributes": _repeat('<div a="</div>">'),
    "hidden in scripts": _repeat("<div><script><!--<script></script></div>--></script>"),
    "hidden in svg styles": _repeat("<div><svg><style></div></style></svg>"),
    "hidden in CDATA": _repeat("<div><svg><![CDATA[></div>]]></svg>"),
    "hidden in selects": _repeat("<select><style></select><div></style>"),
    "unknown end tags": _halves("<span>", "</x>"),
    "end tags of paragraphs": _halves("<span>", "</p>"),
    "end tags within svg": _halves("<svg><g>", "</x>"),
    "formatting": _repeat("<b><i><u><s><em><tt><big><code><small><strong><font><a><p>"),
    "formatting, distinct": _numbered("<b id=#>"),
    "formatting with attributes": _formatting_with_attributes,
    "misnested links": _repeat("<a><div>"),
    "misnested formatting": _halves("<b><div>", "</b>"),
    "formatting in tables": _repeat("<table><b><i><u>"),
    "foster parents": _repeat("x<b><tr>", "<table>"),
    "clones": _clones,
    "one large clone": _one_large_clone,
    "formatting without an end": _few_tags("<b ", "x"),
    "formatting in quotes": _few_tags("<b a='", "'x"),
    "attributes": _numbered(" a#", "<div", ">"),
    "attributes with signs": _numbered(' a#=">"', "<div", ">"),
    "equal attributes": _repeat("a ", "<div "),
    "attributes of html": _numbered("<html a#>"),
    "attributes of body": _numbered("<body a#=b c#=d>"),
    "attributes of svg": _numbered(" viewbox#=1", "<svg", ">"),
    "many attributes, often": _repeat("<p " + " ".join(f"a{n}" for n in range(199)) + ">"),
    "names of tags": _numbered("<x#></x#>"),
    "names of attributes": _numbered("<p a#>"),
    "signs in a tag": _repeat("<", "<p "),
    "slashes in a tag": _repeat("/", "<p "),
    "quotes in a tag": _repeat("'", "<p "),
    "entities": _repeat("&amp;"),
    "unknown entities": _repeat("&notx"),
    "ampersands": _repeat("&"),
    "ampersands in an attribute": _repeat("&am", '<a href="'),
    "NUL": _repeat("\0"),
    "NUL in an attribute": _repeat("a\0", '<p a="'),
    "less-than signs": _repeat("<"),
    "greater-than signs": _repeat(">"),
    "comments": _repeat("<!---->"),
    "dashes": _repeat("-", "<!--"),
    "doctypes": _repeat("<!DOCTYPE>"),
    "a long doctype": _repeat("a", "<!DOCTYPE html PUBLIC '"),
    "a long name": _repeat("a", "<"),
    "a long value": _repeat("a", '<a href="'),
    "line breaks": _repeat("</br>"),
    "paragraphs": _repeat("</p>", "<body>"),
    "framesets": _repeat("<frameset><frame>"),
    "plaintext": _repeat("<a>", "<plaintext>"),
    "unclosed scripts": _repeat("<script><!--<script>"),
    "a long title": _repeat("&amp;x", "<title>"),
    "after the body": _repeat("x<p></body>", "<body></body>"),
    "links": _repeat("<a href=x>y</a>"),
    "images": _repeat("<img src=x srcset='y 2x'>"),
    "styles": _repeat("<p style='a:url(b)'>"),
}
