"""Rules by which URLs of an origin show the same page, and the origins searched for them.

Related: `dust_page` (the pages that rules hide, or that were compared).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple

import apsw

from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import DustRule, HostRules
from crawld.core.dust.watch import WatchedRule

RuleStatus = Literal["trial", "holds", "refused", "withdrawn"]
RuleWord = Literal["confirmed", "revoked"]


class DustOrigin(NamedTuple):
    """An origin that may be searched for rules.

    Attributes:
        pages: its pages, and those of other origins of its host.
        read_pages: the same when its URLs were last read; 0: never.
        sections: first segments of paths that are sections of their own.
        asked: visits asked for so far that the crawl would not have made.
        has_rules: whether it has a rule, or a trial.
        visits: of its host.
    """

    origin_id: int
    origin: str
    host_id: int
    host: str
    pages: int
    read_pages: int
    sections: tuple[str, ...]
    asked: int
    has_rules: bool
    visits: int


_ORIGINS: Final = """
SELECT origin_id, origin, host.host_id, host, page_count, ifnull(dust_origin.pages, 0),
       ifnull(sections, '[]'), ifnull(asked, 0),
       EXISTS (SELECT 1 FROM dust_rule WHERE dust_rule.origin_id = origin.origin_id), visit_count
FROM host JOIN origin USING (host_id) LEFT JOIN dust_origin USING (origin_id)
WHERE page_count >= ? AND visit_count > 0 AND ifnull(origin.server_id, host.host_id) NOT IN
    (SELECT server_id FROM replica WHERE status IN ('pruned', 'partly'))
ORDER BY origin_id
"""


def list_origins(connection: apsw.Connection, least_pages: int) -> list[DustOrigin]:
    """Return the origins of hosts with so many pages; servers that are replicas are left out."""
    rows: Any = connection.execute(_ORIGINS, (least_pages,))
    return [
        DustOrigin(
            *(origin_id, origin, host_id, host, pages, read),
            *(tuple(json.loads(sections)), asked, bool(ruled), visits),
        )
        for origin_id, origin, host_id, host, pages, read, sections, asked, ruled, visits in rows
    ]


def put_origin(
    connection: apsw.Connection, origin_id: int, sections: Iterable[str], pages: int, now: float
) -> None:
    """Store that the URLs of an origin were read; sections once found stay."""
    connection.execute(
        "INSERT INTO dust_origin (origin_id, sections, pages, read_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET sections = excluded.sections, pages = excluded.pages,"
        " read_at = excluded.read_at",
        (origin_id, json.dumps(sorted(sections)), pages, now),
    )


def count_asked(connection: apsw.Connection, origin_id: int, count: int) -> None:
    """Count visits asked for that the crawl would not have made."""
    connection.execute(
        "UPDATE dust_origin SET asked = asked + ? WHERE origin_id = ?", (count, origin_id)
    )


class DustRuleRow(NamedTuple):
    """A rule or a trial.

    Attributes:
        status: trial, holds, refused or withdrawn.
        word: what the operator said: confirmed, revoked or None.
        equal: pairs of pages compared that were equal.
        score: what the pairs say; see `trial` and `watch` in `core/dust`.
        look_at: when pages that it hides are visited again.
    """

    dust_rule_id: int
    origin_id: int
    origin: str
    rule: DustRule
    status: RuleStatus
    word: RuleWord | None
    since: float
    equal: int
    differing: int
    score: float
    look_at: float

    @property
    def applies(self) -> bool:
        """Whether it is applied."""
        return self.word == "confirmed" or (self.status == "holds" and self.word is None)

    @property
    def watched(self) -> WatchedRule:
        """What its pairs say while it is in force."""
        return WatchedRule(self.equal, self.differing, self.score)


_RULES: Final = """
SELECT dust_rule_id, origin_id, origin, form, name, value, section, status, word, since, equal,
       differing, score, look_at
FROM dust_rule JOIN origin USING (origin_id)
WHERE (?1 IS NULL OR origin_id = ?1) AND (?2 IS NULL OR origin = ?2)
ORDER BY origin, dust_rule_id
"""


def list_rules(
    connection: apsw.Connection, origin_id: int | None = None, *, origin: str | None = None
) -> list[DustRuleRow]:
    """Return the rules and trials of an origin, or of all."""
    rows: Any = connection.execute(_RULES, (origin_id, origin))
    return [
        DustRuleRow(
            *(number, of_origin, origin),
            DustRule(Rewrite(RewriteForm(form), name, value), section),
            *rest,
        )
        for number, of_origin, origin, form, name, value, section, *rest in rows
    ]


def applied_rules(
    connection: apsw.Connection, *, origin: str | None = None
) -> dict[str, HostRules]:
    """Return the rules that are applied to an origin, or to all, by origin."""
    rules: dict[int, tuple[str, list[DustRule]]] = {}
    for row in list_rules(connection, origin=origin):
        if row.applies:
            rules.setdefault(row.origin_id, (row.origin, []))[1].append(row.rule)
    return {
        name: HostRules(found, _sections(connection, origin_id))
        for origin_id, (name, found) in rules.items()
    }


def _sections(connection: apsw.Connection, origin_id: int) -> list[str]:
    found = connection.execute(
        "SELECT sections FROM dust_origin WHERE origin_id = ?", (origin_id,)
    ).get
    sections: list[str] = json.loads(found or "[]")
    return sections


def add_trials(
    connection: apsw.Connection, origin_id: int, rules: Iterable[DustRule], now: float
) -> None:
    """Begin trials; rules that are known stay as they are."""
    connection.executemany(
        "INSERT OR IGNORE INTO dust_rule (origin_id, form, name, value, section, status, since)"
        " VALUES (?, ?, ?, ?, ?, 'trial', ?)",
        [(origin_id, *rule.rewrite, rule.section, now) for rule in rules],
    )


def set_status(
    connection: apsw.Connection, dust_rule_id: int, status: RuleStatus, now: float, look_at: float
) -> None:
    """Store the result of a trial, or that a rule is withdrawn."""
    connection.execute(
        "UPDATE dust_rule SET status = ?, since = ?, look_at = ? WHERE dust_rule_id = ?",
        (status, now, look_at, dust_rule_id),
    )


def put_evidence(
    connection: apsw.Connection, dust_rule_id: int, equal: int, differing: int, score: float
) -> None:
    """Store how many pairs were equal and different, and the score."""
    connection.execute(
        "UPDATE dust_rule SET equal = ?, differing = ?, score = ? WHERE dust_rule_id = ?",
        (equal, differing, score, dust_rule_id),
    )


def look_again(connection: apsw.Connection, dust_rule_id: int, look_at: float) -> None:
    """Store when pages that a rule hides are visited again."""
    connection.execute(
        "UPDATE dust_rule SET look_at = ? WHERE dust_rule_id = ?", (look_at, dust_rule_id)
    )


_REFUSED: Final = (
    "dust_rule WHERE status IN ('refused', 'withdrawn') AND word IS NULL AND since < ?"
)


def has_refused(connection: apsw.Connection, before: float) -> bool:
    """Whether rules failed before a time."""
    return bool(connection.execute(f"SELECT EXISTS (SELECT 1 FROM {_REFUSED})", (before,)).get)


def drop_refused(connection: apsw.Connection, before: float) -> None:
    """Forget rules that failed before a time, so that they may be tried again."""
    connection.execute(f"DELETE FROM {_REFUSED}", (before,))


def set_word(
    connection: apsw.Connection, dust_rule_id: int, word: RuleWord | None, now: float
) -> DustRuleRow | None:
    """Store what the operator says about a rule; return it, None if there is none.

    Args:
        connection: the file.
        dust_rule_id: the rule.
        word: confirmed, revoked, or None: pages decide.
        now: Unix seconds; the pages of a confirmed rule are looked at from then on.
    """
    connection.execute(
        "UPDATE dust_rule SET word = ?, look_at = ? WHERE dust_rule_id = ?",
        (word, now, dust_rule_id),
    )
    return next((row for row in list_rules(connection) if row.dust_rule_id == dust_rule_id), None)
