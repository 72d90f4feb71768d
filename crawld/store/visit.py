"""Store visits: the attempt, the page's new state, the copy and the links.

Rule 1: only `CHANGED` writes digest, validators of a new copy and a version. Rule 2: a visit that
failed, was blocked or found the page (soft) gone leaves the last good copy and its columns as they
are. The statements of `page_update` enforce both rules, not their callers: each outcome has its own
UPDATE, and only that of `CHANGED` names those columns.

A visit, its version and its links are one transaction: after a crash either all of it is stored, or
the page is visited again. Only of a page with thousands of links parts may be stored before
(`LinkPart`); they do no harm if the visit never is. Response headers are stored with the version if
there is one, else with the visit (also for 304s).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final, NamedTuple

import apsw

from crawld.core.event import EventKind, event_kind
from crawld.core.page import Grace, Outcome, PageState
from crawld.core.value_type import value_type
from crawld.store import page_update
from crawld.store.changes import hint_answer, model, volatile, wiki_page
from crawld.store.changes.hint_answer import VisitTimes
from crawld.store.engine.in_parts import InParts, finish
from crawld.store.frontier import (
    event,
    frontier,
    left_pages,
    page_counts,
    quarantine,
    redirect,
    refusal,
    removal,
    requisite,
    tombstone,
)
from crawld.store.frontier import host as host_rows
from crawld.store.frontier.caps import NO_CAPS, Caps, NewPage
from crawld.store.frontier.event import NewEvent
from crawld.store.frontier.frontier import Discovery, Known
from crawld.store.frontier.host import HostUpdate
from crawld.store.frontier.refusal import Refusal
from crawld.store.versions import body, document_text, version
from crawld.store.versions.body import EncodedBody
from crawld.store.versions.response import StoredResponse


@value_type(kw_only=True)
class VisitRecord:
    """All results of one visit.

    Attributes:
        state: state of the page after it (`core.page.next_state`).
        renamed: whether the redirect is permanent, and the history moves to `redirect_url`.
        vanishing: whether the host's pages disappear in masses; None: not checked.
        failure, detail: a more specific word for a failed or blocked visit, and a text for people.
        response: the response, None if no complete response header came.
        duration_s: duration of the whole fetch.
        wire_bytes, body_bytes: body bytes as sent, and decoded.
        digest: digest of the content, 16 bytes; kept on the page only by `CHANGED`.
        body: the new copy; None if `CHANGED` may not be stored (noarchive).
        form: of the request, 8 bytes; None: the usual one.
        compared_id: version_id of the copy that it was compared with; None: the copy held.
        variant: whether the copy held has another form, so that a new copy is no change.
        cleaned_digest: digest of the cleaned text, 16 bytes; None if not computed.
        sketch: of the visible text, 128 bytes; None if not computed.
        difference: weighted difference from the previous copy, [0, 1].
        change_streak: visits in a row that found a change, this one included.
        model: the page's change model after the visit; None leaves it as it is.
        model_before: the stored model that `model` was computed from; None: there was none.
        remodel: computes the model from one that a job has stored meanwhile, given that model and
            the time until which the page's changes are exactly known; None: `model` replaces it.
        rules, template: the volatile blocks of the page and its host; None leaves them as they are.
        validators: evidence about the validators of its origin; None leaves it as it is.
        etag, last_modified: validators of the response.
        failure_count: failed visits in a row, this one included.
        retry_at: fixed time of the next visit, None: the policy decides.
        grace: how long the page has been gone.
        host: state of the fetched host after the visit; None leaves it as it is.
        fetched_host_id: the host that was fetched, if it was a replica of the page's host.
        discoveries, refusals: links that were admitted, and those that were not.
        requisites: all requisites of the new copy; None: as before.
        caps: the most pages of a site and a host.
        hint_judgement: the result for the hints of the page; None: the visit is no evidence.
        left_at: when the page had left its part as the visit began; None: it had not.
        unread: whether the page was in quarantine as the visit began, so that it was not analysed.
    """

    page_id: int
    visited_at: float
    outcome: Outcome
    state: PageState
    renamed: bool = False
    vanishing: bool | None = None
    failure: str | None = None
    detail: str | None = None
    response: StoredResponse | None = None
    address: str | None = None
    duration_s: float | None = None
    wire_bytes: int = 0
    body_bytes: int = 0
    digest: bytes | None = None
    body: EncodedBody | None = None
    form: bytes | None = None
    compared_id: int | None = None
    variant: bool = False
    cleaned_digest: bytes | None = None
    sketch: bytes | None = None
    difference: float | None = None
    change_streak: int = 0
    model: bytes | None = None
    model_before: bytes | None = None
    remodel: Callable[[bytes, float | None], bytes] | None = None
    rules: bytes | None = None
    template: volatile.Template | None = None
    validators: bytes | None = None
    etag: str | None = None
    last_modified: str | None = None
    redirect_url: str | None = None
    title: str | None = None
    failure_count: int = 0
    retry_at: float | None = None
    grace: Grace = field(default_factory=Grace)
    host: HostUpdate | None = None
    fetched_host_id: int | None = None
    discoveries: Sequence[Discovery] = ()
    requisites: Sequence[Discovery] | None = None
    caps: Caps = NO_CAPS
    refusals: Sequence[Refusal] = ()
    hint_judgement: hint_answer.HintJudgement | None = None
    left_at: float | None = None
    unread: bool = False

    @property
    def told_outcome(self) -> Outcome:
        """The outcome that is stored: a copy in another form is no change of the page."""
        return (
            Outcome.UNCHANGED if self.variant and self.outcome is Outcome.CHANGED else self.outcome
        )


class LinkPart(NamedTuple):
    """Some links of a page, stored in a transaction of their own before that of its visit.

    Attributes:
        links: all or some of the visit's `discoveries`.
        with_host: whether the politeness state of the host is stored too. It goes with the first
            part: a later visit of the host may be stored before the rest.
    """

    visit: VisitRecord
    links: Sequence[Discovery]
    with_host: bool


@value_type
class RecordResult:
    """Keys of a stored visit.

    Attributes:
        visit_id: the stored attempt; None for a part, or if the page was removed meanwhile and
            nothing was stored.
        version_id: the stored copy, None if none was stored.
        new_pages: discoveries that were not known.
        quiet_site_id: the site of a page that no source reported; None: one did, or no evidence.
        released: whether the page left quarantine during the visit, so that another must read it.
    """

    visit_id: int | None
    version_id: int | None
    new_pages: list[NewPage]
    quiet_site_id: int | None = None
    released: bool = False


_OLD: Final = f"""
SELECT state, site_id, host_id, origin_id, requisite, host, {removal.IS_REMOVED},
       {tombstone.ANY_EXISTS}, digest, page.change_count, version_id, absent, {hint_answer.ANY_HINT}
FROM page JOIN host USING (host_id) WHERE page_id = ?
"""

_INSERT: Final = """
INSERT INTO visit (page_id, visited_at, outcome, failure, detail, status, http_version, reason,
                   address, duration_s, wire_bytes, body_bytes, digest, version_id, headers,
                   cleaned_digest, sketch, difference)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_SAME: Final = (Outcome.UNCHANGED, Outcome.NOT_MODIFIED)


def record(connection: apsw.Connection, visit: VisitRecord) -> RecordResult:
    """Store one visit: attempt, page, copy, host, links."""
    return finish(record_in_parts(connection, visit))


def record_in_parts(connection: apsw.Connection, visit: VisitRecord) -> InParts[RecordResult]:
    """Do the same as `record`, in parts: a page may name 10,000 others."""
    old = connection.execute(_OLD, (visit.page_id,)).fetchone()
    if old is None:
        return RecordResult(None, None, [])
    state, site_id, host_id, origin_id, is_requisite, host, is_removed = old[:7]
    held, before = old[8], _Before(site_id, host_id, *old[9:12])
    times = VisitTimes.of(visit.visited_at, visit.duration_s)
    version_id = yield from _store_copy(connection, visit, before)
    # A release takes the digest of the copy that the page was compared with.
    lost_copy = visit.outcome in _SAME and held is None and before.version_id is not None
    released = lost_copy or (visit.unread and not quarantine.holds_page(connection, visit.page_id))
    if released:
        quarantine.read_whole(connection, visit.page_id)
    if is_removed and not is_requisite:
        removal.record_visit(connection, visit.page_id, visit.outcome, times.asked_at)
    if visit.left_at is not None:
        left_pages.record_visit(connection, visit.page_id, visit.outcome, visit.left_at)
    visit_id = _insert(connection, visit, version_id)
    if not is_requisite and not (visit.variant and visit.outcome is Outcome.CHANGED):
        _store_event(connection, visit, before, version_id)
    _store_evidence(connection, visit, host_id, origin_id)
    moved = state != visit.state and not is_requisite
    _count(connection, visit, site_id, host_id, PageState(state) if moved else visit.state)
    known = Known({host: host_id}, tombstones=bool(old[7]))
    new_pages = yield from _store_requisites(connection, visit, known, before)
    caps = visit.caps if visit.redirect_url is None else visit.caps.with_rows()
    found = yield from frontier.discover_in_parts(connection, visit.discoveries, caps, known)
    new_pages += found.new
    if visit.renamed and visit.redirect_url is not None:
        redirect.transfer_history(connection, visit.page_id, visit.redirect_url, visit.visited_at)
    if visit.vanishing is not None:
        redirect.set_vanishing(connection, host_id, visit.visited_at if visit.vanishing else None)
    if visit.refusals:
        yield from refusal.record_in_parts(connection, visit.refusals)
    first = visit.outcome if old[12] and state == PageState.DISCOVERED else None
    judged = (visit.page_id, times, visit.hint_judgement)
    quiet = hint_answer.record_visit(connection, *judged, first=first)
    quiet_site_id = site_id if quiet and not is_requisite else None
    return RecordResult(visit_id, version_id, new_pages, quiet_site_id, released)


def record_links_in_parts(connection: apsw.Connection, part: LinkPart) -> InParts[RecordResult]:
    """Store links of a page before its visit; those of a page that was removed are not stored."""
    visit = part.visit
    old = connection.execute(_OLD, (visit.page_id,)).fetchone()
    if old is None:
        return RecordResult(None, None, [])
    if part.with_host and visit.host is not None:
        host_rows.record_request(connection, visit.fetched_host_id or old[2], visit.host)
    found = yield from frontier.discover_in_parts(connection, part.links, visit.caps)
    return RecordResult(None, None, found.new)


def store_in_parts(
    connection: apsw.Connection, item: VisitRecord | LinkPart
) -> InParts[RecordResult]:
    """Store a visit, or links of a page before its visit."""
    if isinstance(item, LinkPart):
        return record_links_in_parts(connection, item)
    return record_in_parts(connection, item)


def record_all(connection: apsw.Connection, visits: Sequence[VisitRecord]) -> list[RecordResult]:
    """Store visits in their order; if one raises, none is stored."""
    return [record(connection, visit) for visit in visits]


def _store_copy(
    connection: apsw.Connection, visit: VisitRecord, before: _Before
) -> InParts[int | None]:
    """Store the copy of a visit, if there is a new one, and the state of its page."""
    response, is_new = visit.response, visit.outcome is Outcome.CHANGED
    same_id = version_id = None
    if is_new and visit.variant:
        same_id = version.with_body(connection, visit.page_id, visit.digest)
    if is_new and same_id is None and visit.body is not None and response is not None:
        body_id = yield from body.ensure_in_parts(connection, visit.body)
        document_text.put(connection, body_id, visit.body)
        version_id = version.insert(connection, visit.page_id, visit.visited_at, body_id, response)
    _update_page(connection, visit, same_id or version_id)
    of_held = visit.compared_id in (None, before.version_id) and visit.outcome is Outcome.UNCHANGED
    if response is not None and response.profile is not None and (same_id or of_held):
        version.set_profile(connection, visit.page_id, response.profile)
    return version_id


class _Before(NamedTuple):
    """What decides whether a visit is an event: the page before it."""

    site_id: int
    host_id: int
    change_count: int
    version_id: int | None
    absent: str | None

    @property
    def had_copy(self) -> bool:
        """Whether the page was ever stored; an imported copy counts as no change."""
        return self.change_count > 0 or self.version_id is not None


def _store_event(
    connection: apsw.Connection, visit: VisitRecord, before: _Before, version_id: int | None
) -> None:
    kind = event_kind(
        visit.outcome,
        had_copy=before.had_copy,
        absent=EventKind(before.absent) if before.absent else None,
        retired=visit.state is PageState.GONE,
    )
    if kind is None:
        return
    # There was nothing to compare with, as after a page got the history of another.
    blind = kind is EventKind.CHANGED and visit.difference is None and version_id is not None
    if blind and version.are_equal(connection, before.version_id, version_id):
        return
    unproven = kind is EventKind.GONE and visit.state is not PageState.GONE
    if unproven and event.loses_many(connection, before.host_id, visit.visited_at):
        return
    found = NewEvent(
        before.site_id,
        visit.page_id,
        kind,
        visit.visited_at,
        version_id,
        visit.compared_id or before.version_id,
        None if version_id is None else visit.difference,
        visit.redirect_url if kind is EventKind.MOVED else None,
    )
    event.insert(connection, found)


def _count(
    connection: apsw.Connection, visit: VisitRecord, site_id: int, host_id: int, before: PageState
) -> None:
    """Count the visit on the host that was fetched, and the page's change of state."""
    fetched_host_id = visit.fetched_host_id or host_id
    move, here = (site_id, host_id, before, visit.state), fetched_host_id == host_id
    host_rows.record_visit(
        connection,
        fetched_host_id,
        visit.host,
        changed=visit.told_outcome is Outcome.CHANGED,
        failed=visit.outcome is Outcome.FAILED,
        wire_bytes=visit.wire_bytes,
        steps=page_counts.count_visit(connection, move, here=here),
    )


def _store_requisites(
    connection: apsw.Connection, visit: VisitRecord, known: Known, before: _Before
) -> InParts[list[NewPage]]:
    if visit.requisites is None or not (visit.requisites or before.had_copy):
        return []
    found = yield from frontier.discover_in_parts(connection, visit.requisites, visit.caps, known)
    requisite.put(connection, visit.page_id, found.known_ids)
    return found.new


def _store_evidence(
    connection: apsw.Connection, visit: VisitRecord, host_id: int, origin_id: int
) -> None:
    if visit.model is not None:
        _store_model(connection, visit, visit.model)
    if visit.rules is not None:
        volatile.put_of_page(connection, visit.page_id, visit.rules)
    if visit.template is not None:
        volatile.put_of_host(connection, host_id, visit.template)
    if visit.validators is not None:
        host_rows.put_validators(connection, origin_id, visit.validators)


def _store_model(connection: apsw.Connection, visit: VisitRecord, after: bytes) -> None:
    # The model was read before the fetch; a history read meanwhile must not be lost.
    if visit.remodel is None:
        model.put(connection, visit.page_id, after)
    elif not model.put_if_unchanged(connection, visit.page_id, visit.model_before, after):
        stored = model.of_page(connection, visit.page_id)
        assert stored is not None  # without a stored model the insert would have succeeded
        until = wiki_page.complete_until(connection, visit.page_id)
        model.put(connection, visit.page_id, visit.remodel(stored, until))


def _update_page(connection: apsw.Connection, visit: VisitRecord, version_id: int | None) -> None:
    grace = visit.grace
    common = (
        visit.state,
        visit.visited_at,
        visit.told_outcome,
        visit.failure,
        visit.retry_at,
        visit.failure_count,
        grace.count,
        grace.since if grace.count else None,
    )
    own: tuple[apsw.SQLiteValue, ...]
    match visit.outcome:
        case Outcome.CHANGED:
            sql = page_update.CHANGED
            counted = (0, None) if visit.variant else (1, visit.visited_at)
            copy = (visit.digest, version_id, visit.etag, visit.last_modified, visit.title)
            text = (visit.cleaned_digest, visit.sketch, visit.change_streak)
            own = (*counted, *copy, visit.form, *text)
        case Outcome.UNCHANGED if visit.variant:
            sql = page_update.SAME_AS_VARIANT
            own = (visit.etag, visit.last_modified, visit.form)
        case Outcome.UNCHANGED | Outcome.NOT_MODIFIED:
            sql = page_update.SAME
            own = (visit.etag, visit.last_modified, visit.cleaned_digest, visit.change_streak)
        case Outcome.MOVED:
            sql, own = page_update.MOVED, (visit.redirect_url,)
        case _:
            sql, own = page_update.WITHOUT_COPY, ()
    connection.execute(sql, (*common, *own, visit.page_id))


def _insert(connection: apsw.Connection, visit: VisitRecord, version_id: int | None) -> int:
    line: tuple[int | str | None, ...] = (None, None, None)
    block = None
    if (response := visit.response) is not None:
        line = (response.status, response.http_version, response.reason)
        block = response.headers if version_id is None else None
    found = (visit.page_id, visit.visited_at, visit.told_outcome, visit.failure, visit.detail)
    traffic = (visit.address, visit.duration_s, visit.wire_bytes, visit.body_bytes)
    identity = (visit.cleaned_digest, visit.sketch, visit.difference)
    values = (*found, *line, *traffic, visit.digest, version_id, block, *identity)
    connection.execute(_INSERT, values)
    return connection.last_insert_rowid()
