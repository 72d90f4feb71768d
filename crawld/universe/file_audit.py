"""Checks of the file between two lives: what was answered must be there, and nothing else."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Final

import apsw
import trio

from crawld.errors import CrawldError
from crawld.store.doctor import examine
from crawld.store.engine.connection import open_connection
from crawld.store.versions import body
from crawld.store.versions.version import read_body
from crawld.universe.change_audit import ChangeAudit, Truth
from crawld.universe.file_rows import own_url, rows_of
from crawld.universe.findings import Findings
from crawld.universe.measured_freshness import MeasuredFreshness
from crawld.universe.plan import FaultKind, HostPlan, UniversePlan
from crawld.universe.replica_audit import check_replicas
from crawld.universe.simulated_host import SentAnswer

LOST_S: Final = 2.0
"""A visit is committed this long after its answer at the latest; a kill costs no older one."""

SAME_VISIT_S: Final = 60.0
"""How far the stored time of a visit may be from its request."""


NOISE_ANSWERS: Final = 4
"""A copy is as new as the first of the last so many answers: an edit between the two looks at a new
page is taken for what changes by itself."""

NO_HOSTS: Final[Mapping[str, Truth]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Answered:
    asked_s: float
    sent_s: float
    url: str


class _Answers:
    """Answers in their order, in columns: those of a year are there at once."""

    def __init__(self, kept: Iterable[_Answered] = ()) -> None:
        self._asked_s, self._sent_s = array("d"), array("d")
        self._urls: list[str] = []
        for each in kept:
            self.add(each.asked_s, each.sent_s, each.url)

    def add(self, asked_s: float, sent_s: float, url: str) -> None:
        self._asked_s.append(asked_s)
        self._sent_s.append(sent_s)
        self._urls.append(sys.intern(url))

    def __iter__(self) -> Iterator[_Answered]:
        return map(_Answered, self._asked_s, self._sent_s, self._urls)

    def remove_last(self, url: str) -> bool:
        """Remove the last answer of a URL; return whether there is one."""
        for place in range(len(self._urls) - 1, -1, -1):
            if self._urls[place] == url:
                for column in (self._asked_s, self._sent_s, self._urls):
                    del column[place]
                return True
        return False


class _Times:
    """The stored visits of a URL with a whole answer, each the visit of one request."""

    def __init__(self, times: list[float]) -> None:
        self._times = sorted(times)
        self._taken = [False] * len(times)

    def take(self, at: float) -> bool:
        """Take the nearest free visit about a time (Unix seconds); return whether there is one.

        A clock that was set back has other visits about the same time.
        """
        first = bisect_left(self._times, at - SAME_VISIT_S)
        last = bisect_right(self._times, at + SAME_VISIT_S)
        free = [place for place in range(first, last) if not self._taken[place]]
        if not free:
            return False
        self._taken[min(free, key=lambda place: abs(self._times[place] - at))] = True
        return True


class _Served:
    """What a URL was served with.

    Attributes:
        revisions: by the digest of a body, the revisions that had it: an edit may be undone, and a
            page without a change differs in what changes by itself.
        certain: the revisions of the last answers that the file must know, in their order; all but
            the first may have been taken for noise.
        stored: the last revision that the file was seen to have; -1: none.
    """

    def __init__(self) -> None:
        self.revisions: dict[bytes, tuple[int, ...]] = {}
        self.certain: list[int] = []
        self.stored = -1
        self._recent, self._sent_s = array("q"), array("d")

    def add(self, digest: bytes, revision: int, sent_s: float) -> None:
        known = self.revisions.get(digest, ())
        if revision not in known:
            self.revisions[digest] = (*known, revision)
        self._recent.append(revision)
        self._sent_s.append(sent_s)

    def set_aside(self) -> None:
        if self._recent:
            self._recent.pop()
            self._sent_s.pop()

    def settle(self, until_s: float) -> None:
        self.certain += [
            revision
            for sent_s, revision in zip(self._sent_s, self._recent, strict=True)
            if sent_s < until_s
        ]
        del self.certain[:-NOISE_ANSWERS]
        self._recent, self._sent_s = array("q"), array("d")


class FileAudit:
    """What must be in the file.

    Attributes:
        visits: stored visits at the last check.
        measured: checks the freshness that random visits have measured.
    """

    def __init__(
        self, plan: UniversePlan, found: Findings, hosts: Mapping[str, Truth] = NO_HOSTS
    ) -> None:
        self._plan = plan
        self._found = found
        self._changes = ChangeAudit(plan, found, hosts)
        self.measured = MeasuredFreshness(plan, found, hosts)
        self.visits = 0
        self._asked: Counter[str] = Counter()
        # Pages that were asked for and not answered yet; true: the answer will be set aside.
        self._under_way: dict[str, bool] = {}
        self._answered = _Answers()
        self._served: defaultdict[str, _Served] = defaultdict(_Served)
        self._checked_version = 0
        self._soft = {
            host.name
            for host in plan.hosts
            if any(each.kind is FaultKind.SOFT_404 for each in host.faults)
        }

    def asked(self, host: str, target: str) -> None:
        """Note a request."""
        url = _url(host, target)
        self._asked[url] += 1
        self._under_way[url] = False

    def answered(self, host: HostPlan, target: str, at_s: float, answer: SentAnswer) -> bool:
        """Note a whole answer of a page that was asked for at a time; false: it was set aside."""
        url, sent_s = _url(host.name, target), trio.current_time()
        if self._under_way.pop(url, False):
            return False
        self._answered.add(at_s, sent_s, url)
        if answer.body is not None:
            self._served[url].add(_digest(answer.body), answer.revision, sent_s)
        return True

    def set_aside(self, url: str) -> None:
        """Excuse the last answer of a page: it looked like an error page, and is asked again."""
        url = own_url(url)
        if url in self._under_way:  # a server may notice later than its client that all was sent
            self._under_way[url] = True
            return
        if self._answered.remove_last(url):
            self._served[url].set_aside()

    def forget(self, since_s: float) -> None:
        """Permit that the answers since a time are not in the file."""
        self._under_way.clear()
        self._answered = _Answers(each for each in self._answered if each.sent_s < since_s)
        for served in self._served.values():
            served.settle(since_s)

    def check(self, path: Path) -> None:
        """Check a file."""
        at_s = trio.current_time()
        try:
            for each in examine(path).findings:
                self._found.add("file", at_s, f"{each.kind}: {each.text} ({each.count})")
            with closing(open_connection(path, read_only=True)) as connection:
                self._check_visits(connection, at_s)
                self._check_copies(connection, at_s)
                if (left := body.unused(connection)) > 0:
                    self._found.add("bodies_left", at_s, f"{left} bodies have no version")
                self._changes.check(connection, at_s)
                self.measured.read(connection)
                check_replicas(self._plan, self._found, connection, self._revisions, at_s)
        except (CrawldError, apsw.Error) as error:
            self._found.add("file", at_s, f"{type(error).__name__}: {error}")

    # --- visits ------------------------------------------------------------------------------

    def _check_visits(self, connection: apsw.Connection, at_s: float) -> None:
        whole: defaultdict[str, list[float]] = defaultdict(list)
        answered: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for row in rows_of(connection, "visits"):
            url = own_url(row["url"])
            counts[url] += 1
            answered[url] += row["status"] is not None
            if row["status"] in (200, 304):
                whole[url].append(row["visited_at"])
        self.visits = counts.total()
        times = {url: _Times(found) for url, found in whole.items()}
        for each in self._answered:
            found = times.get(each.url)
            if found is None or not self._takes(found, each):
                what = f"{each.url} was answered at {each.asked_s:.3f}"
                self._found.add("visit_lost", at_s, what)
        self._answered = _Answers()
        for url, count in answered.items():
            if count > self._asked[url]:
                what = f"{url}: {count} of {self._asked[url]}"
                self._found.add("visit_invented", at_s, what)
        self._check_counts(connection, at_s, counts)

    def _takes(self, times: _Times, answered: _Answered) -> bool:
        """Whether there is a visit about then, by the clock before or after a step about then."""
        at_s = answered.asked_s
        steps_s = [step.at_s for step in self._plan.steps if abs(step.at_s - at_s) <= SAME_VISIT_S]
        # First by the clock of the request: other visits may be about the times of other clocks.
        when_s = (at_s, at_s - SAME_VISIT_S, *steps_s)
        offsets = dict.fromkeys(self._plan.wall(each) - each for each in when_s)
        return any(times.take(at_s + offset) for offset in offsets)

    def _check_counts(
        self, connection: apsw.Connection, at_s: float, visits: Mapping[str, int]
    ) -> None:
        counts: Counter[str] = Counter()
        for row in rows_of(connection, "pages"):
            counts[own_url(row["url"])] += row["visit_count"]
        for url, count in counts.items():
            if count != visits.get(url, 0):
                what = f"{url}: {count}, not {visits.get(url, 0)}"
                self._found.add("visits_miscounted", at_s, what)

    # --- copies ------------------------------------------------------------------------------

    def _check_copies(self, connection: apsw.Connection, at_s: float) -> None:
        newest: dict[str, tuple[float, int]] = {}
        for row in rows_of(connection, "versions"):
            url, number = own_url(row["url"]), row["version_id"]
            newest[url] = max(newest.get(url, (0.0, 0)), (row["visited_at"], number))
            if number <= self._checked_version or self._may_be_error(url):
                continue
            if self._revision(connection, url, number) is None:
                self._found.add("copy_invented", at_s, f"{url}: version {number} was never served")
        self._checked_version = max((number for _, number in newest.values()), default=0)
        if not self._plan.steps:  # else the newest by its time is not the last
            self._check_newest(connection, at_s, newest)

    def _may_be_error(self, url: str) -> bool:
        """Whether nobody can know that a copy is none of a page.

        It never was one, and its host says so with status 200 now and then.
        """
        return not self._served[url].revisions and url.split("/")[2] in self._soft

    def _check_newest(
        self, connection: apsw.Connection, at_s: float, newest: dict[str, tuple[float, int]]
    ) -> None:
        for url, served in self._served.items():
            if not served.certain:
                continue
            if url not in newest:
                self._found.add("copy_lost", at_s, f"{url} has no copy")
                continue
            revision = self._revision(connection, url, newest[url][1])
            if revision is None:
                continue  # found above
            if revision < served.stored:
                what = f"{url}: revision {revision} after {served.stored}"
                self._found.add("copy_replaced", at_s, what)
            elif revision < served.certain[0]:
                what = f"{url}: revision {revision}, served {served.certain[-1]}"
                self._found.add("copy_old", at_s, what)
            served.stored = revision

    def _revision(self, connection: apsw.Connection, url: str, version_id: int) -> int | None:
        """Return which revision a copy is, the last one; None: none that was served."""
        return max(self._revisions(connection, url, version_id), default=None)

    def _revisions(self, connection: apsw.Connection, url: str, version_id: int) -> Set[int]:
        """Return which revisions a copy is."""
        content = read_body(connection, version_id)
        known = self._served[url].revisions
        return frozenset() if content is None else frozenset(known.get(_digest(content), ()))


def _url(host: str, target: str) -> str:
    return own_url(f"http://{host}{target}")


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest()
