"""A real MediaWiki with a history: Debian's package on SQLite, php-fpm behind nginx, loopback only.

It is installed and seeded once (`make_template`). Each test works on its own copy of that folder:
settings are relative to the folder, and the server's name is written at start. Nothing is kept in
shared memory, so the effect of a maintenance script is visible at once. MediaWiki jobs run only on
request. Switches are files: a test can turn lag, read-only mode and 503 on during a crawl.

Responses: page views carry Last-Modified and honor If-Modified-Since; a moved page answers 200 with
the text of its target; a missing or deleted page answers 404.
"""

from __future__ import annotations

import contextlib
import http.cookiejar
import json
import os
import shutil
import socket
import sqlite3
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crawld.simweb.ledger import Ledger
from tests.peer import mediawiki_config, require_peer
from tests.peer.nginx import Nginx, NginxOptions, with_nginx_config
from tests.peer.process import ManagedProcess, ProcessError, run
from tests.peer.wiki_dump import EPOCH_AT, WikiPage, main_page_text, make_histories, to_xml_dump

USER = "Admin"
PASSWORD = "a-password-of-loopback"

MAINTENANCE_S = 300.0
"""Time limit of a maintenance script; the longest import takes 15 s on an idle machine."""

ROBOTS = "User-agent: *\nDisallow: /w/\n"


class MediaWiki:
    """A running wiki.

    Attributes:
        pages: its initial pages.
        origin: scheme, host and port.
        nginx: its web server.
        editors_origin: that of the web server for edits, if it has one of its own.
    """

    def __init__(
        self, folder: Path, nginx: Nginx, pages: Sequence[WikiPage], editors: Nginx | None = None
    ) -> None:
        self.pages = pages
        self.nginx = nginx
        self.origin = nginx.url("").removesuffix("/")
        self.editors_origin = (editors or nginx).url("").removesuffix("/")
        self._folder = folder
        self._control = folder / "control"
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._client = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        self._token = ""

    def url(self, title: str = "Main Page") -> str:
        """Return the URL of a page, in the form that MediaWiki uses in links."""
        path = urllib.parse.quote(title.replace(" ", "_"), safe=";@$!*(),/~:")
        return f"{self.origin}/wiki/{path}"

    def ledger(self) -> Ledger:
        """Return all requests, including those of this harness, in order of arrival."""
        return self.nginx.ledger()

    def api(self, **parameters: object) -> dict[str, Any]:
        """Send a GET request to `api.php` and return the response."""
        return self._ask(parameters, post=False)

    def edit(self, title: str, text: str, summary: str = "edit of a test") -> int:
        """Save a text, creating the page if needed, and return the revision id."""
        saved = self._write({"action": "edit", "title": title, "text": text, "summary": summary})[
            "edit"
        ]
        return int(saved.get("newrevid", 0))

    def move(self, title: str, to: str, *, redirect: bool = True) -> None:
        """Rename a page; by default its old title becomes a redirect."""
        fields = {"action": "move", "from": title, "to": to, "reason": "move of a test"}
        self._write(fields if redirect else {**fields, "noredirect": 1})

    def delete(self, title: str) -> None:
        """Delete a page."""
        self._write({"action": "delete", "title": title, "reason": "deletion of a test"})

    def undelete(self, title: str, *, timestamps: Sequence[str] = ()) -> None:
        """Restore a deleted page with its revisions of some times; by default all."""
        some = {"timestamps": "|".join(timestamps)} if timestamps else {}
        reason = "undeletion of a test"
        self._write({"action": "undelete", "title": title, "reason": reason, **some})

    def merge(self, title: str, into: str, *, until: str = "") -> None:
        """Merge revisions of a page up to a time, by default all, into another page."""
        options = {"timestamp": until} if until else {}
        self._write({"action": "mergehistory", "from": title, "to": into, **options})

    def revisions(self, title: str) -> list[dict[str, Any]]:
        """Return all revisions of a page, the newest first: `revid` and `timestamp`."""
        asked = self.api(
            action="query", prop="revisions", titles=title, rvprop="ids|timestamp", rvlimit=500
        )
        [page] = asked["query"]["pages"]
        found: list[dict[str, Any]] = page.get("revisions", [])
        return found

    def import_pages(self, pages: Sequence[WikiPage]) -> None:
        """Import pages or revisions with their own timestamps."""
        _import(self._folder, pages)

    def import_dump(self, pages: Sequence[WikiPage]) -> None:
        """Import pages or revisions as an administrator does, with a row in the log."""
        fields = {"action": "import", "interwikiprefix": "old", "summary": "import of a test"}
        self._write(fields, {"xml": ("dump.xml", to_xml_dump(pages).encode())})

    def add_revisions(self, title: str, times: Sequence[float]) -> None:
        """Give a page revisions of these times after its latest one, all with the text of that.

        They are rows of the wiki's tables: an import takes 4 ms for each, this 20 µs.
        """
        with contextlib.closing(self._database()) as wiki:
            find = (
                "SELECT page_id, page_latest FROM page WHERE page_namespace = 0 AND page_title = ?"
            )
            page, latest = wiki.execute(find, (title.replace(" ", "_"),)).fetchone()
            (last,) = wiki.execute("SELECT max(rev_id) FROM revision").fetchone()
            for revision, at in enumerate(times, last + 1):
                shown = time.strftime("%Y%m%d%H%M%S", time.gmtime(at))
                changed = {
                    "rev_id": revision,
                    "rev_timestamp": shown,
                    "rev_sha1": f"{revision:031}",
                }
                _copy_row(wiki, "revision", "rev_id", latest, changed)
                _copy_row(wiki, "slots", "slot_revision_id", latest, {"slot_revision_id": revision})
                comment = {"revcomment_rev": revision}
                _copy_row(wiki, "revision_comment_temp", "revcomment_rev", latest, comment)
            newest = last + len(times)
            wiki.execute("UPDATE page SET page_latest = ? WHERE page_id = ?", (newest, page))
            wiki.commit()

    def _database(self) -> sqlite3.Connection:
        return sqlite3.connect(self._folder / "data" / "wiki.sqlite", timeout=120)

    def upload(self, name: str, content: bytes) -> None:
        """Upload a file, or another content of it."""
        fields = {"action": "upload", "filename": name, "ignorewarnings": 1, "comment": "a test"}
        self._write(fields, {"file": (name, content)})

    def run_jobs(self) -> None:
        """Run the jobs that edits queue: link tables, categories, pages that use a template."""
        self.maintain("runJobs.php", "--quiet")

    def job_runner(self) -> ManagedProcess:
        """Start a process that runs jobs as they are queued; the caller ends it."""
        return ManagedProcess(
            [*_maintenance("runJobs.php"), "--wait", "--quiet"],
            self._folder,
            name="jobs",
            environment=_environment(self._folder / "LocalSettings.php"),
        )

    def maintain(self, script: str, *arguments: str) -> str:
        """Run a maintenance script and return its output."""
        return _maintain(self._folder, script, *arguments)

    def write_sitemap(self) -> None:
        """Write the wiki's sitemap, an index and compressed files under `/sitemap/`."""
        folder = self._control / "sitemap"
        folder.mkdir(exist_ok=True)
        self.maintain(
            "generateSitemap.php",
            *("--fspath", str(folder), "--urlpath", "/sitemap/", "--server", self.origin),
            *("--compress", "yes", "--identifier", "wiki", "--skip-redirects"),
        )

    def configure(self, settings: str) -> None:
        """Append lines of PHP to the wiki's LocalSettings.php."""
        with (self._folder / "LocalSettings.php").open("a") as file:
            file.write(settings)

    def lag(self, lag_s: float) -> AbstractContextManager[None]:
        """Report a database lag to `maxlag` requests of the API until the block ends."""
        return self._switch("lag", str(lag_s))

    def read_only(self, reason: str = "maintenance") -> AbstractContextManager[None]:
        """Refuse edits until the block ends."""
        return self._switch("readonly", reason)

    def set_robots(self, text: str | None) -> None:
        """Serve another robots.txt; None for none."""
        if text is None:
            (self._control / "robots.txt").unlink(missing_ok=True)
        else:
            (self._control / "robots.txt").write_text(text)

    @contextlib.contextmanager
    def _switch(self, name: str, text: str) -> Iterator[None]:
        (self._control / name).write_text(text)
        try:
            yield
        finally:
            (self._control / name).unlink()

    def _write(
        self, fields: Mapping[str, object], files: Mapping[str, tuple[str, bytes]] | None = None
    ) -> dict[str, Any]:
        if not self._token:
            self._log_in()
        return self._ask({**fields, "token": self._token}, post=True, files=files)

    def _log_in(self) -> None:
        asked = self.api(action="query", meta="tokens", type="login")
        login = {
            "action": "clientlogin",
            "username": USER,
            "password": PASSWORD,
            "loginreturnurl": self.origin,
            "logintoken": asked["query"]["tokens"]["logintoken"],
        }
        answer = self._ask(login, post=True)
        assert answer["clientlogin"]["status"] == "PASS", answer
        self._token = self.api(action="query", meta="tokens")["query"]["tokens"]["csrftoken"]

    def _ask(
        self,
        parameters: dict[str, object],
        *,
        post: bool,
        files: Mapping[str, tuple[str, bytes]] | None = None,
    ) -> dict[str, Any]:
        fields = {**parameters, "format": "json", "formatversion": 2}
        query = urllib.parse.urlencode(fields)
        address = f"{self.editors_origin}/w/api.php"
        if files:
            body, content_type = _multipart(fields, files)
            request = urllib.request.Request(address, body, {"Content-Type": content_type})
        else:
            request = urllib.request.Request(
                address if post else f"{address}?{query}", data=query.encode() if post else None
            )
        with self._client.open(request, timeout=120) as answered:
            answer: dict[str, Any] = json.load(answered)
        if post and "error" in answer:
            raise AssertionError(f"MediaWiki refused {parameters.get('action')}: {answer['error']}")
        return answer


def _copy_row(
    wiki: sqlite3.Connection, table: str, key: str, value: int, changed: Mapping[str, object]
) -> None:
    """Copy the row of a key with some columns changed; not every version has every table."""
    columns = [name for _, name, *_ in wiki.execute(f"PRAGMA table_info({table})")]
    if columns:
        taken = ", ".join(f":{name}" if name in changed else name for name in columns)
        wiki.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {taken} FROM {table}"
            f" WHERE {key} = :at",
            {**changed, "at": value},
        )


def _multipart(
    fields: Mapping[str, object], files: Mapping[str, tuple[str, bytes]]
) -> tuple[bytes, str]:
    """Return a body of multipart/form-data and its Content-Type."""
    boundary = "a-boundary-that-no-file-of-a-test-contains"
    parts = [
        f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'.encode()
        for name, value in fields.items()
    ]
    for name, (file_name, content) in files.items():
        disposition = f'Content-Disposition: form-data; name="{name}"; filename="{file_name}"'
        parts.append(
            f"{disposition}\r\nContent-Type: application/octet-stream\r\n\r\n".encode() + content
        )
    body = b"".join(b"--%s\r\n%s\r\n" % (boundary.encode(), part) for part in parts)
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


@dataclass(frozen=True, slots=True)
class WikiTemplate:
    """An installed and seeded wiki that does not run."""

    folder: Path
    pages: tuple[WikiPage, ...]


def make_template(folder: Path) -> WikiTemplate:
    """Install a wiki and seed it with 30 articles of 4 revisions each."""
    seeded = _seeded_pages()
    return install_wiki(folder, seeded, main_page_text(seeded))


def template_of(folder: Path) -> WikiTemplate:
    """Return a template that `make_template` made."""
    return WikiTemplate(folder, tuple(_seeded_pages()))


def _seeded_pages() -> list[WikiPage]:
    return make_histories(pages=30, revisions=4, seed=1)


def install_wiki(folder: Path, pages: Sequence[WikiPage], main_page: str) -> WikiTemplate:
    """Install a wiki with these pages."""
    require_peer("mediawiki", "php", "php-fpm", "nginx")
    for part in ("data", "cache", "tmp", "control"):
        (folder / part).mkdir(parents=True)
    _php(
        folder,
        "install.php",
        *("--conf", folder / "none.php", "--confpath", folder / "tmp"),
        *("--dbtype", "sqlite", "--dbpath", folder / "data", "--dbname", "wiki"),
        *("--server", "http://127.0.0.1", "--scriptpath", "/w", "--lang", "en"),
        *("--pass", PASSWORD, "Entries", USER),
    )
    _write_settings(folder, "http://127.0.0.1")
    (folder / "control" / "robots.txt").write_text(ROBOTS)
    _import(folder, pages)
    _maintain(folder, "edit.php", "--user", USER, "Main Page", text=main_page)
    return WikiTemplate(folder, tuple(pages))


@contextlib.contextmanager
def with_mediawiki(
    folder: Path,
    template: WikiTemplate,
    *,
    workers: int = 2,
    editors: bool = False,
    options: NginxOptions | None = None,
) -> Iterator[MediaWiki]:
    """Run a copy of a template in a new folder; end its processes afterwards.

    Args:
        workers: PHP processes.
        editors: give this harness a web server of its own, which serves during `nginx.down()` and
            keeps its requests out of the ledger.
        options: of the wiki's web server.
    """
    shutil.copytree(template.folder, folder)
    source = require_peer("mediawiki").parent
    with contextlib.ExitStack() as ended:
        fastcgi = mediawiki_config.FASTCGI.format(port=_start_fpm(folder, source, workers, ended))
        content = mediawiki_config.CONTENT.format(source=source, folder=folder, fastcgi=fastcgi)
        hosts = {"127.0.0.1": content}
        nginx = ended.enter_context(with_nginx_config(hosts, folder / "nginx", options))
        own = None
        if editors:
            own = ended.enter_context(with_nginx_config(hosts, folder / "nginx-editors"))
        wiki = MediaWiki(folder, nginx, template.pages, own)
        _write_settings(folder, wiki.origin)
        yield wiki


def _start_fpm(folder: Path, source: Path, workers: int, ended: contextlib.ExitStack) -> int:
    """Start php-fpm on a socket bound here, end it with `ended`, and return its port."""
    root = os.getuid() == 0
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        user = "user = root\ngroup = root" if root else ""
        config = folder / "fpm.conf"
        config.write_text(
            mediawiki_config.FPM.format(
                folder=folder, port=port, source=source, user=user, workers=workers
            )
        )
        program = require_peer("php-fpm")
        as_root = ("--allow-to-run-as-root",) if root else ()
        fpm = ManagedProcess(
            [program, "--nodaemonize", "--fpm-config", config, *as_root],
            folder,
            name="php-fpm",
            environment={"FPM_SOCKETS": f"127.0.0.1:{port}={listening.fileno()}"},
            pass_fds=[listening.fileno()],
        )
    ended.callback(fpm.end)
    return port


def _write_settings(folder: Path, server: str) -> None:
    (folder / "LocalSettings.php").write_text(mediawiki_config.SETTINGS % {"server": server})


def _import(folder: Path, pages: Sequence[WikiPage]) -> None:
    file = folder / "tmp" / "dump.xml"
    file.write_text(to_xml_dump(pages), encoding="utf-8")
    _maintain(
        folder, "importDump.php", "--quiet", "--no-updates", "--username-prefix", "", str(file)
    )
    for script in ("refreshLinks.php", "rebuildrecentchanges.php", "runJobs.php"):
        _maintain(folder, script, "--quiet")
    _maintain(folder, "initSiteStats.php", "--update", "--quiet")
    # Otherwise the time of the import would be the Last-Modified of every page.
    with contextlib.closing(sqlite3.connect(folder / "data" / "wiki.sqlite", timeout=120)) as wiki:
        wiki.execute(
            "UPDATE page SET page_links_updated = NULL, page_touched ="
            " (SELECT rev_timestamp FROM revision WHERE rev_id = page_latest)"
            " WHERE page_id IN (SELECT rev_page FROM revision WHERE rev_id = page_latest"
            " AND rev_timestamp < strftime('%Y%m%d%H%M%S', ?, 'unixepoch'))",
            (EPOCH_AT + 1,),
        )
        wiki.commit()


def _maintain(folder: Path, script: str, *arguments: str, text: str | None = None) -> str:
    return _php(folder, script, *arguments, settings=folder / "LocalSettings.php", text=text)


def _php(
    folder: Path,
    script: str,
    *arguments: str | Path,
    settings: Path | None = None,
    text: str | None = None,
) -> str:
    done = run(
        [*_maintenance(script), *arguments],
        cwd=folder,
        environment=_environment(settings or folder / "none.php"),
        text=text,
        timeout_s=MAINTENANCE_S,
    )
    if done.returncode:
        raise ProcessError(f"{script} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def _maintenance(script: str) -> list[str | Path]:
    return [require_peer("php"), require_peer("mediawiki").parent / "maintenance" / script]


def _environment(settings: Path) -> dict[str, str]:
    source = require_peer("mediawiki").parent
    return {"MW_INSTALL_PATH": str(source), "MW_CONFIG_FILE": str(settings)}
