"""The API of a MediaWiki whose articles are the pages of a simulated site.

It answers what a mirror asks: the wiki itself, recent changes and the log, titles, and histories.
Times are whole seconds, as a MediaWiki's; the text of a revision is told by its SHA-1 only.

Source: https://www.mediawiki.org/wiki/API:Main_page
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from crawld.simweb.message import SimRequest, SimResponse, build_response
from crawld.simweb.site import SimSite
from crawld.universe.plan import START_AT, HostPlan, PageFateKind

API_PATH: Final = "/w/api.php"
ARTICLES: Final = "/wiki/"

MOST_ROWS: Final = 500
"""Rows of a list in one response."""

WIKI_HEAD: Final = (
    b'<meta name="generator" content="MediaWiki 1.43.0">'
    b'<link rel="EditURI" type="application/rsd+xml" href="/w/api.php?action=rsd">'
)
"""What the head of a page has, by which a mirror knows a MediaWiki."""

_REVISIONS: Final = 1_000_000
"""More than a page has: the number of a revision is that of its page times this, and its own."""

Parameters = Mapping[str, str]
Row = dict[str, Any]


class SimulatedWiki:
    """The API of one host."""

    def __init__(self, plan: HostPlan, site: SimSite) -> None:
        self._plan = plan
        self._site = site
        paths = ((page, site.graph.path(page)) for page in range(plan.pages))
        self._titles = {
            page: unquote(path.removeprefix(ARTICLES)).replace("_", " ")
            for page, path in paths
            if path.startswith(ARTICLES)
        }
        self._pages = {title: page for page, title in self._titles.items()}

    def answer(self, request: SimRequest) -> SimResponse:
        """Answer a request to the API."""
        query = request.target.partition("?")[2]
        asked = dict(parse_qsl(query, keep_blank_values=True))
        body = json.dumps(self._answer(asked, request.at)).encode()
        return build_response(request, 200, body, content_type="application/json; charset=utf-8")

    def _answer(self, asked: Parameters, now: float) -> Row:
        answer: Row = {"query": {}}
        found = answer["query"]
        if "curtimestamp" in asked:
            answer["curtimestamp"] = _time(now)
        if asked.get("meta", "").startswith("siteinfo"):
            found.update(self._site_info())
        for name in filter(None, asked.get("list", "").split("|")):
            found[name] = self._list(name, asked, now, answer)
        if "titles" in asked:
            found["pages"] = [self._of_title(each, now) for each in asked["titles"].split("|")]
        elif "pageids" in asked:
            found["pages"] = [self._history(int(asked["pageids"]), asked, now, answer)]
        if "continue" not in answer:
            answer["batchcomplete"] = True
        return answer

    def _site_info(self) -> Row:
        general = {
            "generator": "MediaWiki 1.43.0",
            "articlepath": f"{ARTICLES}$1",
            "script": "/w/index.php",
            "server": f"http://{self._plan.name}",
            "case": "case-sensitive",
        }
        spaces = {"0": {"id": 0, "case": "case-sensitive", "name": ""}}
        return {
            "general": general,
            "namespaces": spaces,
            "namespacealiases": [],
            "interwikimap": [],
        }

    # --- lists -------------------------------------------------------------------------------

    def _list(self, name: str, asked: Parameters, now: float, answer: Row) -> Any:  # noqa: ANN401
        if name == "querypage":
            return {"results": []}
        if name == "recentchanges":
            return self._recent_changes(asked, now, answer)
        if name == "logevents":
            since = _seconds(asked.get("lestart"))
            title = asked.get("letitle")
            rows = [row for at, row in self._log(now) if at >= since]
            return [row for row in rows if title in (None, row["title"])][:MOST_ROWS]
        return []

    def _recent_changes(self, asked: Parameters, now: float, answer: Row) -> list[Row]:
        since, limit = _seconds(asked.get("rcstart")), asked.get("rclimit", "10")
        most = MOST_ROWS if limit == "max" else int(limit)
        rows = [row for at, row in sorted(self._edits(since, now), key=lambda each: each[0])]
        first = int(asked.get("rccontinue", "0"))
        if first + most < len(rows) and asked.get("rclimit") == "max":
            answer["continue"] = {"rccontinue": str(first + most), "continue": "-||"}
        return rows[first : first + most]

    def _edits(self, since: float, now: float) -> Iterator[tuple[float, Row]]:
        """Yield the listed edits and creations since a time (Unix seconds), with their times."""
        if self._plan.keeps_changes_s is not None:
            since = max(since, now - self._plan.keeps_changes_s)
        for page, title in self._titles.items():
            changes = self._site.changes_of(page)
            last = changes.changes_until(now)
            for revision in range(changes.changes_until(since - 1.0), last):
                at = changes.change_at(revision)
                if int(at) >= since:
                    yield at, self._edit(page, title, revision + 1, at)

    def _edit(self, page: int, title: str, revision: int, at: float) -> Row:
        number = _revision_id(page, revision)
        kept = {"type": "edit", "ns": 0, "title": title, "pageid": page, "rcid": number}
        old = {"revid": number, "old_revid": number - 1, "timestamp": _time(at)}
        return {**kept, **old, "oldlen": 1_000, "newlen": 1_000, "tags": [], "redirect": False}

    def _log(self, now: float) -> Iterator[tuple[float, Row]]:
        """Yield the deletions and restorations until a time, each with its time."""
        for number, fate in enumerate(self._plan.events, start=1):
            at = START_AT + fate.from_s
            title = self._titles.get(fate.page)
            if at > now or title is None:
                continue
            action = "restore" if fate.kind is PageFateKind.RESTORED else "delete"
            row = {"logid": number, "type": "delete", "action": action, "params": {}}
            yield at, {**row, "ns": 0, "title": title, "pageid": 0, "timestamp": _time(at)}

    # --- pages -------------------------------------------------------------------------------

    def _of_title(self, title: str, now: float) -> Row:
        page = self._pages.get(title)
        if page is None or not self._exists(page, now):
            return {"ns": 0, "title": title, "missing": True}
        last = self._site.revision(page, now)
        return {**self._page(page, now), "revisions": [self._revision(page, last)]}

    def _history(self, page: int, asked: Parameters, now: float, answer: Row) -> Row:
        if page not in self._titles or not self._exists(page, now):
            return {"pageid": page, "missing": True}
        last = self._site.revision(page, now) - int(asked.get("rvcontinue", "0"))
        first = max(last - MOST_ROWS + 1, 0)
        if first > 0:
            done = self._site.revision(page, now) - first + 1
            answer["continue"] = {"rvcontinue": str(done), "continue": "||"}
        revisions = [self._revision(page, each) for each in range(last, first - 1, -1)]
        return {**self._page(page, now), "revisions": revisions}

    def _exists(self, page: int, now: float) -> bool:
        return self._plan.page_event(page, now - START_AT) is None

    def _page(self, page: int, now: float) -> Row:
        revision = self._site.revision(page, now)
        return {
            "ns": 0,
            "title": self._titles[page],
            "pageid": page,
            "touched": _time(self._made_at(page, revision)),
            "lastrevid": _revision_id(page, revision),
        }

    def _revision(self, page: int, revision: int) -> Row:
        text = hashlib.sha1(f"{page} {revision}".encode(), usedforsecurity=False)
        return {
            "revid": _revision_id(page, revision),
            "parentid": _revision_id(page, revision - 1) if revision else 0,
            "timestamp": _time(self._made_at(page, revision)),
            "size": 1_000,
            "sha1": text.hexdigest(),
            "tags": [],
        }

    def _made_at(self, page: int, revision: int) -> float:
        return self._site.changes_of(page).change_at(revision - 1) if revision else START_AT


def _revision_id(page: int, revision: int) -> int:
    return page * _REVISIONS + revision + 1


def _time(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(text: str | None) -> float:
    return 0.0 if text is None else datetime.fromisoformat(text).timestamp()
