"""A small wiki on a real socket: pages, and an api.php with scripted faults."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import parse_qs, unquote, urlsplit

import trio

from tests.daemon.http_server import listen, next_head

HTML = "text/html; charset=utf-8"
JSON = "application/json; charset=utf-8"


def sha1(text):
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = JSON

    def encoded(self):
        lines = [f"HTTP/1.1 {self.status} Status", f"Content-Type: {self.content_type}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines += [f"Content-Length: {len(self.body)}", "", ""]
        return "\r\n".join(lines).encode() + self.body


def reply(value, status=200, **headers):
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(status, json.dumps(value).encode(), named)


def error(code, status=200, headers=None, **more):
    return reply({"error": {"code": code, "info": "no", **more}}, status, **(headers or {}))


def with_lists(answer, lists):
    """Return the response to a query for pages that asks for lists, too."""
    value = json.loads(answer.body)
    return reply({**value, "query": {**value["query"], **lists}}) if "query" in value else answer


def page_text(text, status=200):
    return Answer(status, text.encode(), content_type=HTML)


@lru_cache(1_000)
def _parameters(query):
    """Return the parameters of a query; conditions that are polled read all of a test each time."""
    given = parse_qs(query, keep_blank_values=True)
    return {key: value[0] for key, value in given.items()}


@dataclass
class ScriptedWiki:
    """Pages by title, each a list of (revision id, time, text), and scripted faults.

    Attributes:
        pages: the histories.
        rvlimit: revisions per response.
        titles_limit: titles per request.
        faults: called in turn with the parameters of each API request; the first answer counts.
        requests: (time, target) of every request, in order.
    """

    pages: dict
    rvlimit: int = 500
    titles_limit: int = 50
    robots: str = ""
    api: str = "/w/api.php"
    host: str = "a.test"
    faults: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    port: int = 0

    def url(self, title="Start"):
        return f"http://{self.host}:{self.port}/wiki/{title}"

    def api_requests(self):
        """Return the parameters of each request to the API."""
        parts = [target.partition("?") for _, target in self.requests]
        return [_parameters(query) for path, _, query in parts if path.endswith("api.php")]

    async def serve(self, task_status=trio.TASK_STATUS_IGNORED):
        await listen(self, self._connection, task_status)

    async def _connection(self, stream):
        try:
            rest = b""
            while (read := await next_head(stream, rest)) is not None:
                head, rest = read
                target = head.split(" ", 2)[1]
                self.requests.append((trio.current_time(), target))
                await stream.send_all(self._answer(target).encoded())
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    def _answer(self, target):
        path, _, query = target.partition("?")
        if path == "/robots.txt":
            return Answer(200, self.robots.encode(), content_type="text/plain")
        if path == self.api:
            return self._api(_parameters(query))
        return self._view(unquote(path.removeprefix("/wiki/")).replace("_", " "))

    def _view(self, title):
        if title not in self.pages:
            return page_text("no such page", 404)
        links = "".join(f'<a href="/wiki/{other}">{other}</a>' for other in self.pages)
        edit = f'<link rel="EditURI" href="//{self.host}:{self.port}/w/api.php?action=rsd">'
        generator = '<meta name="generator" content="MediaWiki 1.99"/>'
        text = self.pages[title][-1][2] if self.pages[title] else ""
        return page_text(f"<html><head>{generator}{edit}</head><body>{links}<p>{text}</p></body>")

    def _api(self, given):
        for fault in self.faults:
            if (answer := fault(given)) is not None:
                return answer
        if given.get("meta") == "siteinfo":
            return reply({"batchcomplete": True, "query": self._siteinfo()})
        if given.get("list") == "querypage":
            return reply({"batchcomplete": True, "query": {"querypage": {"results": []}}})
        lists = {name: [] for name in given["list"].split("|")} if "list" in given else {}
        if "titles" in given:
            return with_lists(self._titles(given["titles"].split("|")), lists)
        if "pageids" in given:
            answer = self._history(int(given["pageids"]), given.get("rvcontinue"))
            return with_lists(answer, lists)
        return reply({"batchcomplete": True, "query": lists})

    def _siteinfo(self):
        return {
            "general": {
                "generator": "MediaWiki 1.99",
                "articlepath": "/wiki/$1",
                "script": "/w/index.php",
                "server": f"//{self.host}:{self.port}",
                "case": "case-sensitive",
            },
            "namespaces": {
                "0": {"id": 0, "case": "case-sensitive", "name": ""},
                "1": {"id": 1, "case": "case-sensitive", "name": "Talk", "canonical": "Talk"},
            },
            "namespacealiases": [],
            "interwikimap": [],
        }

    def _titles(self, titles):
        if len(titles) > self.titles_limit:
            return error("toomanyvalues", limit=self.titles_limit)
        pages = []
        for title in titles:
            if title in self.pages:
                pages.append({**self._page(title), "revisions": self._rows(title)[:1]})
            else:
                pages.append({"ns": 0, "title": title, "missing": True})
        return reply({"batchcomplete": True, "query": {"pages": pages}})

    def _history(self, number, cursor):
        title = next((name for name in self.pages if self._page(name)["pageid"] == number), None)
        if title is None:
            return reply({"query": {"pages": [{"pageid": number, "missing": True}]}})
        start = int(cursor) if cursor else 0
        rows = self._rows(title)
        end = start + self.rvlimit
        more = {"continue": {"rvcontinue": str(end), "continue": "||"}} if end < len(rows) else {}
        page = {**self._page(title), "revisions": rows[start:end]}
        return reply({**more, "query": {"pages": [page]}, "limits": {"revisions": self.rvlimit}})

    def _page(self, title):
        return {"ns": 0, "title": title, "pageid": 1 + list(self.pages).index(title)}

    def _rows(self, title):
        rows = sorted(self.pages[title], key=lambda row: (row[1], row[0]), reverse=True)
        return [
            {
                "revid": number,
                "parentid": 0,
                "timestamp": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "size": len(text),
                "sha1": sha1(text),
                "tags": [],
            }
            for number, at, text in rows
        ]


def is_for(given, **wanted):
    """Whether an API request has these parameters."""
    return all(given.get(key) == str(value) for key, value in wanted.items())


def path_of(target):
    return urlsplit(target).path
