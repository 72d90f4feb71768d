"""Pages that are gone although the server returns 200, and hosts that lose many pages at once."""

import pytest
import trio

from crawld.core.page import GONE_GRACE_S
from crawld.simweb.fault import soft_404
from crawld.simweb.message import build_error_response, build_response
from crawld.store.changes import hint, hint_source, wiki_probe
from tests.daemon.control_client import get
from tests.daemon.harness import make_site, until

DAY_S = 86_400.0
RETRY_AFTER_S = 3_600
OTHER_TEXT = b"<html><title>Other</title><p>" + b"wholly different words " * 200


def missing(request, ordinary):
    return build_error_response(request, 404)


def softly_missing(request, ordinary):
    return soft_404()(request, lambda each: build_error_response(each, 404))


def busy(request, ordinary):
    return build_response(request, 429, b"busy", extra=f"Retry-After: {RETRY_AFTER_S}\r\n")


def redirect_home(request, ordinary):
    return build_response(request, 302, b"", extra="Location: /\r\n")


async def visit_all(running, mirror, wall, rounds=1):
    """Visit every page that is not retired `rounds` times, a day apart."""
    for _ in range(rounds):
        kept = [state for state, *_ in mirror.pages().values() if state != "gone"]
        visits = len(mirror.rows("SELECT 1 FROM visit")) + len(kept)
        wall.shift_s += 1.1 * DAY_S
        await running.crawl.schedule.wake_all()
        await until(
            lambda visits=visits: len(mirror.rows("SELECT 1 FROM visit")) >= visits,
            what="a round of visits",
        )


async def mirror_site(serve, daemon, mirror, pages, **site):
    """Mirror a simulated site.

    Returns:
        The daemon, the web, the site, and its faults by path, to which a test adds.
    """
    faults = {}
    simulated = make_site(pages=pages, faults=faults)
    web = await serve(simulated)
    schedule = {"min_revisit_s": DAY_S, "policy": "uniform"}
    running = await daemon(web.url(), schedule=schedule, site=site)
    await until(
        lambda: (
            len(mirror.pages()) == pages
            and all(state == "visited" for state, *_ in mirror.pages().values())
        ),
        what="a visit of every page",
    )
    return running, web, simulated, faults


def path_of(simulated, page):
    return simulated.graph.path(page)


def probes_beside(path):
    """Return what the paths of the probes for a page begin with."""
    return f"{path.rpartition('/')[0]}/crawld-"


def probes_of(web):
    return [target for target in web.targets() if "crawld-" in target]


def count_copies(mirror, path):
    [[copies]] = mirror.rows(
        "SELECT count(*) FROM version JOIN page USING (page_id) WHERE url LIKE ?", f"%{path}"
    )
    return copies


async def test_a_page_replaced_by_an_error_text_with_200_keeps_its_copy(
    serve, daemon, mirror, wall
):
    running, web, simulated, faults = await mirror_site(serve, daemon, mirror, 6)
    path = path_of(simulated, 3)
    faults[path] = faults[probes_beside(path)] = softly_missing
    await visit_all(running, mirror, wall, rounds=2)
    await until(lambda: mirror.pages()[path][1] == "soft_gone")
    assert len(probes_of(web)) == 1
    assert count_copies(mirror, path) == 1


async def test_a_retry_after_of_a_probe_closes_the_host(serve, daemon, mirror, wall):
    running, web, simulated, faults = await mirror_site(serve, daemon, mirror, 6)
    path = path_of(simulated, 3)
    faults[path], faults[probes_beside(path)] = softly_missing, busy
    wall.shift_s += 1.1 * DAY_S
    await running.crawl.schedule.wake_all()
    await until(lambda: probes_of(web), what="the probe")
    [host] = running.crawl.state.hosts.values()
    await until(lambda: host.backoff.closed_until is not None, what="the host to be closed")
    assert host.rested_at(running.clock) > trio.current_time() + RETRY_AFTER_S / 2


async def test_a_page_that_redirects_home_like_missing_pages_is_gone(serve, daemon, mirror, wall):
    running, _, simulated, faults = await mirror_site(serve, daemon, mirror, 6)
    path = path_of(simulated, 3)
    faults[path] = faults[probes_beside(path)] = redirect_home
    await visit_all(running, mirror, wall, rounds=2)
    await until(lambda: mirror.pages()[path][1] == "soft_gone")


def now_and_then(*softly):
    """Answer with 404, or with 200 and the same text where the next of `softly` is true."""
    rest = iter(softly)
    return lambda request, ordinary: (softly_missing if next(rest) else missing)(request, ordinary)


async def test_a_gone_page_of_a_host_that_errs_softly_now_and_then_keeps_its_copy(
    serve, daemon, mirror, wall
):
    running, web, simulated, faults = await mirror_site(serve, daemon, mirror, 6)
    path = path_of(simulated, 3)
    faults[path] = now_and_then(False, True, True, True)
    faults[probes_beside(path)] = now_and_then(False, True)
    await visit_all(running, mirror, wall, rounds=2)
    await until(lambda: mirror.pages()[path][1] == "soft_gone")
    assert len(probes_of(web)) == 2
    assert count_copies(mirror, path) == 1


async def report_by_wiki(running, mirror, path, revision_id):
    """Let a wiki report a change of a page; without a revision it has no such page."""
    now, state = running.clock.now(), running.crawl.state
    [(page_id, host_id, site_id, origin_id)] = mirror.rows(
        "SELECT page_id, host_id, site_id, origin_id FROM page WHERE url LIKE ?", f"%{path}"
    )

    def write(connection):
        connection.execute(
            "INSERT INTO wiki (wiki_id, origin_id, looked_at) VALUES (1, ?, ?)", (origin_id, now)
        )
        connection.execute("INSERT INTO wiki_site (wiki_id, site_id) VALUES (1, ?)", (site_id,))
        source = hint_source.ensure_of_wiki(connection, 1, host_id, "probe", "/api.php", now)
        change = hint.PageHint(page_id, now, now)
        hint.accept(connection, source.hint_source_id, hint.PollResult(at=now, of_pages=[change]))
        wiki_probe.put(connection, [wiki_probe.ProbeResult(page_id, revision_id, now, now)])
        return source.hint_source_id

    number = await running.database.write(write)
    state.hint_sources[site_id, host_id] = (number,)


@pytest.mark.parametrize(
    ("revision_id", "probes", "outcome"), [(None, 2, "soft_gone"), (7, 1, "changed")]
)
async def test_a_wiki_vouches_for_the_text_of_a_page_unless_it_has_none(
    serve, daemon, mirror, wall, revision_id, probes, outcome
):
    running, web, simulated, faults = await mirror_site(serve, daemon, mirror, 6)
    path = path_of(simulated, 3)
    faults[path] = now_and_then(False, True, True, True)
    faults[probes_beside(path)] = now_and_then(False, True)
    await visit_all(running, mirror, wall)
    await until(lambda: mirror.pages()[path][1] == "gone")
    await report_by_wiki(running, mirror, path, revision_id)
    await visit_all(running, mirror, wall)
    await until(lambda: mirror.pages()[path][1] == outcome)
    assert len(probes_of(web)) == probes


async def test_a_gone_page_that_comes_back_with_another_text_is_changed(
    serve, daemon, mirror, wall
):
    running, web, simulated, faults = await mirror_site(serve, daemon, mirror, 6)
    path = path_of(simulated, 3)
    faults[path] = missing
    await visit_all(running, mirror, wall, rounds=1)
    await until(lambda: mirror.pages()[path][1] == "gone")
    faults[path] = lambda request, ordinary: build_response(request, 200, OTHER_TEXT)
    await visit_all(running, mirror, wall, rounds=1)
    await until(lambda: mirror.pages()[path][1] == "changed")
    assert len(probes_of(web)) == 2


async def test_a_page_with_a_wholly_different_text_is_changed(serve, daemon, mirror, wall):
    """Its links are followed, although it was first read before the probes."""
    running, web, simulated, faults = await mirror_site(serve, daemon, mirror, 6)
    path = path_of(simulated, 3)
    text = OTHER_TEXT + b'<a href="/only-here">More</a>'

    def other_text(request, ordinary):
        return build_response(request, 200, text)

    faults[path] = other_text
    await visit_all(running, mirror, wall, rounds=1)
    await until(lambda: mirror.pages()[path][1] == "changed")
    assert len(probes_of(web)) == 2
    stored = mirror.rows("SELECT status, sketch FROM absence")
    assert stored == [(404, None)]
    await until(lambda: "/only-here" in mirror.pages())


async def test_many_pages_gone_at_once_are_not_retired(serve, daemon, mirror, wall):
    running, _, simulated, faults = await mirror_site(serve, daemon, mirror, 20)
    for page in range(1, 15):
        faults[path_of(simulated, page)] = missing
    await visit_all(running, mirror, wall, rounds=int(GONE_GRACE_S / DAY_S) + 2)
    states = [state for state, *_ in mirror.pages().values()]
    assert states == ["visited"] * 20
    [(since,)] = mirror.rows("SELECT vanishing_since FROM host WHERE vanishing_since IS NOT NULL")
    status = (await get(running, "/status")).json()
    assert status["vanishing"] == {"a.test": since}


async def test_a_few_gone_pages_are_retired(serve, daemon, mirror, wall):
    running, _, simulated, faults = await mirror_site(serve, daemon, mirror, 20)
    faults[path_of(simulated, 3)] = missing
    await visit_all(running, mirror, wall, rounds=int(GONE_GRACE_S / DAY_S) + 2)
    await until(lambda: mirror.pages()[path_of(simulated, 3)][0] == "gone")
