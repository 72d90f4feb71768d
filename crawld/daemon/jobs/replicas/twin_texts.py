"""Compare pages of a replica with their twins: digests first, stored bodies where they differ.

Equal texts are not enough: what the pages embed must agree too (`core/content/embedded.py`).

The body of every page that agrees is read once, to learn whether its host shows the same text on
many paths (`agreement.MANY_PATHS`). Bodies are read one at a time, and parsed off the event loop.
The digests of texts are kept: a copy is read again only if the noise rules of its page or of its
twin have changed.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import xxhash

from crawld.core.content.analysis import read_blocks
from crawld.core.content.embedded import embedded_digest
from crawld.core.content.figures import TwinNoise, twin_rules
from crawld.core.content.twin import twin_digest, twin_text
from crawld.core.content.volatile import VolatileRules
from crawld.core.page import GOOD_COPY, Outcome
from crawld.core.replica.agreement import (
    PageVerdict,
    TwinComparison,
    TwinTimes,
    compare_twins,
    may_agree,
)
from crawld.core.url import server_name, target_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.store.replica.twin_facts import ShownPage, TwinFacts
from crawld.store.versions import version
from crawld.store.versions.version import StoredCopy

MAX_COPY_BYTES: Final = 4 * 2**20
"""Larger copies agree by their digests only."""

KEPT_DIGESTS: Final = 50_000
"""Digests of texts in memory, some 200 bytes each."""

PARSE_WEIGHT: Final = 20
"""See `Analyser.read`: what is parsed on the event loop takes a millisecond at most."""

_NO_TEXT: Final = TwinComparison(PageVerdict.DIFFERS)
_UNDECIDED: Final = TwinComparison(PageVerdict.UNKNOWN)


class _Reading(NamedTuple):
    """How the copies of a page and of its twin are read.

    Attributes:
        rules: noise rules of both pages and their hosts, joined.
        origins: those of both hosts.
        text_only: whether the bodies are equal, so that nothing else can differ.
    """

    rules: VolatileRules
    origins: tuple[str, ...]
    text_only: bool


class _Digests(NamedTuple):
    """Digests of a copy: of its text, and of what it embeds."""

    text: bytes
    embedded: bytes


class ComparedText(NamedTuple):
    """The result of a comparison, and the digest of the page's own text; None: not read."""

    comparison: TwinComparison
    digest: bytes | None = None


class TwinTexts(BackgroundWork):
    """Compares pages with their twins.

    Attributes:
        bodies_read: how many bodies were decoded so far.
    """

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self.bodies_read = 0
        self._digests: OrderedDict[bytes, _Digests] = OrderedDict()

    async def compare(
        self, facts: TwinFacts, origins: tuple[str, ...], canonical_host: str
    ) -> ComparedText | None:
        """Return how a page compares with its twin; None: its last visit found no text.

        Args:
            origins: those of both hosts.
            canonical_host: the host of the twin.
        """
        page, twin = facts.page, facts.twin
        if page.last_outcome is Outcome.MOVED:
            return ComparedText(_compare_redirect(facts, canonical_host))
        if page.last_outcome not in GOOD_COPY or page.version_id is None:
            return None
        if twin.redirect_url is not None:
            return ComparedText(_NO_TEXT)
        if facts.stands_in or twin.last_outcome in (Outcome.GONE, Outcome.SOFT_GONE):
            return ComparedText(_UNDECIDED)
        times = TwinTimes(
            visited_at=page.last_visit_at,
            seen_at=facts.seen_at,
            is_steady=facts.is_steady,
            lost_at=facts.lost_at,
        )
        equal = page.digest is not None and page.digest == twin.digest
        comparison = compare_twins(times, equal=equal)
        own = None
        if comparison.verdict is PageVerdict.AGREES or may_agree(
            (page.cleaned_digest, twin.cleaned_digest), (page.sketch, twin.sketch)
        ):
            reading = _Reading(_rules(facts), origins, text_only=equal)
            own = await self._digests_of(page, page.version_id, reading)
            others = dict.fromkeys((twin.version_id, facts.then_id))
            for version_id in others if own is not None else ():
                if version_id is None or equal:
                    continue
                equal = own == await self._digests_of(twin, version_id, reading)
            if not equal and facts.lost_at is not None:
                # The visits know texts only: what the twin has lost may have been another price.
                lost = facts.lost_id and await self._digests_of(twin, facts.lost_id, reading)
                times = times if own == lost else replace(times, lost_at=None)
            comparison = compare_twins(times, equal=equal)
        if comparison.verdict is PageVerdict.AGREES and own is None:
            comparison = _NO_TEXT  # an empty page, or one that is too large, proves nothing
        return ComparedText(comparison, own.text if own is not None else None)

    async def _digests_of(
        self, page: ShownPage, version_id: int, reading: _Reading
    ) -> _Digests | None:
        """Return the digests of a copy; None: it has no text, or cannot be read."""
        size_bytes, digest = self._database.look_up(version.body_identity, version_id)
        if size_bytes > MAX_COPY_BYTES:
            return _Digests(digest, digest) if version_id == page.version_id else None
        key = _text_key(version_id, digest, page.url, reading)
        known = self._digests.get(key)
        if known is not None:
            self._digests.move_to_end(key)
            return known
        async with self._analyser.memory.copy(size_bytes) as memory:
            if memory is None:
                return None
            copy = await self._database.read(version.readable_copy, version_id)
            if copy is None:
                return None
            self.bodies_read += 1
            identify = partial(_identify, copy, page.url, reading)
            found = await self._analyser.read_copy(
                identify, copy.body, memory, url=page.url, weight=PARSE_WEIGHT
            )
        if found is not None:
            self._digests[key] = found
            if len(self._digests) > KEPT_DIGESTS:
                self._digests.popitem(last=False)
        return found


def _rules(facts: TwinFacts) -> VolatileRules:
    """Return the noise rules under which the texts of a page and its twin are compared."""
    one, other = (
        TwinNoise(VolatileRules.from_bytes(own), VolatileRules.from_bytes(host.rules))
        for own, host in facts.noise
    )
    read_twice = any(host.confirmations for _, host in facts.noise)
    return twin_rules(one, other, read_twice=read_twice)


def _text_key(version_id: int, digest: bytes, url: str, reading: _Reading) -> bytes:
    """Return a key of all that the digests of a copy depend on."""
    applied = [(rule.key, rule.run) for rule in reading.rules.rules]
    origins = " ".join(reading.origins)
    known = f"{version_id} {digest.hex()} {url} {origins} {applied} {reading.text_only}"
    return xxhash.xxh3_128_digest(known.encode())


def _identify(copy: StoredCopy, url: str, reading: _Reading, body: bytes) -> _Digests | None:
    """Return the digests of a copy; None if there is memory for a part of its body only."""
    if len(body) < len(copy.body):
        return None
    text = twin_digest(twin_text(read_blocks(*copy), url, reading.origins, reading.rules))
    if text is None:
        return None
    embedded = b"" if reading.text_only else embedded_digest(*copy, reading.origins)
    return _Digests(text, embedded)


def _compare_redirect(facts: TwinFacts, canonical_host: str) -> TwinComparison:
    """A redirect agrees if it leads to the twin, or to a copy at its path that rests under it."""
    page, to = facts.page, facts.page.redirect_url
    leads = (
        to is not None
        and target_of(to) == target_of(page.url)
        and (server_name(to) == canonical_host or facts.leads_to_copy)
    )
    return TwinComparison(PageVerdict.AGREES, 0.0) if leads else _NO_TEXT
