"""Visits of simulated pages as the daemon would store them: bodies, digests, learnt noise.

The texts are rendered, analysed and compared by the daemon's own functions. Equal bodies under
equal rules are analysed once, since copies show many. Links are not read: nothing stores them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import xxhash

from crawld.bench.stored_visit import page_response
from crawld.core.content.analysis import analyse, read_blocks
from crawld.core.content.fingerprint import cleaned_digest, digest, sketch
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.volatile import NO_RULES, VolatileRules, cleaned
from crawld.core.page import Failure, Outcome, PageState
from crawld.core.units import DAY_S
from crawld.daemon.visit.comparison import ComparisonBasis, compare
from crawld.simweb.lookalike.render import render_page
from crawld.simweb.lookalike.web import LookalikeWeb
from crawld.store.changes.volatile import Template
from crawld.store.frontier.host import HostUpdate
from crawld.store.versions import body as bodies
from crawld.store.versions.body import EncodedBody
from crawld.store.versions.version import StoredCopy
from crawld.store.visit import VisitRecord

START_AT: Final = 1_760_000_000.0
"""Unix time of day 0."""

CONFIRM_PAGES: Final = 6
"""Pages of a host that are fetched twice, as the config says by default."""

_MOMENT_DAYS: Final = 60.0 / DAY_S
_CACHED: Final = 200_000
_TYPE: Final = "text/html"
_RESPONSE: Final = page_response()


class _ReadText(NamedTuple):
    """What a visit stores of a body."""

    digest: bytes
    cleaned_digest: bytes
    sketch: bytes
    encoded: EncodedBody


class PageVisits:
    """Makes the visits of the pages of a web."""

    def __init__(self, web: LookalikeWeb) -> None:
        self._web = web
        self._rules: dict[int, VolatileRules] = {}
        self._page_rules: dict[tuple[int, int], VolatileRules] = {}
        self._held: dict[tuple[int, int], bytes] = {}
        self._read: dict[bytes, _ReadText] = {}

    def learn(self, host: int, day: float) -> Template | None:
        """Learn the noise of a host from its first pages, each fetched twice; None: it has none."""
        decoration, pages = self._web.hosts[host].decoration, self._web.hosts[host].pages
        if not (decoration.date or decoration.counter or pages.volatile.any()):
            return None
        rules = NO_RULES
        for at in range(min(CONFIRM_PAGES, len(pages))):
            shown = [render_page(self._web, host, at, when) for when in (day, day + _MOMENT_DAYS)]
            if shown[0].redirect_url is None:
                old, new = (read_blocks(one.html.encode(), _TYPE) for one in shown)
                pair = ReadingPair.of(old, new)
                rules = pair.learn_host(rules, page_key=at, own=NO_RULES, pair=True)
        self._rules[host] = rules
        return Template(rules.to_bytes(), CONFIRM_PAGES)

    def changed(self, page_id: int, host: int, at: int, day: float, text: int) -> VisitRecord:
        """Return the visit of a page that is new, or whose text differs from the last one.

        Args:
            text: its text (`text_at`).
        """
        about = self._web.hosts[host]
        visited_at = START_AT + day * DAY_S
        shown = render_page(self._web, host, at, day, (text, int(about.pages.edit[at])))
        update = HostUpdate(
            last_fetch_at=visited_at,
            address=about.address,
            certificate=tuple(sorted(about.certificate)) if about.https else (),
        )
        if shown.redirect_url is not None:
            return VisitRecord(
                page_id=page_id,
                visited_at=visited_at,
                outcome=Outcome.MOVED,
                state=PageState.VISITED,
                redirect_url=shown.redirect_url,
                host=update,
            )
        content = shown.html.encode()
        if about.pages.volatile[at]:
            return self._noisy(page_id, host, at, visited_at, content)
        found = self._read_text(content, self._rules.get(host, NO_RULES))
        return replace(_first_copy(page_id, visited_at, found), host=update)

    def _noisy(
        self, page_id: int, host: int, at: int, visited_at: float, content: bytes
    ) -> VisitRecord:
        """Return the visit of a page whose text is new at every fetch; it teaches noise rules."""
        known = self._page_rules.get((host, at), NO_RULES)
        template = self._rules.get(host, NO_RULES)
        held = self._held.get((host, at))
        if held is None:
            analysis = analyse(content, _TYPE, volatile=known | template)
            rules, same, digest = None, False, analysis.cleaned_digest
        else:
            compared = compare(
                content,
                _TYPE,
                ComparisonBasis(
                    held=StoredCopy(held, _TYPE), rules=known, template=template, page_id=page_id
                ),
            )
            assert compared.analysis is not None  # `compare` always reads the body
            analysis, same = compared.analysis, compared.same
            rules, digest = compared.rules, compared.cleaned_digest or analysis.cleaned_digest
            if rules is not None:
                self._page_rules[host, at] = VolatileRules.from_bytes(rules)
            if compared.template is not None:
                self._rules[host] = VolatileRules.from_bytes(compared.template)
        if not same:
            self._held[host, at] = content
        return VisitRecord(
            page_id=page_id,
            visited_at=visited_at,
            outcome=Outcome.UNCHANGED if same else Outcome.CHANGED,
            state=PageState.VISITED,
            response=_RESPONSE,
            digest=analysis.digest,
            body=None if same else bodies.encode(content),
            cleaned_digest=digest,
            sketch=analysis.sketch,
            rules=rules,
            template=Template(self._rules[host].to_bytes(), CONFIRM_PAGES),
        )

    def _read_text(self, content: bytes, rules: VolatileRules) -> _ReadText:
        if rules.rules:
            return _read_body(content, rules)
        key = xxhash.xxh3_128_digest(content)
        found = self._read.get(key)
        if found is None:
            if len(self._read) >= _CACHED:
                self._read.clear()
            found = self._read[key] = _read_body(content, rules)
        return found


def _read_body(content: bytes, rules: VolatileRules = NO_RULES) -> _ReadText:
    """Return the same as `analyse`, without the links."""
    blocks = read_blocks(content, _TYPE)
    return _ReadText(
        digest=digest(content),
        cleaned_digest=cleaned_digest(cleaned(blocks, rules)),
        sketch=sketch(blocks.visible_text()),
        encoded=bodies.encode(content),
    )


def _first_copy(page_id: int, visited_at: float, found: _ReadText) -> VisitRecord:
    return VisitRecord(
        page_id=page_id,
        visited_at=visited_at,
        outcome=Outcome.CHANGED,
        state=PageState.VISITED,
        response=_RESPONSE,
        digest=found.digest,
        body=found.encoded,
        cleaned_digest=found.cleaned_digest,
        sketch=found.sketch,
    )


def unchanged(page_id: int, day: float, *, moved_to: str | None = None) -> VisitRecord:
    """Return the visit of a page whose text is the same as before."""
    return VisitRecord(
        page_id=page_id,
        visited_at=START_AT + day * DAY_S,
        outcome=Outcome.UNCHANGED if moved_to is None else Outcome.MOVED,
        state=PageState.VISITED,
        redirect_url=moved_to,
    )


def failed(page_id: int, day: float) -> VisitRecord:
    """Return the visit of a page that shows nothing, so that there is nothing to compare."""
    visited_at = START_AT + day * DAY_S
    return VisitRecord(
        page_id=page_id,
        visited_at=visited_at,
        outcome=Outcome.FAILED,
        state=PageState.DISCOVERED,
        failure=Failure.TIMEOUT,
        failure_count=1,
        retry_at=visited_at + DAY_S,
    )


def linking_visit(page_id: int, name: str, targets: list[str]) -> VisitRecord:
    """Return the visit of a page that links to others and has no other part in the web."""
    links = " ".join(f'<a href="{target}">{target}</a>' for target in targets)
    content = f"<!DOCTYPE html><html><body><p>Links of {name}</p>{links}</body></html>".encode()
    return _first_copy(page_id, START_AT, _read_body(content))
