"""Splitting a page at all tags at once equals reading it tag by tag."""

import re
from zlib import crc32

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawld.core.content import tags
from crawld.core.content.blocks import blocks_of
from crawld.core.content.html import parse
from crawld.core.content.tags import block_runs
from crawld.core.content.targets import TARGET_END, TARGET_START, image_target, link_target

BLOCKS = "body div h2 li ol p pre select option table tbody tr ul"
ROLES = {
    **dict.fromkeys(BLOCKS.split(), "block"),
    **dict.fromkeys(["template", "svg", "object"], "skip"),
    **dict.fromkeys(["td", "th"], "cell"),
    **dict.fromkeys(["br", "hr"], "space"),
    "a": "link",
    "img": "image",
}
KINDS = {"h2": "h2: ", "li": "* ", "option": "* ", "tr": "| ", "pre": "pre: "}
RAW = re.compile(r"<!--.*?-->|<(script|style|noscript|iframe)[ >].*?</\1>", re.DOTALL)
HIDDEN = re.compile(r'(?:^| )(?:hidden="|style="[^"]*(?:display\s*:\s*none))', re.IGNORECASE)


class Reader:
    """Reads serialized HTML tag by tag."""

    def __init__(self, markup: str) -> None:
        self.found, self.text = [], ""
        self.open, self.kind, self.place = [], "", 0
        self.pieces = iter(RAW.sub("", markup).split("<"))
        self.text = next(self.pieces)
        for piece in self.pieces:
            tag, _, text = piece.partition(">")
            name, _, attributes = tag.partition(" ")
            text_after = self.read(name, attributes, text)
            self.text += text_after
        self.end()

    def read(self, name: str, attributes: str, text: str) -> str:
        role = ROLES.get(name.removeprefix("/"))
        if HIDDEN.search(attributes):
            role = None if name in ("br", "img") else "skip"
        if role == "skip" and name[:1] != "/":
            return self.text_after(name)
        if role == "block":
            self.end()
            self.close() if name[0] == "/" else self.begin(name, attributes)
        return self.inline(role, attributes) + text if name[:1] != "/" else text

    def inline(self, role: str | None, attributes: str) -> str:
        value = re.search(r'(?:^| )(?:href|src)="([^"]*)"', attributes)
        if role == "link":
            return link_target(value[1]) if value else ""
        if role == "image":
            return image_target(value[1]) if value else ""
        return {"space": "\n", "cell": " | "}.get(role, "")

    def text_after(self, name: str) -> str:
        depth = 1
        for piece in self.pieces:
            tag, _, text = piece.partition(">")
            depth += (tag.split(" ")[0] == name) - (tag == "/" + name)
            if not depth:
                return text
        return ""

    def begin(self, name: str, attributes: str) -> None:
        self.open.append((self.kind, self.place))
        self.kind = KINDS.get(name, self.kind if self.kind == "pre: " else "")
        tokens = " ".join(re.findall(r'(?:^| )(?:id|class)="([^"]*)"', attributes)).split()
        stable = sorted({token for token in tokens if not re.search(r"\d", token)})
        self.place = crc32(" ".join([name, *stable]).encode(), self.place)

    def close(self) -> None:
        if self.open:
            self.kind, self.place = self.open.pop()

    def end(self) -> None:
        whole, self.text = self.text.replace("&nbsp;", " ").strip(), ""
        for line in whole.split("\n") if self.kind == "pre: " else [whole]:
            if text := " ".join(line.split()).strip("| "):
                self.found.append((self.kind + text, self.place))


pieces = st.sampled_from(
    [
        *("<p>", "</p>", "<div class='ad b1'>", "</div>", "<table>", "<tr><td>", "</table>"),
        *("<li>", "<ul id=menu>", "</ul>", "<h2>", "</h2>", "<pre>", "</pre>", "x\n y\n", "<br>"),
        *("<a href='/x'>", "<a href='/x?sid=1&y=2'>", "<a rel=nofollow href=/r>", "<a href='#n'>"),
        *("<a href=''>", "<a href='javascript:x'>", "<a href=/j#x>", "<a name=q>", "</a>", "<b>"),
        *("</b>", "<b hidden>", "<span style='color:red;display: none'>", "</span>"),
        *("<span title='hidden'>", "<br hidden>", "<img src=i?t=1>", "<img hidden src=j>"),
        *("<script>a<b>c</script>", "<!-- <p> hidden -->", "<style>p>a{}</style>", "<svg>"),
        *("<a xlink:href=y>", "</svg>", "<template>", "</template>", "<object>", "<noscript><p>n"),
        *("</noscript>", "<iframe><p></iframe>", "<select><option>", "</select>"),
        *("<custom-element-of-length hidden>", "</custom-element-of-length>", "<math>"),
        *("<textarea>", "<textarea>", "word", " 17 ", "<", ">", "é&nbsp;ü", "&amp;", "none"),
        *("hidden", '"', "\0", "</nothing>"),
    ]
)


@pytest.fixture(params=["piece by piece", "all at once"])
def cut(request, monkeypatch):
    """Both ways to cut markup."""
    if request.param == "all at once":
        monkeypatch.setattr(tags, "FEW_TAGS", -1)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(markup=st.lists(pieces, max_size=40).map("".join))
def test_blocks_are_those_read_tag_by_tag(cut, markup):
    page = parse(markup)
    body = page.tree.body
    blocks = blocks_of(page.tree, "")
    read = Reader((body.html if body is not None else None) or "").found
    assert list(zip(blocks.texts, blocks.places, strict=True)) == read


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(markup=st.text('<>ab"=/- !\0', max_size=60))
def test_any_markup_is_cut(cut, markup):
    *_, (_, last) = block_runs(markup)
    assert last is None


def test_targets_of_links_stay_in_their_text(cut):
    found = list(block_runs('<p>see <a href="/x" title="y">x</a>, <a href="/x?sid=1">y</a></p>'))
    target = f"{TARGET_START}/x{TARGET_END}"
    assert found == [("", "p"), (f"see {target}x, {target}y", None), ("", None)]
