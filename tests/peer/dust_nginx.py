"""A real nginx that shows pages under many URLs by twelve causes, and a daemon that mirrors it.

Causes: session ids in the query and in the path, the order and junk of parameters, index pages, the
slash at the end, case, print views, `?page=1`, tracking, fragments in paths, sort orders, doubled
slashes. Beside them, what must not be merged: `?page=2`, `?id=`, short views with other text, paths
in which the case or the slash counts, sort orders that choose other blocks, languages.

What nginx answers decides which URLs show one page: each page has its own heading.

`python -m tests.peer.dust_nginx --pages 2000` mirrors a larger site and prints the figures.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from crawld.core.dust.pace import next_after
from crawld.core.url import target_of
from crawld.simweb.page_text import make_sentence
from tests.e2e.daemon_config import query_rows, site, start_daemon
from tests.peer.crawld_process import Crawld, with_crawld
from tests.peer.nginx import Nginx, with_nginx_config

LINKS: Final = 14
FIRST_RUN: Final = 100
LEARNT_AFTER: Final = 0.02

CONFIG: Final = """
root "{tree}";
default_type text/html;
absolute_redirect off;
set $part "";
if ($arg_page ~ "^[2-4]$") {{ set $part "-$arg_page"; }}
set $order "";
if ($arg_order ~ "^(date|size)$") {{ set $order "-$arg_order"; }}
set $lang "";
if ($arg_lang = "de") {{ set $lang "-de"; }}
location ~* "^(?:/[0-9a-f]{{12}})?/article/(?<number>[0-9]+)(?:#[a-z]+)?/?$" {{
  try_files /article/$number$part.html =404;
}}
location ~* "^(?:/[0-9a-f]{{12}})?/tags/(?<number>[0-9]+)(?:#[a-z]+)?/?$" {{
  try_files /tags/$number$order.html =404;
}}
location ~ "^/(?<kind>print|brief)/(?<number>[0-9]+)$" {{ try_files /$kind/$number.html =404; }}
location ~ "^/catalog/(?<number>[0-9]+)$" {{ try_files /catalog/$number$order.html =404; }}
location ~ "^/docs/(?<number>d[0-9]+)/(?:index\\.html)?$" {{
  try_files /docs/$number$lang.html =404;
}}
location = /view {{ try_files /view/$arg_id-$arg_tab.html =404; }}
location ~ "^/(?:files|tree)/[A-Za-z0-9]+$" {{ try_files $uri.html =404; }}
"""


class CauseSite:
    """The files of the site, and what they link to."""

    def __init__(self, tree: Path, pages: int, seed: int) -> None:
        self._tree, self._pages, self._seed = tree, pages, seed
        self._small = max(4, pages // 8)

    def write(self) -> None:
        """Write all files."""
        for number in range(self._pages):
            self._page(f"article/{number}", menu=True)
            if number % 5 == 0:
                self._page(f"article/{number}-{2 + number % 3}", menu=True)
            self._page(f"print/{number}", as_page=f"article/{number}")
            if number % 3 == 0:
                self._page(f"brief/{number}")
        for number in range(self._small):
            for order in ("", "-date", "-size"):
                name = f"tags/{number}"
                self._page(f"{name}{order}", as_page=name, menu=True, shuffled=bool(order))
                self._page(f"catalog/{number}{order}", menu=True)
            for tab in "abc":
                self._page(f"view/{number}-{tab}", menu=True)
            for language in ("", "-de"):
                self._page(f"docs/d{number}{language}", menu=True)
            for name in (f"files/aB{number}", f"files/ab{number}", f"tree/t{number}"):
                self._page(name, menu=True)
            self._page(f"tree/t{number}/index", menu=True)
        self._page("index", menu=True)

    def _page(
        self, name: str, *, as_page: str = "", menu: bool = False, shuffled: bool = False
    ) -> None:
        page = as_page or name
        rng = random.Random(f"{self._seed} {page}")
        key = rng.getrandbits(40)
        blocks = [f"<p>{make_sentence(key, at)}</p>" for at in range(6)]
        if shuffled:
            random.Random(name).shuffle(blocks)
        parts = [f"<h1>{page}</h1>", *blocks]
        if menu:
            links = (f'<li><a href="{self._link(rng)}">next</a></li>' for _ in range(LINKS))
            parts = [f"<nav><p>{make_sentence(1, 1)}</p></nav>", *parts, *links]
        path = self._tree / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<html><body>{''.join(parts)}</body></html>", encoding="utf-8")

    def _link(self, rng: random.Random) -> str:
        number = rng.randrange(self._pages)
        small = rng.randrange(self._small)
        kind = rng.random()
        if kind < 0.55:
            return self._article(rng, number)
        if kind < 0.70:
            order = rng.choice(("", "", "order=name", "order=date", "order=size"))
            return self._decorated(rng, f"/tags/{small}", order)
        if kind < 0.80:
            items = [f"id={small}", f"tab={rng.choice('abc')}"]
            rng.shuffle(items)
            return "/view?" + "&".join(items)
        if kind < 0.88:
            name = rng.choice(("", "index.html"))
            return f"/docs/d{small}/{name}" + rng.choice(("", "", "", "?lang=de"))
        return rng.choice(
            (
                f"/catalog/{small}" + rng.choice(("", "?order=date", "?order=size")),
                f"/files/{rng.choice(('aB', 'ab'))}{small}",
                f"/tree/t{small}" + rng.choice(("", "/index")),
                f"/brief/{3 * rng.randrange((self._pages + 2) // 3)}",
            )
        )

    def _article(self, rng: random.Random, number: int) -> str:
        kind = rng.random()
        if kind < 0.08:
            number = 5 * rng.randrange((self._pages + 4) // 5)
            return f"/article/{number}?page={2 + number % 3}"
        if kind < 0.16:
            return f"/print/{number}"
        return self._decorated(rng, f"/article/{number}", "page=1" if kind < 0.24 else "")

    @staticmethod
    def _decorated(rng: random.Random, path: str, query: str) -> str:
        """Return another URL of a page, in most cases."""
        items = [query] if query else []
        cause = rng.randrange(11)
        if cause < 4:
            items.append(
                (
                    f"zid={rng.getrandbits(48):012x}",
                    f"ref={rng.randrange(10_000)}",
                    f"campaign={rng.choice(('mail', 'feed', 'social'))}",
                    f"skin={rng.choice(('dark', 'light'))}",
                )[cause]
            )
            rng.shuffle(items)
        elif cause < 9:
            session = f"/{rng.getrandbits(40):010x}4f{path}"
            title = "/" + path[1:].title()
            doubled = "//".join(path.rsplit("/", 1))  # at the root it would name a host
            path = (session, path + "/", title, f"{path}%23top", doubled)[cause - 4]
        return f"{path}?{'&'.join(items)}" if items else path


@dataclass(frozen=True, slots=True)
class NginxFigures:
    """What rules saved on the site.

    Attributes:
        urls: that links of the site name.
        pages: different pages among them.
        fetched: URLs that the daemon asked for.
        avoided: share of duplicate requests avoided after `LEARNT_AFTER` of the URLs.
        validation: visits that the crawl would not have made.
        wrong: hidden URLs that show another page than the one that stands for them.
        missed: pages of which no URL was asked for.
        rules: in words.
    """

    urls: int
    pages: int
    fetched: int
    avoided: float
    validation: int
    wrong: list[str]
    missed: list[str]
    rules: list[str]


_HEADING = re.compile(rb"<h1>([^<]*)</h1>").search
_HREF = re.compile(rb'href="([^"]*)"').findall


class Truth:
    """What nginx itself shows under a URL."""

    def __init__(self, nginx: Nginx) -> None:
        self._connection = HTTPConnection("127.0.0.1", nginx.port, timeout=60)
        self._host = nginx.hosts[0]

    def read(self, target: str) -> tuple[str, list[str]]:
        """Return the page that a target shows, and what it links to."""
        self._connection.request("GET", target, headers={"Host": self._host, "User-Agent": "truth"})
        answer = self._connection.getresponse()
        body = answer.read()
        heading = _HEADING(body)
        page = heading[1].decode() if heading is not None else f"status {answer.status}"
        return page, [link.decode().replace("&amp;", "&") for link in _HREF(body)]

    def site(self) -> dict[str, str]:
        """Return the page of each URL that links of the site name."""
        found: dict[str, str] = {}
        waiting = ["/"]
        while waiting:
            target = waiting.pop()
            if target not in found:
                found[target], links = self.read(target)
                waiting += links
        return found

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def mirror_site(crawld: Crawld, nginx: Nginx, note: Callable[[str], None]) -> NginxFigures:
    """Mirror the site to its end; return the figures.

    The crawl makes many more visits a second than a polite one, so the job runs by visits and not
    by the clock, after as many as its own plan waits for at any rate (`crawld/core/dust/pace.py`).
    """
    start_daemon(
        crawld,
        site(nginx.url(), name="causes", max_depth=99),
        hosts=tuple(nginx.hosts),
        politeness={"host_delay_s": 0.001, "address_delay_s": 0.001},
        schedule={"min_revisit_s": 30 * 86_400.0},
        jobs={"audit_share": 0.0},
        store={"min_free_bytes": 0, "batch_max_age_s": 0.02},
    )
    learn_at = float(FIRST_RUN)
    while True:
        crawld.wait_until(lambda _, at=learn_at: _visits(crawld) >= at or not _waiting(crawld))
        crawld.post("/pause", {})
        asked = _run_job(crawld)
        visits = _visits(crawld)
        note(f"{visits} visits, {_waiting(crawld)} wait, {_rules(crawld)} rules, {asked} asked for")
        crawld.post("/resume", {})
        if not _waiting(crawld):
            break
        learn_at = visits + next_after(visits, asked)
    crawld.wait_until(lambda _: not _waiting(crawld))
    crawld.terminate()
    return _figures(crawld, nginx)


def _visits(crawld: Crawld) -> int:
    return int(query_rows(crawld, "SELECT ifnull(sum(visit_count), 0) FROM host")[0][0])


def _waiting(crawld: Crawld) -> int:
    """Return how many pages wait for their first visit; 1 before the first one is known."""
    [(known, waiting)] = query_rows(
        crawld, "SELECT count(*), ifnull(sum(state = 'discovered'), 0) FROM page"
    )
    return int(waiting) if known else 1


def _rules(crawld: Crawld) -> int:
    sql = "SELECT count(*) FROM dust_rule WHERE status = 'holds'"
    return int(query_rows(crawld, sql)[0][0])


def _run_job(crawld: Crawld) -> int:
    """Run the job; return how many visits it asks for."""
    ended = "SELECT detail FROM job WHERE name = 'dust' AND last_finished_at > ?"
    [(before,)] = query_rows(crawld, "SELECT unixepoch('subsec')")
    crawld.post("/jobs/dust/run")
    crawld.wait_until(lambda _: query_rows(crawld, ended, before))
    [(detail,)] = query_rows(crawld, ended, before)
    asked = re.search(r"([0-9]+) visits asked for", detail)
    assert asked is not None, detail
    return int(asked[1])


def _figures(crawld: Crawld, nginx: Nginx) -> NginxFigures:
    asked = [row.target for row in nginx.ledger().rows() if row.user_agent.startswith("crawld")]
    server = Truth(nginx)
    truth = server.site()
    asked = [target for target in dict.fromkeys(asked) if target != "/robots.txt"]
    shown = truth | {target: server.read(target)[0] for target in asked if target not in truth}
    pages = set(truth.values())
    first = int(LEARNT_AFTER * len(truth))
    seen: set[str] = set()
    early = late = 0
    for at, target in enumerate(asked):
        duplicate = shown[target] in seen
        seen.add(shown[target])
        early += duplicate and at < first
        late += duplicate and at >= first
    hidden = query_rows(
        crawld,
        "SELECT url, canonical FROM page JOIN dust_page USING (page_id) WHERE state = 'suspended'",
    )
    pairs = [(target_of(url), canonical) for url, canonical in hidden]
    wrong = [
        f"{one} -> {other}" for one, other in pairs if server.read(one)[0] != server.read(other)[0]
    ]
    server.close()
    rules = query_rows(
        crawld,
        "SELECT form, name, value, section FROM dust_rule WHERE status = 'holds' ORDER BY 4, 1, 2",
    )
    [(validation,)] = query_rows(crawld, "SELECT ifnull(sum(asked), 0) FROM dust_origin")
    return NginxFigures(
        urls=len(truth),
        pages=len(pages),
        fetched=len(asked),
        avoided=1.0 - late / max(1, len(truth) - len(pages) - early),
        validation=validation,
        wrong=wrong,
        missed=sorted(pages - seen),
        rules=[" ".join(map(str, rule)) for rule in rules],
    )


def run(
    folder: Path,
    pages: int,
    seed: int = 0,
    *,
    note: Callable[[str], None] = lambda line: None,
) -> NginxFigures:
    """Serve a site of about so many pages, mirror it, and return the figures."""
    tree = folder / "tree"
    CauseSite(tree, pages, seed).write()
    served = with_nginx_config({"127.0.0.1": CONFIG.format(tree=tree)}, folder / "nginx")
    with served as nginx, with_crawld(folder / "crawld") as crawld:
        return mirror_site(crawld, nginx, note)


def main() -> None:
    """Print the figures of a larger site."""
    parser = argparse.ArgumentParser(prog="python -m tests.peer.dust_nginx")
    parser.add_argument("--pages", type=int, default=2_000, help="articles of the site")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(
            Path(folder),
            given.pages,
            given.seed,
            note=lambda line: print(line, file=sys.stderr, flush=True),
        )
    for name, value in asdict(found).items():
        if isinstance(value, list):
            print(f"{name}: {len(value)}", *value[:40], sep="\n    ")
        else:
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
