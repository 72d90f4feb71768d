"""What the tags of serialized HTML do to the text around them, by name."""

from __future__ import annotations

import re
from typing import Final

BLOCKS = (
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details"),
    *("dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "legend", "li", "main", "menu"),
    *("nav", "ol", "optgroup", "option", "p", "pre", "search", "section", "select", "summary"),
    *("table", "tbody", "tfoot", "thead", "tr", "ul"),
)
SKIPPED = ("template", "svg", "object", "canvas", "audio", "video", "datalist", "map")
# Their content is serialized unescaped.
RAW_ELEMENTS = ("script", "style", "noscript", "iframe", "noembed", "noframes")
INLINE = (
    *("abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em"),
    *("font", "i", "ins", "kbd", "label", "mark", "nobr", "q", "s", "samp", "small", "span"),
    *("strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
)
VOID = frozenset({"img", "input", "br", "hr", "wbr", "embed", "source", "track", "col"})

# Plain numbers: a page has a thousand tags.
NONE: Final = 0
OPEN: Final = 1
CLOSE: Final = 2
LINK: Final = 3
IMAGE: Final = 4
CELL: Final = 5
BREAK: Final = 6
SKIP: Final = 7
RAW: Final = 8

ROLES: Final[dict[str, int]] = {
    **dict.fromkeys(INLINE, NONE),
    **dict.fromkeys(BLOCKS, OPEN),
    **dict.fromkeys(SKIPPED, SKIP),
    **dict.fromkeys(RAW_ELEMENTS, RAW),
    **dict.fromkeys(("td", "th"), CELL),
    **dict.fromkeys(("br", "hr"), BREAK),
    "a": LINK,
    "img": IMAGE,
}
ROLES.update({f"/{name}": CLOSE if role == OPEN else NONE for name, role in tuple(ROLES.items())})

HIDDEN = re.compile(
    r' hidden="| style="[^"]*(?:display\s*:\s*none|visibility\s*:\s*hidden)', re.IGNORECASE
)
