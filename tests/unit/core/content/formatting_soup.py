"""Random pages of formatting elements, and how many of their elements Lexbor cloned."""

import random
import re

from selectolax.lexbor import LexborHTMLParser


def _names(text: str) -> list[str]:
    return text.split()


FORMATTING = _names("a b big code em font i nobr s small strike strong tt u")
OTHERS = _names(
    "div p span li ul dd dt h1 h2 section address center button form details table td tr "
    "th caption tbody object marquee template select option svg math mi foreignObject "
    "desc sup ruby rt hr br img input body html frameset head title style script textarea "
    "noscript x-y dialog pre applet iframe fieldset col colgroup annotation-xml"
)
ODD = (
    *("<!-- <b> -->", "<!-- x -->", "<!-- ", "-->", "<!x ", "<?x ", ">", '"', "'", " <", "</"),
    *("<b title='", '<p title="', "<i <b", '<a title=">', '<a title="<">', "\0", "<![CDATA["),
    *("]]>", "<script>", "</script>", "<style>b</style>", "<svg><path/></svg>", "<b ", "<a="),
    *("<B A=1>", "</A>", "<p>x</p>", "<div>x</div>", "</p>x", '<b id = "x">', '<i a="x= ">'),
)
_START = re.compile(rf"<(?:{'|'.join(FORMATTING)})(?=[\s/>])", re.IGNORECASE)


def soup(chance: random.Random) -> str:
    """Return parts that are repeated so often that clones multiply."""
    formatting = chance.sample(FORMATTING, chance.randrange(1, 4))
    others = chance.sample(OTHERS, chance.randrange(1, 5))
    parts = []
    for _ in range(chance.randrange(1, 4)):
        unit = [_tag(chance, formatting, others) for _ in range(chance.randrange(1, 9))]
        parts.append("".join(unit) * chance.choice((1, 1, 4, 12, 40)))
    return "".join(parts)


def _tag(chance: random.Random, formatting: list[str], others: list[str]) -> str:
    kind, text = chance.random(), chance.choice(("x", ""))
    if kind < 0.3:
        few = ("", " a0", " a1", f' id="{chance.randrange(10**6)}"', " title='x'", " a b c", "/")
        return f"<{chance.choice(formatting)}{chance.choice(few)}>{text}"
    if kind < 0.45:
        return f"</{chance.choice(formatting)}>"
    if kind < 0.65:
        return f"<{chance.choice(others)}>{text}"
    if kind < 0.85:
        return f"</{chance.choice(others)}>{text}"
    return chance.choice(ODD) if kind < 0.97 else "x"


def cloned_bytes(page: str) -> int:
    """Return the memory of the clones in the tree of a page, at least.

    Each start tag makes one element that is no clone: of those in the tree, the largest.
    """
    weights = sorted(
        (
            650 + sum(150 + len(name) + len(value or "") for name, value in node.attrs.items())
            for node in LexborHTMLParser(page).css(",".join(FORMATTING))
        ),
        reverse=True,
    )
    return sum(weights[len(_START.findall(page)) :])
