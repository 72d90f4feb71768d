"""Checks of what the file believes of changes: each happened, at its time, and counts once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, Protocol

import apsw

from crawld.core.change.model import PageModel
from crawld.core.page import Outcome
from crawld.simweb.site import ValidatorBehavior
from crawld.store.changes import model as model_rows
from crawld.universe.file_rows import own_url, rows_of
from crawld.universe.findings import Findings
from crawld.universe.plan import START_AT, HostPlan, UniversePlan

AROUND_S: Final = 60.0
"""A visit's stored time and its request are so close."""

SECOND_S: Final = 1.0
"""Validators name whole seconds."""

BATCH: Final = 1_000
"""Models that are read at once."""

_LEARNT: Final = (Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NOT_MODIFIED)


class Truth(Protocol):
    """What a host knows of its pages; times are seconds since the start of the universe."""

    plan: HostPlan

    def page_at(self, path: str) -> int | None:
        """Return the number of the page at its first path."""

    def revision(self, page: int, at_s: float) -> int:
        """Return the number of changes of a page until a time."""

    def changed_since(self, page: int, at_s: float) -> float:
        """Return when a page changed last, at or before a time; 0: not yet."""

    def changed_after(self, page: int, at_s: float) -> float:
        """Return when a page changes next after a time; inf: never."""


class ChangeAudit:
    """What a file may believe of the pages of some hosts.

    Where the daemon's clock jumps nothing is checked: stored times have no meaning there.
    """

    def __init__(self, plan: UniversePlan, found: Findings, hosts: Mapping[str, Truth]) -> None:
        self._plan = plan
        self._found = found
        self._hosts = hosts

    def check(self, connection: apsw.Connection, at_s: float) -> None:
        """Check the changes and the models of a file."""
        if self._plan.steps:
            return
        learnt: defaultdict[int, int] = defaultdict(int)
        for visit in rows_of(connection, "visits"):
            learnt[visit["page_id"]] += visit["outcome"] in _LEARNT
        self._check_changes(connection, at_s)
        after: model_rows.PageKey | None = model_rows.BEFORE_FIRST
        while after is not None:
            models, after = model_rows.batch(connection, after=after, limit=BATCH)
            for row in models:
                model = PageModel.from_bytes(row.record)
                self._check_model(model, own_url(row.url), learnt[row.page_id], at_s)

    def _check_changes(self, connection: apsw.Connection, at_s: float) -> None:
        for row in rows_of(connection, "changes"):
            url = own_url(row["url"])
            found = self._page(url)
            if found is not None and row["source"] != "visit":
                self._check_time(*found, row["changed_at"] - START_AT, url, at_s)
            if found is None or row["source"] != "visit" or row["kind"] is not None:
                continue
            host, page = found
            if host.plan.noise or not host.plan.is_honest():
                continue  # what is noise shows after some visits; a 304 may hide a change for long
            since_s = row["earliest_at"] - START_AT - AROUND_S
            until_s = row["changed_at"] - START_AT + AROUND_S
            if host.revision(page, since_s) == host.revision(page, until_s):
                what = f"{url} did not change from {since_s:.0f} to {until_s:.0f} s"
                self._found.add("change_invented", at_s, what)

    def _check_model(self, model: PageModel, url: str, visits: int, at_s: float) -> None:
        found = self._page(url)
        if model.visits > visits and not (found is not None and found[0].plan.wiki):
            what = f"{url}: its model has {model.visits} visits of {visits}"
            self._found.add("visits_counted_twice", at_s, what)
        if found is None or not model.exact_changes or model.changed:
            return
        host, page = found
        if host.plan.last_modified is not ValidatorBehavior.RIGHT:
            return
        self._check_time(host, page, model.last_change_at - START_AT, url, at_s)

    def _check_time(self, host: Truth, page: int, told_s: float, url: str, at_s: float) -> None:
        """Check the time of a change that an exact source has told."""
        true_s = host.changed_since(page, told_s + SECOND_S)
        fates_s = [each.from_s for each in host.plan.events if each.page == page]
        if all(abs(told_s - each) > SECOND_S for each in (true_s, *fates_s)):
            what = f"{url}: last change at {told_s:.3f} s, not {true_s:.3f}"
            self._found.add("change_time", at_s, what)

    def _page(self, url: str) -> tuple[Truth, int] | None:
        name, _, path = url.removeprefix("http://").partition("/")
        host = self._hosts.get(name)
        page = None if host is None else host.page_at(f"/{path}")
        return None if host is None or page is None else (host, page)
