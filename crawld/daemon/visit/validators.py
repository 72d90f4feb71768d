"""The validators of every origin in use: what to send, and what each answer taught.

The rules are in `core/validators.py`; here the evidence is kept at hand, so that pages of one
origin visited within one commit learn from each other. What is at hand is bounded; it goes to the
file with visits, at once while it is young or when a verdict turns, else every few visits.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from zlib import crc32

from crawld.core.validators import Exchange, Validators, ValidatorTrust
from crawld.net.exchange import FetchResponse
from crawld.store.frontier.page import PageRecord

AT_HAND = 4096
"""Origins whose evidence is in memory, some 600 bytes each."""

STORED_EVERY = 8
"""Visits of an origin whose evidence a killed process may lose."""

NO_VALIDATORS = Validators()


@dataclass(frozen=True, slots=True)
class RequestMode:
    """How a page was asked for.

    Attributes:
        sent: the validators sent as conditions.
        check: whether they were left out on purpose, to see whether the server lies.
        pair: whether the copy held was fetched one host delay ago.
        told: whether a hint said that the page has changed: that it differs shows no noise then.
        elsewhere: whether a replica was asked: its header says nothing of the page's origin.
    """

    sent: Validators = NO_VALIDATORS
    check: bool = False
    pair: bool = False
    told: bool = False
    elsewhere: bool = False

    @property
    def conditional(self) -> bool:
        """Whether an answer 304 is in order."""
        return self.sent != NO_VALIDATORS


UNCONDITIONAL = RequestMode()


@dataclass(frozen=True, slots=True)
class ValidatorEvidence:
    """What the header of an answer taught.

    Attributes:
        changed_at: instant of the last change by our clock, where it can be believed.
        skew_s: clock of the host less ours.
        evidence: what the file should know of the origin; None: no more than it does.
    """

    changed_at: float | None = None
    skew_s: float | None = None
    evidence: bytes | None = None


NO_EVIDENCE = ValidatorEvidence()


@dataclass(slots=True)
class _Entry:
    trust: ValidatorTrust
    visits: int = 0


class OriginValidators:
    """The evidence about origins, by number."""

    def __init__(self, *, check_share: float) -> None:
        """Start empty; `check_share` of conditional requests are sent without conditions."""
        self.check_share = check_share
        self._entries: OrderedDict[int, _Entry] = OrderedDict()

    def ask(self, page: PageRecord, *, pair: bool) -> RequestMode:
        """Return how to ask for a page.

        Args:
            page: the page as the file knows it.
            pair: whether the copy held was fetched one host delay ago: a body is wanted then.
        """
        if page.version_id is None or pair:
            return RequestMode(pair=pair)
        trust = self._entry(page).trust
        sent = trust.conditions(_held(page))
        if sent == NO_VALIDATORS:
            return UNCONDITIONAL
        if trust.wants_check(_chance(page), self.check_share):
            return RequestMode(check=True)
        return RequestMode(sent)

    def learn(
        self,
        page: PageRecord,
        asked: RequestMode,
        answer: FetchResponse,
        at: float,
        *,
        same: bool | None,
    ) -> ValidatorEvidence:
        """Return what a good answer taught.

        Args:
            page: the page as it was before.
            asked: how it was asked for.
            answer: a 304, or an answer with a good copy.
            at: its instant, Unix seconds.
            same: whether the content is that of the copy held, None: not known.
        """
        entry = self._entry(page)
        trust = entry.trust
        exchange = Exchange(
            at=at,
            held=_held(page) if page.version_id is not None else NO_VALIDATORS,
            sent=asked.sent,
            received=Validators(answer.header("etag"), answer.header("last-modified")),
            not_modified=answer.status == 304,
            same=same,
            date=answer.header("date"),
            age=answer.header("age"),
            check=asked.check,
        )
        before = (trust.sends_etag, trust.sends_last_modified)
        trust.observe(exchange)
        entry.visits += 1
        turned = before != (trust.sends_etag, trust.sends_last_modified)
        due = turned or entry.visits <= STORED_EVERY or entry.visits % STORED_EVERY == 0
        evidence = trust.to_bytes() if due else None
        return ValidatorEvidence(trust.changed_at(exchange), trust.skew_s, evidence)

    def _entry(self, page: PageRecord) -> _Entry:
        entry = self._entries.get(page.origin_id)
        if entry is None:
            entry = _Entry(ValidatorTrust.from_bytes(page.validators))
            self._entries[page.origin_id] = entry
            if len(self._entries) > AT_HAND:
                self._entries.popitem(last=False)
        else:
            self._entries.move_to_end(page.origin_id)
        return entry


def _held(page: PageRecord) -> Validators:
    return Validators(page.etag, page.last_modified)


def _chance(page: PageRecord) -> float:
    """Return a number in [0, 1) that differs from visit to visit and is the same at each start."""
    return crc32(f"{page.page_id} {page.visit_count}".encode()) / 2**32
