"""Compares a mirror with its wiki after a storm: pages, redirects, files, members, revisions."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.peer.storm.model import WikiModel
from tests.peer.storm.reader import Seen
from tests.peer.storm.watch import Watch
from tests.peer.storm.world import World

_CONTENT = b'id="mw-content-text"'
_FOOTER = b'<div class="printfooter"'
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


@dataclass
class Differences:
    """What differs, by kind: title and reason, and how many were compared."""

    found: dict[str, dict[str, str]] = field(default_factory=dict)
    compared: dict[str, int] = field(default_factory=dict)

    def note(self, kind: str, title: str, reason: str | None) -> None:
        """Count a comparison; `reason` None: equal."""
        self.compared[kind] = self.compared.get(kind, 0) + 1
        reasons = self.found.setdefault(kind, {})
        if reason is not None:
            reasons[title] = reason


def compare(world: World, model: WikiModel, watch: Watch, touched: set[str]) -> Differences:
    """Compare everything; the mirror is read first, at once, because the daemon still works."""
    seen = {title: world.reader.read(watch.by_title[title].url) for title in watch.by_title}
    files = {url: world.reader.read(url) for url in watch.files}
    differences = Differences()
    members = model.members()
    for title, one in seen.items():
        kind = _kind(model, title, members)
        differences.note(kind, title, _page_difference(world, watch, title, one, members))
    for url, one in files.items():
        shown = watch.files[url].expectations[-1].shown
        reason = None if shown.accepts(one) else f"status {one.status}, another content"
        differences.note("file", url, reason)
    articles = {title for title in touched & members if model.article(title)}
    _compare_revisions(world, articles, differences)
    return differences


def _kind(model: WikiModel, title: str, members: set[str]) -> str:
    if title not in model.pages:
        return "absent"
    if title not in members:
        return "left"
    return "page" if model.article(title) else "redirect"


def _page_difference(
    world: World, watch: Watch, title: str, seen: Seen, members: set[str]
) -> str | None:
    shown = watch.by_title[title].expectations[-1].shown
    if not seen.is_current:
        return f"member, but {_state(seen)}" if title in members else None
    wiki = world.fetch(watch.by_title[title].url)
    if wiki is None:
        return None if seen.is_redirected else "deleted, but shown as current"
    if visible_text(wiki) == visible_text(seen.body):
        return None
    if not seen.is_redirected or not shown.accepts(seen):
        return f"shows {seen.marks}, not {shown.page}"
    return None


def _state(seen: Seen) -> str:
    return f"status {seen.status}" if seen.status != 200 else "marked as gone"


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("style", "script")
        self.pieces += [value for name, value in attrs if name == "alt" and value]

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)


def visible_text(page: bytes) -> str:
    """Return the visible text of the article of a page, without head, footer and menus."""
    start, end = page.find(_CONTENT), page.find(_FOOTER)
    part = page[page.rfind(b"<", 0, max(start, 0)) : end if end > start else len(page)]
    parser = _Text()
    parser.feed(_COMMENT.sub(b"", part).decode("utf-8", "replace"))
    parser.close()
    return " ".join(" ".join(parser.pieces).split())


def _compare_revisions(world: World, titles: set[str], differences: Differences) -> None:
    """Compare the histories of these members with those that the wiki tells."""
    held = _held_revisions(world)
    for title in sorted(titles):
        told = _told_revisions(world, title)
        known = held.get(title, set())
        missing, extra = len(told - known), len(known - told)
        reason = f"{missing} of {len(told)} missing, {extra} extra" if missing or extra else None
        differences.note("history", title, reason)


def _held_revisions(world: World) -> dict[str, set[int]]:
    file = world.crawld.folder / "histories.xml"
    done = world.crawld.crawld("export", "dump", "--db", world.crawld.db, "--out", file)
    assert done.returncode == 0, done.stderr
    held: dict[str, set[int]] = {}
    for page in ET.parse(file).getroot().findall("{*}page"):
        title = page.findtext("{*}title") or ""
        ids = {int(each.findtext("{*}id") or 0) for each in page.findall("{*}revision")}
        held.setdefault(title.replace("_", " "), set()).update(ids)
    return held


def _told_revisions(world: World, title: str) -> set[int]:
    answer = world.wiki.api(
        action="query", prop="revisions", titles=title, rvlimit="max", rvprop="ids"
    )
    [page] = answer["query"]["pages"]
    return {each["revid"] for each in page.get("revisions", [])}
