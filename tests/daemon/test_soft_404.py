"""Pages that are gone although the server says 200, and hosts that lose too many at once."""

from crawld.core.page import GONE_GRACE_S
from crawld.simweb.fault import soft_404
from crawld.simweb.message import build_error_response, build_response
from tests.daemon.control_client import get
from tests.daemon.harness import make_site, until

DAY_S = 86_400.0


def missing(request, ordinary):
    return build_error_response(request, 404)


def softly_missing(request, ordinary):
    return soft_404()(request, lambda each: build_error_response(each, 404))


def led_home(request, ordinary):
    return build_response(request, 302, b"", extra="Location: /\r\n")


async def visited(running, mirror, wall, rounds=1):
    """Let every page that is not retired be visited again, a day later each time."""
    for _ in range(rounds):
        alive = [state for state, *_ in mirror.pages().values() if state != "gone"]
        wanted = len(mirror.rows("SELECT 1 FROM visit")) + len(alive)
        wall.shift_s += 1.1 * DAY_S
        running.crawl.schedule.wake_all()
        await until(
            lambda wanted=wanted: len(mirror.rows("SELECT 1 FROM visit")) >= wanted,
            what="a round",
        )


async def settled(serve, daemon, mirror, pages, **site):
    """Serve pages, let them be mirrored, and return the site to be broken."""
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
        what="the mirror",
    )
    return running, web, simulated, faults


def path_of(simulated, page):
    return simulated.graph.path(page)


async def test_a_page_that_becomes_an_error_with_200_keeps_its_copy(serve, daemon, mirror, wall):
    running, web, simulated, faults = await settled(serve, daemon, mirror, 6)
    path = path_of(simulated, 3)
    faults[path] = faults[f"{path.rpartition('/')[0]}/crawld-"] = softly_missing
    await visited(running, mirror, wall, rounds=2)
    await until(lambda: mirror.pages()[path][1] == "soft_gone")
    probes = [target for target in web.targets() if "crawld-" in target]
    assert len(probes) == 1
    [[copies]] = mirror.rows(
        "SELECT count(*) FROM version JOIN page USING (page_id) WHERE url LIKE ?", f"%{path}"
    )
    assert copies == 1


async def test_a_page_that_leads_home_like_all_that_are_missing_is_gone(
    serve, daemon, mirror, wall
):
    running, _, simulated, faults = await settled(serve, daemon, mirror, 6)
    path = path_of(simulated, 3)
    faults[path] = faults[f"{path.rpartition('/')[0]}/crawld-"] = led_home
    await visited(running, mirror, wall, rounds=2)
    await until(lambda: mirror.pages()[path][1] == "soft_gone")


async def test_a_page_that_is_another_one_is_changed(serve, daemon, mirror, wall):
    running, web, simulated, faults = await settled(serve, daemon, mirror, 6)
    path = path_of(simulated, 3)
    text = b"<html><title>Other</title><p>" + b"wholly different words " * 200

    def another(request, ordinary):
        return build_response(request, 200, text)

    faults[path] = another
    await visited(running, mirror, wall, rounds=1)
    assert len([target for target in web.targets() if "crawld-" in target]) == 1
    await until(lambda: mirror.pages()[path][1] == "changed")
    stored = mirror.rows("SELECT status, sketch FROM absence")
    assert stored == [(404, None)]


async def test_pages_that_go_all_at_once_are_kept(serve, daemon, mirror, wall):
    running, _, simulated, faults = await settled(serve, daemon, mirror, 20)
    for page in range(1, 15):
        faults[path_of(simulated, page)] = missing
    await visited(running, mirror, wall, rounds=int(GONE_GRACE_S / DAY_S) + 2)
    states = [state for state, *_ in mirror.pages().values()]
    assert states == ["visited"] * 20
    [(since,)] = mirror.rows("SELECT vanishing_since FROM host WHERE vanishing_since IS NOT NULL")
    status = (await get(running, "/status")).json()
    assert status["vanishing"] == {"a.test": since}


async def test_a_few_pages_that_go_are_retired(serve, daemon, mirror, wall):
    running, _, simulated, faults = await settled(serve, daemon, mirror, 20)
    faults[path_of(simulated, 3)] = missing
    await visited(running, mirror, wall, rounds=int(GONE_GRACE_S / DAY_S) + 2)
    await until(lambda: mirror.pages()[path_of(simulated, 3)][0] == "gone")
