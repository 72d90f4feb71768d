"""Make hosts of the web of look-alikes one group at a time.

A group has a generator of its own, seeded by its number, so that a group is the same whatever other
groups a web has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crawld.core.replica.hosts import Keys
from crawld.simweb.graph import VOCABULARY
from crawld.simweb.host_names import HostNames
from crawld.simweb.lookalike.host import NO_GROUP, PLAIN, Decoration, LookalikeHost
from crawld.simweb.lookalike.pages import Flags, SitePages
from crawld.simweb.replica_web import hash_keys

_TEXT, _SLUG, _VARIANT = range(50, 53)
_EPOCH_DAY = -400.0
_PROVIDERS = 60

Sections = Mapping[str, int]
"""Number of pages by section, the first label of the path."""


class LookalikeDraft:
    """The hosts of a web so far."""

    def __init__(self, seed: int, coverage: float) -> None:
        """Start a web.

        Args:
            seed: of everything.
            coverage: mean share of a host's pages that were visited on day 0; 1: all of them.
        """
        self.seed, self.coverage = seed, coverage
        self.names = HostNames(np.random.default_rng([seed, 77]))
        self.hosts: list[LookalikeHost] = []
        self.groups = self.owners = self.families = 0

    def family(self, kind: str) -> HostFamily:
        """Start a group of hosts of one kind."""
        self.families += 1
        return HostFamily(self, kind, self.families)


@dataclass(frozen=True, slots=True)
class CrawlFacts:
    """What a crawler may know about a host besides its pages; None: drawn.

    Attributes:
        linked_from: number of registered domains that link to it.
        names_per_domain: more than 1: as many names of one domain link to it instead.
    """

    address: str | None = None
    https: bool | None = None
    first_seen_day: float | None = None
    linked_from: int | None = None
    names_per_domain: int = 1
    certificate: frozenset[str] | None = None


DRAWN = CrawlFacts()


class HostFamily:
    """Makes the hosts of one group.

    Attributes:
        rng: its generator.
        number: its number in the web.
    """

    def __init__(self, draft: LookalikeDraft, kind: str, number: int) -> None:
        """Start a group; `LookalikeDraft.family` does."""
        self.draft, self.kind, self.number = draft, kind, number
        self.rng = np.random.default_rng([draft.seed, number])
        self.names = draft.names
        self._texts = 0
        self._partial = self.rng.random() >= draft.coverage

    # --- pages -----------------------------------------------------------------------------------

    def new_group(self) -> int:
        """Return the number of a new group of true copies."""
        self.draft.groups += 1
        return self.draft.groups

    def new_owner(self) -> int:
        """Return the number of a new owner."""
        self.draft.owners += 1
        return self.draft.owners

    def texts(self, count: int) -> Keys:
        """Return the keys of new texts."""
        self._texts += count
        at = np.arange(self._texts - count, self._texts)
        return hash_keys(_TEXT, self.draft.seed, self.number, at)

    def site(self, sections: Sections, *, numbered: bool | None = None) -> SitePages:
        """Return a new site: a root, and in each section pages with texts of their own.

        Args:
            numbered: whether its paths are numbers, which other sites have too; None: drawn.
        """
        numbered = self.rng.random() < 0.5 if numbered is None else numbered
        paths = ["/"]
        for section, count in sections.items():
            names = range(1, count + 1) if numbered else self._slugs(section, count)
            paths += [f"/{section}/{name}" for name in names]
        return SitePages.of(paths, self.texts(len(paths)))

    def _slugs(self, section: str, count: int) -> list[str]:
        label = int.from_bytes(section.encode()[:6], "big")
        keys = hash_keys(_SLUG, self.draft.seed, self.number, label, np.arange(count)).tolist()
        words = len(VOCABULARY)
        return [f"{VOCABULARY[key % words]}-{key >> 44:x}" for key in keys]

    def count(self, least: int, most: int) -> int:
        """Return a number from `least` to `most`."""
        return int(self.rng.integers(least, most + 1))

    def chosen(self, pages: SitePages, share: float, *, root: bool = False) -> Flags:
        """Return a random choice of a share of the pages, exact up to rounding.

        Args:
            root: whether the root page may be among them.
        """
        which = np.zeros(len(pages), dtype=bool)
        open_to = np.arange(0 if root else 1, len(pages))
        count = round(share * len(open_to))
        which[self.rng.permutation(open_to)[:count]] = True
        return which

    def own(self, pages: SitePages, which: Flags) -> SitePages:
        """Return pages of which some have new texts of their own."""
        text = pages.text.copy()
        text[which] = self.texts(int(which.sum()))
        return replace(pages, text=text)

    def edited(self, pages: SitePages, which: Flags) -> SitePages:
        """Return pages of which some differ by a number, as a price."""
        edits = self.texts(len(pages))
        return replace(pages, edit=np.where(which, edits, pages.edit))

    def copied(self, pages: SitePages, *, kept: float = 1.0) -> SitePages:
        """Return the pages of a copy that has only a share of them."""
        return pages.only(self.chosen(pages, kept) | only_root(pages))

    # --- hosts -----------------------------------------------------------------------------------

    def domain(self) -> str:
        """Return a new registered domain."""
        return self.names.domain()

    def claim(self, name: str) -> str:
        """Return a name that no other host has."""
        return self.names.claim(name)

    def address(self) -> str:
        """Return an exclusive address, or one that a provider shares among many hosts."""
        if self.rng.random() < 0.5:
            return dotted(int(self.rng.integers(1 << 24, 223 << 24)))
        provider = int(self.rng.integers(_PROVIDERS))
        network = int(hash_keys(_VARIANT, self.draft.seed, provider)[0] % np.uint64(222 << 16))
        return dotted(((1 << 16) + network << 8) + int(self.rng.integers(20)))

    def decoration(self, share: float = 0.35) -> Decoration:
        """Return a decoration of which each part is present with a probability."""
        links, date, counter, path = (self.rng.random(4) < share).tolist()
        return Decoration(absolute_links=links, date=date, counter=counter, path=path)

    def host(
        self,
        name: str,
        pages: SitePages,
        *,
        owner: int,
        group: int = NO_GROUP,
        original: bool = False,
        keepable: bool = False,
        victim: int = -1,
        decoration: Decoration = PLAIN,
        facts: CrawlFacts = DRAWN,
    ) -> LookalikeHost:
        """Add a host."""
        rng = self.rng
        seen = facts.first_seen_day
        domain = name.partition(":")[0].removeprefix("www.")
        host = LookalikeHost(
            number=len(self.draft.hosts),
            name=name,
            address=facts.address or self.address(),
            certificate=facts.certificate or frozenset({domain, f"www.{domain}"}),
            https=bool(rng.random() < 0.7) if facts.https is None else facts.https,
            first_seen_day=float(rng.uniform(_EPOCH_DAY, -1.0)) if seen is None else seen,
            linked_from=self._linked_from(facts),
            pages=pages,
            visited=self._visited(pages),
            decoration=decoration,
            kind=self.kind,
            family=self.number,
            group=group,
            original=original,
            keepable=keepable or original,
            owner=owner,
            victim=victim,
        )
        self.draft.hosts.append(host)
        return host

    def _linked_from(self, facts: CrawlFacts) -> tuple[str, ...]:
        count = facts.linked_from
        domains = int(self.rng.geometric(0.3)) - 1 if count is None else count
        each = facts.names_per_domain
        found: list[str] = []
        if each > 1:  # names of one domain, the same for all hosts of the family
            return tuple(f"s{at}.farm{self.number}.com" for at in range(each))
        for _ in range(domains):
            domain = f"{self.names.word()}{self.rng.integers(100, 1000)}.{self.names.top_level()}"
            found.append(domain)
        return tuple(dict.fromkeys(found))

    def _visited(self, pages: SitePages) -> Flags:
        """Return which pages were visited: all, or a part, mostly the first ones."""
        count = len(pages)
        if not self._partial:
            return np.ones(count, dtype=bool)
        share = float(self.rng.beta(2.0, 3.0))
        order = np.argsort(np.arange(count) + self.rng.random(count) * 0.8 * count, kind="stable")
        visited = np.zeros(count, dtype=bool)
        visited[order[: max(3, round(share * count))]] = True
        visited[0] = True
        return visited


def dotted(address: int) -> str:
    """Return an IPv4 address in dotted form."""
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))


def redirecting(pages: SitePages, which: Flags, to: int) -> SitePages:
    """Return pages of which some redirect to the same path of another host."""
    text = np.where(which, np.uint64(0), pages.text)
    return replace(pages, text=text, redirect_to=np.where(which, to, pages.redirect_to))


def naming_canonical(pages: SitePages, which: Flags, to: int) -> SitePages:
    """Return pages of which some name the same path of another host as canonical."""
    return replace(pages, canonical_to=np.where(which, to, pages.canonical_to))


def diverging(pages: SitePages, which: Flags, day: float) -> SitePages:
    """Return pages of which some have texts of their own from a day on."""
    return replace(pages, own_from=np.where(which, day, pages.own_from))


def only_root(pages: SitePages) -> Flags:
    """Return which page is the root: the first."""
    root: Flags = np.arange(len(pages)) == 0
    return root


def in_section(pages: SitePages, sections: Sequence[str]) -> Flags:
    """Return which pages are in one of these sections."""
    labels = [path.split("/")[1] for path in pages.paths]
    return np.array([label in sections for label in labels], dtype=bool)
