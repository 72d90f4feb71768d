"""Edit a wiki under load, and compare its mirror with it from outside the daemon.

`WikiEditor` edits and imports pages and records every text it saved. Each
text contains a unique mark, so a copy shows which edit it holds. `CopyObserver` reads the mirror's
database beside the daemon and records when each edit became visible there. Freshness and the delay
from an edit to its copy follow from both.
"""

from __future__ import annotations

import random
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from crawld.core.content.analysis import read_blocks
from crawld.store.engine.connection import open_connection
from crawld.store.versions import version
from tests.peer.mediawiki import MediaWiki
from tests.peer.wiki_dump import WORDS, Revision, WikiPage

_MARK = re.compile(r"Mark of this text: ([a-z ]+)\.")


def edit_mark(number: int) -> str:
    """Return words that encode a number; no digits, because a page may have them as noise."""
    words = []
    for _ in range(4):
        number, word = divmod(number, len(WORDS))
        words.append(WORDS[word])
    return " ".join(words)


def marks_in(body: bytes) -> list[str]:
    """Return the marks on a page, including those of earlier edits."""
    return _MARK.findall(body.decode("utf-8", "replace"))


def shown_text(body: bytes) -> str:
    """Return the visible text of a page's article, without head, footer and menus."""
    start, end = body.find(b'id="mw-content-text"'), body.find(b'<div class="printfooter"')
    part = body[body.rfind(b"<", 0, start) : end if end > start else len(body)]
    return read_blocks(part, "text/html; charset=utf-8").visible_text()


@dataclass(slots=True)
class Edit:
    """One saved text: its title, the latest possible save time, and its mark."""

    title: str
    at: float
    mark: str


@dataclass
class WikiEditor:
    """Edits a wiki and records its edits.

    Attributes:
        edits: saved texts, in order.
        texts: paragraphs by title.
    """

    wiki: MediaWiki
    titles: Sequence[str]
    seed: int = 1
    zipf: float = 0.8
    edits: list[Edit] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._order = list(self.titles)
        self._rng.shuffle(self._order)
        self._weights = [(rank + 1) ** -self.zipf for rank in range(len(self._order))]

    def edit(self, title: str | None = None) -> Edit:
        """Save a new text under a title; by default a random one, skewed."""
        if title is None:
            [title] = self._rng.choices(self._order, self._weights)
        words = edit_mark(7_919 * len(self.edits) + 101)
        self.wiki.edit(title, self.text(title, words))
        done = Edit(title, time.time(), words)
        self.edits.append(done)
        return done

    def text(self, title: str, words: str) -> str:
        """Return the text of a title with one paragraph rewritten, as people edit."""
        own = self.texts.setdefault(title, [self._random_sentence() for _ in range(6)])
        own[self._rng.randrange(len(own))] = (
            f"{self._random_sentence()} Mark of this text: {words}."
        )
        return "\n\n".join(f"== Part {part} ==\n{sentence}" for part, sentence in enumerate(own))

    def _random_sentence(self) -> str:
        return " ".join(self._rng.choices(WORDS, k=40)).capitalize() + "."

    def import_revision(self, title: str, at: int) -> str:
        """Import a revision of a title, older or newer than the others; return its mark."""
        words = edit_mark(15_485_863 + len(self.edits) * 31 + at % 1_000)
        text = self.text(title, words)
        self.wiki.import_pages([WikiPage(title, (Revision(at, text, "import"),))])
        return words


class CopyObserver:
    """Reads a mirror's database repeatedly, from outside the daemon.

    Attributes:
        seen: by URL, the marks of every copy and when it was first seen.
    """

    def __init__(self, db: Path) -> None:
        self._db = db
        self._after = 0
        self.seen: dict[str, list[tuple[float, list[str]]]] = {}

    def read_new_copies(self) -> None:
        """Read the copies stored since the last call."""
        with closing(open_connection(self._db, read_only=True)) as connection:
            rows = connection.execute(
                "SELECT version.version_id, url FROM version JOIN page USING (page_id)"
                " WHERE version.version_id > ? ORDER BY version.version_id",
                (self._after,),
            ).fetchall()
            for version_id, url in rows:
                body = version.read_body(connection, version_id)
                self.seen.setdefault(url, []).append((time.time(), marks_in(body or b"")))
                self._after = version_id


@dataclass(frozen=True, slots=True)
class CopyFreshness:
    """Result of a run.

    Attributes:
        freshness: mean share of pages whose copy is current.
        lag_s: quantiles (.5, .9, .99) of the time from an edit to a copy of it or of a later one.
        edits: number of edits.
        uncopied: edits without a copy at the end.
        least: smallest share of current pages at any time.
    """

    freshness: float
    lag_s: tuple[float, float, float]
    edits: int
    uncopied: int
    least: float


def measure_copies(
    edits: Sequence[Edit],
    seen: Mapping[str, Sequence[tuple[float, Sequence[str]]]],
    urls: Mapping[str, str],
    *,
    since: float,
    until: float,
) -> CopyFreshness:
    """Return freshness and lag of a run.

    A page is stale from an edit until a copy of that edit, or of a later one, is in the database.
    Pages that nobody edited are fresh.

    Args:
        edits: in the order they were saved.
        seen: `CopyObserver.seen`.
        urls: URL of every title that counts.
        since, until: the period.
    """
    order: dict[str, dict[str, int]] = {}
    by_title: dict[str, list[Edit]] = {}
    for edit in edits:
        by_title.setdefault(edit.title, []).append(edit)
        order.setdefault(edit.title, {})[edit.mark] = len(by_title[edit.title]) - 1
    lags: list[float] = []
    uncopied = 0
    steps: list[tuple[float, int]] = []
    for title, own in by_title.items():
        copies = [
            (at, max((order[title].get(words, -1) for words in marks), default=-1))
            for at, marks in seen.get(urls[title], ())
        ]
        stale_since: float | None = None
        events = sorted(
            [(edit.at, 1, place) for place, edit in enumerate(own)]
            + [(at, 0, place) for at, place in copies]
        )
        latest, held = -1, -1
        for at, kind, place in events:
            if kind:
                latest = place
            else:
                held = max(held, place)
            stale = held < latest
            if stale and stale_since is None:
                stale_since = at
                steps.append((at, 1))
            elif not stale and stale_since is not None:
                stale_since = None
                steps.append((at, -1))
        for place, edit in enumerate(own):
            if not since <= edit.at < until:
                continue
            copied = [at for at, shown in copies if shown >= place]
            if copied:
                lags.append(max(copied[0] - edit.at, 0.0))
            else:
                uncopied += 1
    freshness, least = _mean_fresh(steps, len(urls), since, until)
    lags.sort()
    quantiles = tuple(
        lags[min(int(q * len(lags)), len(lags) - 1)] if lags else 0.0 for q in (0.5, 0.9, 0.99)
    )
    return CopyFreshness(freshness, quantiles, len(lags) + uncopied, uncopied, least)  # type: ignore[arg-type]


def _mean_fresh(
    steps: list[tuple[float, int]], pages: int, since: float, until: float
) -> tuple[float, float]:
    stale, at, area, most = 0, since, 0.0, 0
    for when, step in sorted(steps):
        if when > at:
            end = min(when, until)
            area += stale * max(end - at, 0.0)
            at = max(at, end)
        stale += step
        if since <= when < until:
            most = max(most, stale)
    area += stale * max(until - at, 0.0)
    return 1.0 - area / (pages * (until - since)), 1.0 - most / pages


def find_differences(wiki: MediaWiki, db: Path, titles: Sequence[str]) -> dict[str, str]:
    """Compare the text of every title with its mirror; return the differences by title.

    A title that the wiki does not have must be gone in the mirror; its last copy stays.
    """
    found = {}
    with closing(open_connection(db, read_only=True)) as connection:
        held = {
            url: (version_id, outcome)
            for url, version_id, outcome in connection.execute(
                # A redirected URL has passed its copies on to its target.
                "SELECT page.url, ifnull(page.version_id, target.version_id), page.last_outcome"
                " FROM page LEFT JOIN page AS target"
                " ON page.version_id IS NULL AND target.url = page.redirect_url"
            )
        }
        for title in titles:
            fetched = fetch(wiki.url(title))
            version_id, outcome = held.get(wiki.url(title), (None, None))
            if fetched is None:
                if outcome not in ("gone", "soft_gone", None):
                    found[title] = f"deleted, and the mirror says {outcome}"
                continue
            body = version.read_body(connection, version_id) if version_id else None
            if outcome in ("gone", "soft_gone"):
                found[title] = "there, and the mirror says it is gone"
            elif body is None:
                found[title] = "there, and the mirror has no copy"
            elif shown_text(body) != shown_text(fetched):
                found[title] = f"shows {marks_in(fetched)}, the mirror {marks_in(body)}"
    return found


def fetch(url: str) -> bytes | None:
    """Return what a server itself shows at a URL, without a proxy; None for a 404."""
    request = urllib.request.Request(url, headers={"User-Agent": "judge"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=120) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            return None
        raise
