"""Choose the validators to send, and learn from answers which ones of an origin to trust.

The rules are in `core/validators.py`. This module keeps the evidence in a bounded memory, so that
visits to one origin learn from each other before they are committed. The evidence goes to the file
with visits: at once while it is young or when a verdict changes, else every few visits.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from zlib import crc32

from crawld.core.page import Outcome
from crawld.core.validators import Exchange, Validators, ValidatorTrust
from crawld.core.value_type import value_type
from crawld.net.exchange import FetchResponse
from crawld.store.frontier.page import PageRecord

CACHED_ORIGINS = 4096
"""Origins whose evidence is in memory; about 600 bytes each."""

STORED_EVERY = 8
"""Visits of an origin whose evidence a killed process may lose."""

NO_VALIDATORS = Validators()


@value_type
class RequestMode:
    """How a page is requested.

    Attributes:
        check: whether they are left out on purpose, to test the trust in the server.
        pair: if the copy held was fetched one host delay ago, how many differences in a row prove
            noise; else 0.
        is_third: whether the last body was that of a pair, too, with the same copy held.
        variant: whether the copy held has another form: nothing is compared with it.
        reported: whether hint sources report the changes of the page.
        hinted: whether a hint says that the page changed; a difference is then no evidence of
            noise.
        certain: whether a wiki gave that hint: any difference is then a change.
        from_replica: whether a replica is asked; its header says nothing of the page's origin.
    """

    sent: Validators = NO_VALIDATORS
    check: bool = False
    pair: int = 0
    is_third: bool = False
    variant: bool = False
    reported: bool = False
    hinted: bool = False
    certain: bool = False
    from_replica: bool = False

    @property
    def conditional(self) -> bool:
        """Whether the request has conditions, so that 304 is a valid response."""
        return self.sent != NO_VALIDATORS

    def without_conditions(self) -> RequestMode:
        """Return the mode of a request that wants the page whatever the copy held is."""
        return replace(self, sent=NO_VALIDATORS)

    def as_variant(self) -> RequestMode:
        """Return the mode of a request in another form than that of the copy held."""
        return replace(self, sent=NO_VALIDATORS, check=False, pair=0, is_third=False, variant=True)


UNCONDITIONAL = RequestMode()


@value_type
class ValidatorEvidence:
    """Evidence from the header of a response.

    Attributes:
        changed_at: when the page last changed, by our clock; None if not trusted.
        skew_s: the host's clock minus ours.
        evidence: evidence about the origin to store, None if it need not be stored now.
    """

    changed_at: float | None = None
    skew_s: float | None = None
    evidence: bytes | None = None


NO_EVIDENCE = ValidatorEvidence()


@dataclass(slots=True)
class _OriginEvidence:
    trust: ValidatorTrust
    visits: int = 0


class OriginValidators:
    """The evidence about origins, by origin number."""

    def __init__(self, *, check_share: float) -> None:
        """Start empty; the share `check_share` of conditional requests goes without conditions."""
        self.check_share = check_share
        self._evidence: OrderedDict[int, _OriginEvidence] = OrderedDict()

    def request_mode(self, page: PageRecord, *, pair: int, is_third: bool = False) -> RequestMode:
        """Return how to request a page.

        Args:
            pair, is_third: see `RequestMode`; of a pair, and after it, a body is wanted.
        """
        if page.version_id is None or pair or is_third:
            return RequestMode(pair=pair, is_third=is_third)
        trust = self._evidence_of(page).trust
        held = _held(page)
        if _is_fresh(page, trust):
            held = replace(held, last_modified=None)
        sent = trust.conditions(held)
        if sent == NO_VALIDATORS:
            return UNCONDITIONAL
        if trust.wants_check(_chance(page), self.check_share):
            return RequestMode(check=True)
        return RequestMode(sent)

    def learn(
        self,
        page: PageRecord,
        mode: RequestMode,
        response: FetchResponse,
        at: float,
        *,
        same: bool | None,
    ) -> ValidatorEvidence:
        """Learn from a good response.

        Args:
            page: the page before the visit.
            mode: how it was requested.
            response: a 304, or a response with a good copy.
            at: time of the response, Unix seconds.
            same: whether the content equals the copy held; None: not known.
        """
        entry = self._evidence_of(page)
        trust = entry.trust
        exchange = Exchange(
            at=at,
            held=_held(page) if _is_comparable(page, mode) else NO_VALIDATORS,
            sent=mode.sent,
            received=Validators(response.header("etag"), response.header("last-modified")),
            not_modified=response.status == 304,
            same=same,
            date=response.header("date"),
            age=response.header("age"),
            check=mode.check,
            fresh=_is_fresh(page, trust),
            took_s=response.duration_s,
        )
        before = (trust.sends_etag, trust.sends_last_modified)
        trust.observe(exchange)
        entry.visits += 1
        turned = before != (trust.sends_etag, trust.sends_last_modified)
        due = turned or entry.visits <= STORED_EVERY or entry.visits % STORED_EVERY == 0
        evidence = trust.to_bytes() if due else None
        return ValidatorEvidence(trust.changed_at(exchange), trust.skew_s, evidence)

    def _evidence_of(self, page: PageRecord) -> _OriginEvidence:
        entry = self._evidence.get(page.origin_id)
        if entry is None:
            entry = _OriginEvidence(ValidatorTrust.from_bytes(page.validators))
            self._evidence[page.origin_id] = entry
            if len(self._evidence) > CACHED_ORIGINS:
                self._evidence.popitem(last=False)
        else:
            self._evidence.move_to_end(page.origin_id)
        return entry


def _is_comparable(page: PageRecord, mode: RequestMode) -> bool:
    return page.version_id is not None and not mode.variant


def _held(page: PageRecord) -> Validators:
    return Validators(page.etag, page.last_modified)


def _is_fresh(page: PageRecord, trust: ValidatorTrust) -> bool:
    """Whether a later text may have the Last-Modified of the copy."""
    copied_at = _copied_at(page)
    if not page.last_modified or copied_at is None:
        return False
    return trust.is_fresh(page.last_modified, copied_at)


def _copied_at(page: PageRecord) -> float | None:
    """Return when the body was last received at the latest; None if a 304 came after it."""
    match page.last_outcome:
        case Outcome.NOT_MODIFIED:
            return None
        case Outcome.CHANGED | Outcome.UNCHANGED:
            return page.last_visit_at
        case _:
            return page.last_change_at


def _chance(page: PageRecord) -> float:
    """Return a number in [0, 1) that depends on page and visit count only."""
    return crc32(f"{page.page_id} {page.visit_count}".encode()) / 2**32
