"""What a crawl of a web of replicas stores, made without requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from crawld.bench.stored_visit import first_visit
from crawld.core.page import Outcome, PageState
from crawld.simweb.page_text import make_sentence
from crawld.simweb.replica_host import loopback_addresses_of, page_target
from crawld.simweb.replica_host import replica_hosts as hosts_of
from crawld.simweb.replica_web import ReplicaWeb
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.replica import survey
from crawld.store.visit import VisitRecord

START_AT: Final = 1_760_000_000.0
"""Unix time of the first visits."""

_WRITE_HOSTS: Final = 50
_PORT: Final = 80
_SENTENCES: Final = 5


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a visit finds: a redirect, or HTML."""

    host: str
    target: str
    address: str
    html: str
    redirect_url: str | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.target}"


class StoredCrawl:
    """A database with the hosts of a web, and visits of their pages.

    Attributes:
        site_id: of all pages.
        now: time of the next visits, Unix seconds.
    """

    def __init__(self, database: Database, web: ReplicaWeb, seed: int) -> None:
        self._database = database
        self._web = web
        self._hosts = list(hosts_of(web))
        self._addresses = loopback_addresses_of(web.hosts.addresses)
        self._rng = np.random.default_rng(seed)
        self._pages: dict[int, tuple[int, str]] = {}
        self._unfetched = self._rng.permutation(len(web.unfetched.host))
        self.site_id = 0
        self.now = START_AT

    async def fill(self) -> None:
        """Store all hosts, and a visit of each page that the crawl of the web fetched."""
        write = self._database.write
        self.site_id = await write(site.upsert, "web", "{}", source="config", at=self.now)
        for begin in range(0, len(self._hosts), _WRITE_HOSTS):
            numbers = range(begin, min(begin + _WRITE_HOSTS, len(self._hosts)))
            await self._visit_first(
                [(at, target) for at in numbers for target in self._hosts[at].targets],
                [self._shown(at, target) for at in numbers for target in self._hosts[at].targets],
            )

    async def visit(self, count: int) -> None:
        """Store visits of pages that do not rest: a third new, a third changed, a third equal."""
        third = count // 3
        resting = set(await self._database.read(survey.resting_pages))
        active = np.array([page_id for page_id in self._pages if page_id not in resting])
        chosen = self._rng.permutation(active)[: 2 * third].tolist()
        records = [_unchanged(page_id, self.now) for page_id in chosen[third:]]
        for page_id in chosen[:third]:
            number, target = self._pages[page_id]
            text = int(self._rng.integers(1, 2**62))
            records.append(_record(page_id, self._text(number, target, text), self.now))
        await self._database.write(visit.record_all, records)
        new, self._unfetched = self._unfetched[:third], self._unfetched[third:]
        unfetched = self._web.unfetched
        places = [
            (int(unfetched.host[at]), page_target(int(unfetched.path[at]))) for at in new.tolist()
        ]
        texts = unfetched.signature[new].tolist()
        await self._visit_first(
            places,
            [
                self._text(number, target, text)
                for (number, target), text in zip(places, texts, strict=True)
            ],
        )

    async def _visit_first(self, places: list[tuple[int, str]], shown: list[_Shown]) -> None:
        by_url = {one.url: (place, one) for place, one in zip(places, shown, strict=True)}
        found = [Discovery.of(url, site_id=self.site_id, at=self.now) for url in by_url]
        pages = await self._database.write(frontier.discover, found)
        self._pages |= {page.page_id: by_url[page.url][0] for page in pages}
        records = [_record(page.page_id, by_url[page.url][1], self.now) for page in pages]
        await self._database.write(visit.record_all, records)

    def _shown(self, number: int, target: str) -> _Shown:
        host = self._hosts[number]
        moved = host.redirect_url(target, _PORT)
        address = self._addresses[number]
        return _Shown(
            host.name,
            target,
            address,
            "" if moved else host.html(target, _PORT),
            moved.replace(f":{_PORT}/", "/") if moved else None,
        )

    def _text(self, number: int, target: str, text: int) -> _Shown:
        words = " ".join(make_sentence(text, at) for at in range(_SENTENCES)) if text else ""
        html = f"<!DOCTYPE html><html><head></head><body><p>{words}</p></body></html>"
        return _Shown(self._hosts[number].name, target, self._addresses[number], html)


def _record(page_id: int, shown: _Shown, at: float) -> VisitRecord:
    return first_visit(page_id, at, shown.address, shown.html, shown.redirect_url)


def _unchanged(page_id: int, at: float) -> VisitRecord:
    return VisitRecord(
        page_id=page_id, visited_at=at, outcome=Outcome.UNCHANGED, state=PageState.VISITED
    )
