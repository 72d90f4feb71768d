"""The world of a storm: a wiki, its job queue, a daemon, a listener for readers.

The daemon runs with a config as an operator writes it, the listener is `crawld serve`, which reads
the same database: a kill of the daemon does not disturb readers.
"""

from __future__ import annotations

import contextlib
import html
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.peer.crawld_process import ControlError, Crawld, with_crawld, with_serve
from tests.peer.mediawiki import MediaWiki, WikiTemplate, install_wiki, with_mediawiki
from tests.peer.nginx import NginxOptions
from tests.peer.process import ManagedProcess
from tests.peer.storm.corpus import CATEGORY, CATEGORY_DEPTH, PREFIX, STYLE, Corpus, style_text
from tests.peer.storm.reader import MirrorReader
from tests.peer.wiki_editor import fetch

RETRY_AFTER_S = 10
PHP_PROCESSES = 4
ROBOTS = "User-agent: *\nDisallow: /w/index.php\nDisallow: /wiki/Special:\n"

_CONFIG = """
[daemon]
contact = "storm@example.org"
[politeness]
host_delay_s = {delay_s}
"""

_SITE = """
[[site]]
name = "{name}"
seeds = ["{seed}"]
api = true
allow_private = true
{keys}
"""

_WHOLE = """include = ["prefix:/wiki/"]
exclude = ["regex:/wiki/(Special|Template|File|User|Help|Category)(_talk)?:", "regex:[?]"]
"""


@dataclass
class World:
    """Everything that runs.

    Attributes:
        config: the daemon's.
        unexpected_ends: how often the daemon ended by itself.
    """

    wiki: MediaWiki
    crawld: Crawld
    reader: MirrorReader
    corpus: Corpus
    parts: tuple[str, ...]
    config: Path
    jobs: ManagedProcess
    unexpected_ends: int = 0

    def start_daemon(self, *, ready: bool = True) -> None:
        """Start the daemon, as its supervisor does after a kill."""
        self.crawld.start("run", "-c", self.config, ready=ready)

    def ensure_running(self) -> None:
        """Start what ended by itself: the daemon, or the wiki's job runner, which limits itself."""
        if self.jobs.exits_within(0):
            self.jobs.end()
            self.jobs = self.wiki.job_runner()
        process = self.crawld.process
        if process is not None and process.exits_within(0):
            self.unexpected_ends += 1
            self.start_daemon(ready=False)

    def style_url(self) -> str | None:
        """Return the URL of the wiki's own style sheet, as its pages link to it."""
        page = self.fetch(self.wiki.url()) or b""
        for href in re.findall(r'<link rel="stylesheet" href="([^"]+)"', page.decode()):
            if "modules=site.styles" in href:
                return urllib.parse.urljoin(self.wiki.origin, html.unescape(href))
        return None

    def fetch(self, url: str) -> bytes | None:
        """Return what the wiki itself shows at a URL, None for a 404; not through the outage."""
        return fetch(self.wiki.editors_origin + url.removeprefix(self.wiki.origin))

    def ask(self, path: str) -> Any:
        """Return an answer of the control socket; None if the daemon does not answer."""
        with contextlib.suppress(OSError, HTTPException, ControlError):
            return self.crawld.get(path)
        return None


@contextlib.contextmanager
def with_world(
    folder: Path, corpus: Corpus, parts: tuple[str, ...], seed: int, delay_s: float
) -> Iterator[World]:
    """Install a wiki with a corpus in a folder, run it and a daemon that mirrors the parts."""
    template = _template(folder / "template", corpus, seed)
    with contextlib.ExitStack() as ended:
        wiki = ended.enter_context(
            with_mediawiki(
                folder / "wiki",
                template,
                workers=PHP_PROCESSES,
                editors=True,
                options=NginxOptions(retry_after_s=RETRY_AFTER_S),
            )
        )
        wiki.set_robots(ROBOTS)
        for name, content in corpus.images.items():
            wiki.upload(name.removeprefix("File:"), content)
        # Not imported: a dump would make it a page of wikitext.
        wiki.edit(STYLE, style_text(0))
        wiki.run_jobs()
        crawld = ended.enter_context(with_crawld(folder / "crawld"))
        config = crawld.folder / "crawld.toml"
        write_config(config, wiki, corpus, parts, delay_s)
        crawld.start("run", "-c", config)
        reader = MirrorReader(ended.enter_context(with_serve(crawld)))
        ended.callback(reader.close)
        world = World(wiki, crawld, reader, corpus, parts, config, wiki.job_runner())
        ended.callback(lambda: world.jobs.end())
        yield world


def _template(folder: Path, corpus: Corpus, seed: int) -> WikiTemplate:
    titles = list(corpus.pages)
    main = "Start here: " + ", ".join(f"[[:{title}]]" for title in titles[:500])
    return install_wiki(folder, corpus.histories(seed), main)


def write_config(
    config: Path, wiki: MediaWiki, corpus: Corpus, parts: tuple[str, ...], delay_s: float
) -> None:
    """Write a daemon's config; a running daemon needs a reload."""
    # JSON strings and lists are TOML too.
    keys = {
        "category": f"wiki_categories = {json.dumps([CATEGORY])}\n"
        f"wiki_category_depth = {CATEGORY_DEPTH}",
        "titles": f"wiki_titles = {json.dumps(corpus.listed, ensure_ascii=False)}",
        "prefix": f"wiki_prefixes = {json.dumps([PREFIX])}\nwiki_talk = true",
    }
    # Each site needs a seed of its own.
    seeds = {"category": CATEGORY, "prefix": next(t for t in corpus.pages if t.startswith(PREFIX))}
    sites = [
        _SITE.format(
            name=part,
            seed=wiki.url(seeds.get(part, "Main Page")),
            keys=keys.get(part, _WHOLE),
        )
        for part in parts or ("whole",)
    ]
    config.write_text(_CONFIG.format(delay_s=delay_s) + "".join(sites), encoding="utf-8")
