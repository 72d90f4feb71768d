"""What visits say about the hints of their pages: answered or not, real or false.

A visit shows the page as of its request, not as of its response: a change in between may be missing
in the copy, and its hint stays, also that of a page whose first visit was under way.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import apsw

from crawld.core.page import Outcome
from crawld.core.value_type import value_type
from crawld.store.changed import note
from crawld.store.changes import untold
from crawld.store.changes.hint import (
    FAN_OUT,
    RENDER_S,
    SPAN_S,
    dump_reliability,
    load_reliability,
)

CLOCK_S: Final = 60.0
"""If a hint came this much later than the visit that answers it, the clock was set back."""


class VisitTimes(NamedTuple):
    """When a visit was made, Unix seconds.

    Attributes:
        at: time of the response.
        asked_at: time of the request; the visit shows the page as of it.
    """

    at: float
    asked_at: float

    @classmethod
    def of(cls, at: float, duration_s: float | None) -> VisitTimes:
        """Return the times of a visit by how long its fetch took; None: there was no response."""
        return cls(at, at - (duration_s or 0.0))


@value_type
class HintJudgement:
    """The result of a visit for the hints of its page.

    Attributes:
        sources: hint_source_ids of the sources for the page's site and host; None: there is none.
        before_at: time of the previous visit.
        changed: whether the page had changed; None if the visit does not show it.
        expected: probability of a change since the previous visit, by the page's model.
    """

    sources: tuple[int, ...] | None
    before_at: float
    changed: bool | None
    expected: float = 0.0


def record_visit(
    connection: apsw.Connection,
    page_id: int,
    seen: VisitTimes,
    judgement: HintJudgement | None,
    *,
    first: Outcome | None = None,
) -> bool:
    """Delete the hints that a visit answers, and judge their sources.

    Args:
        judgement: None: the visit is no evidence.
        first: outcome of the first visit of a page that has hints; None: it is another.

    Returns:
        Whether the visit is evidence, and no source had reported the page.
    """
    if judgement is not None:
        # Without sources there are no hints.
        return judgement.sources is None or not judge(connection, page_id, seen, judgement)
    if first is not None:
        # Without a response there is no copy that could be stale.
        until = math.inf if first in (Outcome.FAILED, Outcome.BLOCKED) else seen.asked_at
        sql = "DELETE FROM hint WHERE page_id = ? AND last_at <= ?"
        connection.execute(sql, (page_id, until))
    return False


def judge(
    connection: apsw.Connection,
    page_id: int,
    seen: VisitTimes,
    judgement: HintJudgement,
) -> bool:
    """Judge the sources of a page by a visit, and delete the hints that it answers.

    Call it only for visits that show the current content of the page.

    Returns:
        Whether the page had a hint.
    """
    rows = connection.execute(_OF_PAGE, (page_id,))
    hints = {number: _Hint(*row) for number, *row in rows}
    # A page that was edited itself has changed in any case; an edit renders it with its templates.
    edits = (
        hint.last_at
        for hint in hints.values()
        if not hint.of_fan_out and hint.is_answered_by(seen, rendered=False)
    )
    edited_at = max(edits, default=math.inf) - SPAN_S
    rendered = {
        number
        for number, hint in hints.items()
        if judgement.changed and edited_at > hint.template_edited_at
    }
    answered = [
        hint
        for number, hint in hints.items()
        if hint.is_answered_by(seen, rendered=number in rendered)
    ]
    explained = any(hint.of_fan_out for hint in answered)
    sources = judgement.sources or ()
    for number in dict.fromkeys((*hints, *sources)):
        hint = hints.get(number)
        if hint is not None and hint not in answered:
            hint = None
        known = judgement.changed is not None
        if hint is not None and known and number not in rendered and hint.is_early(seen):
            connection.execute(_PUT_OFF, (hint.first_at + RENDER_S, page_id, number))
            continue
        if hint is not None and hint.is_over(seen):
            connection.execute(_DELETE, (page_id, number))
        if judgement.changed and hint is None and number in sources:
            if explained:
                untold.count_explained(connection, [number])
            else:
                untold.add(connection, number, page_id, seen.at, noticed=bool(answered))
        if judgement.changed is not None and hint is not None:
            _record_judgement(connection, number, judgement, hint)
    return bool(hints)


_OF_PAGE: Final = f"""
SELECT hint_source_id, first_at, last_at, heard_at, kind = '{FAN_OUT}'
FROM hint CROSS JOIN hint_source USING (hint_source_id) WHERE page_id = ?
"""


class _Hint(NamedTuple):
    first_at: float
    last_at: float
    heard_at: float
    of_fan_out: int

    @property
    def is_put_off(self) -> bool:
        """Whether a visit came too early to answer it: it is dated later than it was heard."""
        return bool(self.of_fan_out) and self.first_at > self.heard_at

    @property
    def template_edited_at(self) -> float:
        """When the template was edited, of a hint of a fan-out."""
        return self.first_at - RENDER_S if self.is_put_off else self.first_at

    def is_answered_by(self, seen: VisitTimes, *, rendered: bool) -> bool:
        if self.is_put_off and rendered:
            return True
        return self.first_at <= seen.asked_at or self._is_after_clock_reset(seen)

    def is_over(self, seen: VisitTimes) -> bool:
        """Whether a visit that answers it leaves no later change."""
        return self.is_put_off or self.last_at <= seen.asked_at or self._is_after_clock_reset(seen)

    def is_early(self, seen: VisitTimes) -> bool:
        """Whether the wiki may not have rendered the page again by a visit."""
        is_first = bool(self.of_fan_out) and not self.is_put_off
        return is_first and 0.0 <= seen.asked_at - self.first_at < RENDER_S

    def _is_after_clock_reset(self, seen: VisitTimes) -> bool:
        return self.heard_at > seen.at + CLOCK_S


ANY_HINT: Final = "EXISTS (SELECT 1 FROM hint WHERE hint.page_id = page.page_id)"
"""Whether a page of a query has hints."""

_DELETE: Final = "DELETE FROM hint WHERE page_id = ? AND hint_source_id = ?"

_PUT_OFF: Final = """
UPDATE hint SET first_at = ?1, last_at = ?1 WHERE page_id = ?2 AND hint_source_id = ?3
"""

_JUDGED: Final = """
UPDATE hint_source SET real_count = real_count + ?, false_count = false_count + ?,
    lag_s = lag_s + ?, lag_count = lag_count + ?, evidence = ? WHERE hint_source_id = ?
"""


def _record_judgement(
    connection: apsw.Connection, number: int, judgement: HintJudgement, hint: _Hint
) -> None:
    """Record whether the hint of a source was real."""
    if not judgement.changed and hint.first_at <= judgement.before_at:
        return  # the previous visit may have seen that change already
    sql = "SELECT evidence FROM hint_source WHERE hint_source_id = ?"
    row = connection.execute(sql, (number,)).fetchone()
    if row is None:
        return
    evidence, changed = load_reliability(row[0]), bool(judgement.changed)
    evidence.learn_visit(1, changed=changed, expected=judgement.expected)
    if hint.of_fan_out:
        evidence.learn_group(hint.heard_at, changed=changed)
    lag_s = max(hint.heard_at - hint.first_at, 0.0) if changed else 0.0
    if lag_s:
        evidence.learn_lag(lag_s)
    counts = (int(changed), int(not changed), lag_s, int(lag_s > 0.0))
    connection.execute(_JUDGED, (*counts, dump_reliability(evidence), number))
    note(connection, "hint_source")
