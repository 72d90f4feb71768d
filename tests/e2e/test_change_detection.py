"""Changes detected by the daemon, compared with a simulated web that knows the truth.

The daemon runs in this process over real sockets and a real database. It shares the web's wall
clock, which the test advances, so weeks pass in seconds and the time of every visit is known.
"""

from dataclasses import dataclass

import pytest
import trio

from crawld.core.change.model import PageModel
from crawld.core.validators import ValidatorTrust
from crawld.daemon.clock import Clock
from crawld.daemon.run import run_daemon
from crawld.simweb.change_process import poisson_process
from crawld.simweb.graph import SiteGraph
from crawld.simweb.page_text import EditKind
from crawld.simweb.render import ALL_NOISE, PageStyle
from crawld.simweb.server import SimWeb
from crawld.simweb.site import SimSite, ValidatorBehavior
from tests.daemon.harness import Mirror, until

START_AT = 1_780_000_000.0
REQUEST_S = 2.0
DAY_S = 86_400.0
HOST = "a.test"


class WebClock:
    """Wall clock of web and daemon; each request advances it by `REQUEST_S`."""

    def __init__(self):
        self.at = START_AT

    def __call__(self):
        return self.at

    def tick(self):
        self.at += REQUEST_S
        return self.at


def site_of(pages, *, interval_s=2 * DAY_S, noise=ALL_NOISE, seed=1, **more):
    """Return a site whose pages all change at random and contain noise."""
    return SimSite(
        (HOST,),
        SiteGraph(pages, seed=seed),
        changes=lambda page: poisson_process(
            interval_s, start_at=START_AT, seed=seed * 1000 + page
        ),
        start_at=START_AT - 30 * DAY_S,
        style=PageStyle(noise=noise),
        **more,
    )


@dataclass
class MirrorRun:
    """A daemon on a simulated site, driven in rounds."""

    site: SimSite
    web: SimWeb
    wall: WebClock
    mirror: Mirror
    daemon: object
    url: str

    async def rounds(self, count, *, every_s):
        """Let every page be visited once per round."""
        for _ in range(count):
            self.wall.at += every_s
            await self.daemon.crawl.schedule.wake_all()
            await self.settle()

    async def settle(self):
        """Wait until no visit is due before the wall clock advances."""
        await until(self._settled, what="rest")

    def _settled(self):
        crawl = self.daemon.crawl
        if (
            crawl.schedule.on_turn
            or crawl.recorder.unrecorded
            or not self.daemon.site_registry.seeded
        ):
            return False
        wanted = [crawl.wanted_at(host.slot) for host in crawl.state.hosts.values()]
        # Read after the due times, which also come from the clock: a time not later than now is
        # due.
        now = trio.current_time()
        return bool(wanted) and all(at is None or at > now for at in wanted)

    def visits(self):
        """Return (page, at, outcome, digest, difference) of the successful visits, in order."""
        rows = self.mirror.rows(
            "SELECT url, visited_at, outcome, visit.digest, difference FROM visit"
            " JOIN page USING (page_id) WHERE outcome IN ('changed', 'unchanged', 'not_modified')"
            " ORDER BY visit_id"
        )
        return [(self.site.page_of(url), *rest) for url, *rest in rows]

    def conditional_share(self, *, after):
        """Return the share of page requests after a time that were conditional."""
        rows = [row for row in self.web.ledger.rows() if row.at > after]
        pages = [row for row in rows if self.site.page_of(row.target) is not None]
        sent = [bool(row.if_none_match or row.if_modified_since) for row in pages]
        return sum(sent) / len(sent)

    def trust(self):
        """Return the stored trust in the origin's validators."""
        [[stored]] = self.mirror.rows("SELECT validators FROM origin")
        return ValidatorTrust.from_bytes(stored)


@pytest.fixture
def run(nursery, tmp_path):
    """Return a function that mirrors a site once and returns the running daemon."""

    async def start(site, *, skew_s=0.0, **tables):
        wall = WebClock()
        mirror = Mirror(tmp_path / "m.db", clock=Clock(wall=wall))
        web = SimWeb([site], clock=lambda: wall.tick() + skew_s)
        listening = await nursery.start(web.serve)
        url = listening.url(HOST)
        tables = {"content": {"confirm_pages": 6}, **tables}
        daemon = await nursery.start(run_daemon, mirror.make_start(url, once=False, **tables))
        made = MirrorRun(site, web, wall, mirror, daemon, url)
        await made.settle()
        return made

    return start


@dataclass
class DetectionScore:
    """Detected changes compared with the truth, over all visits but the first of each page."""

    edits: int = 0
    found: int = 0
    still: int = 0
    false: int = 0
    exact_false: int = 0
    exact_known: int = 0
    digits: int = 0
    deletions: int = 0

    def __str__(self):
        return (
            f"{self.found} of {self.edits} visits with edits found ({self.digits} digits only,"
            f" {self.deletions} deletions only); {self.false} false changes in {self.still}"
            f" visits without; exact digests: {self.exact_false} of {self.exact_known}"
        )


def score_visits(run, *, after=START_AT):
    """Compare every visit after a time with the revisions of the web."""
    made = DetectionScore()
    last = {}
    for page, at, outcome, digest, _ in run.visits():
        before = last.get(page)
        last[page] = (at, digest)
        if before is None or at <= after:
            continue
        old, new = run.site.revision(page, before[0]), run.site.revision(page, at)
        changed = outcome == "changed"
        if new != old:
            kinds = {run.site.rendering.edit_kind(page, r) for r in range(old + 1, new + 1)}
            made.edits += 1
            made.found += changed
            made.digits += kinds == {EditKind.DIGITS}
            made.deletions += kinds == {EditKind.DELETION}
            continue
        made.still += 1
        made.false += changed
        made.exact_known += digest is not None
        made.exact_false += digest is not None and digest != before[1]
    return made


async def test_edits_are_detected_and_noise_is_ignored(run):
    running = await run(
        site_of(30, seed=3, etag=ValidatorBehavior.ABSENT, last_modified=ValidatorBehavior.ABSENT),
        schedule={"min_revisit_s": 3600.0},
    )
    await running.rounds(18, every_s=DAY_S / 2)
    found = score_visits(running)
    print(found)
    assert found.digits >= 0.1 * found.edits
    assert found.deletions >= 0.05 * found.edits
    assert found.found >= 0.99 * found.edits, str(found)
    assert found.false <= 0.01 * found.still, str(found)
    # For comparison: by exact digests, every page changes at every visit.
    assert found.exact_false == found.exact_known == found.still


RIGHT, ABSENT, FROZEN = ValidatorBehavior.RIGHT, ValidatorBehavior.ABSENT, ValidatorBehavior.FROZEN
RESTLESS, FUTURE = ValidatorBehavior.RESTLESS, ValidatorBehavior.FUTURE
HOURLY = {"schedule": {"min_revisit_s": 3600.0}}


async def test_correct_validators_are_used_and_hide_no_change(run):
    running = await run(site_of(30, noise=frozenset(), last_modified=ABSENT), **HOURLY)
    await running.rounds(16, every_s=DAY_S / 2)
    found = score_visits(running)
    print(found)
    assert found.found == found.edits > 50, str(found)
    assert found.false == 0, str(found)
    # Validators of new origins are checked more often than proven ones.
    assert 0.85 < running.conditional_share(after=START_AT + DAY_S / 4) < 1.0
    assert running.trust().etag.trusted


@pytest.mark.parametrize(
    ("etag", "last_modified"),
    [
        *((FROZEN, ABSENT), (ABSENT, FROZEN), (FROZEN, RIGHT), (RESTLESS, ABSENT)),
        *((ABSENT, RESTLESS), (ABSENT, FUTURE), (RESTLESS, RESTLESS), (FROZEN, FUTURE)),
    ],
)
async def test_wrong_validators_are_detected_and_no_longer_sent(run, etag, last_modified):
    site = site_of(30, noise=frozenset(), etag=etag, last_modified=last_modified)
    running = await run(site, **HOURLY)
    await running.rounds(12, every_s=DAY_S / 2)
    warned_at = running.wall.at
    await running.rounds(8, every_s=DAY_S / 2)
    found = score_visits(running, after=warned_at)
    print(etag, last_modified, found)
    assert found.edits > 40
    assert found.found == found.edits, str(found)
    assert found.false == 0, str(found)
    trust = running.trust()
    assert trust.sends_etag == (etag in (RIGHT, ABSENT))
    assert trust.sends_last_modified == (last_modified in (RIGHT, ABSENT))
    if RIGHT not in (etag, last_modified):
        assert running.conditional_share(after=warned_at) == 0.0


async def test_a_fixed_server_is_trusted_again(run):
    site = site_of(30, noise=frozenset(), etag=FROZEN, last_modified=ABSENT)
    running = await run(site, **HOURLY)
    await running.rounds(12, every_s=DAY_S / 2)
    assert not running.trust().sends_etag
    site.etag = RIGHT
    await running.rounds(6, every_s=DAY_S / 2)
    assert running.trust().sends_etag
    mended_at = running.wall.at
    await running.rounds(4, every_s=DAY_S / 2)
    assert running.conditional_share(after=mended_at) > 0.8
    assert (
        score_visits(running, after=mended_at).found == score_visits(running, after=mended_at).edits
    )


@pytest.mark.parametrize("skew_s", [-7_200.0, 0.0, 86_400.0])
async def test_change_times_use_our_clock_despite_server_clock_skew(run, skew_s):
    running = await run(site_of(20, noise=frozenset(), etag=ABSENT), skew_s=skew_s, **HOURLY)
    await running.rounds(8, every_s=DAY_S / 2)
    [[measured_s]] = running.mirror.rows("SELECT clock_skew_s FROM host")
    assert measured_s == pytest.approx(skew_s, abs=2.0)
    rows = running.mirror.rows("SELECT url, record FROM model JOIN page USING (page_id)")
    assert len(rows) == 20
    for url, record in rows:
        model = PageModel.from_bytes(record)
        page = running.site.page_of(url)
        true_at = running.site.modified_at(page, model.last_visit_at + skew_s) - skew_s
        if model.trusts_last_modified:
            assert model.last_change_at == pytest.approx(true_at, abs=3.0), url
    assert sum(PageModel.from_bytes(record).trusts_last_modified for _, record in rows) >= 18
