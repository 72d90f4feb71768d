"""A crawl leaves URLs that grow without new content, tells so, and goes on with it."""

from crawld.cli.console import console
from crawld.cli.tables import host_table
from crawld.core.url_growth import START_BUDGET
from crawld.daemon.api.schemas.status import HostDetail
from crawld.daemon.api.schemas.why import Why
from crawld.daemon.frontier.admission import Referrer
from crawld.simweb.trap import Trap
from tests.daemon.control_client import get
from tests.daemon.harness import make_site, until_done


async def test_faceted_search_ends_and_articles_do_not(serve, daemon, mirror):
    site = make_site(pages=60, traps=(Trap.FACETS,))
    web = await serve(site)
    await mirror.run(web.url(), site={"max_pages": 4_000})
    asked = [target for target in web.targets() if target.startswith("/facets/")]
    assert START_BUDGET < len(asked) < 600
    assert mirror.refusals()["growth"] > 0
    assert "site_cap" not in mirror.refusals()
    assert {site.graph.path(n) for n in range(60)} <= mirror.pages().keys()

    running = await daemon(web.url())  # goes on with what the first one stored
    await until_done(running, 0.0)
    new = [web.url(f"/facets/?z={n}&zz=9") for n in range(3)]
    site_1 = running.state.sites[1]
    admitted = await running.state.admit(site_1, new, Referrer(1, 1))
    # One link a day is followed, the first at most.
    assert [each.example for each in admitted.refusals][-2:] == new[1:]
    assert {each.reason for each in admitted.refusals} == {"growth"}
    await running._growth_keeper.store()

    detail = HostDetail.model_validate((await get(running, "/hosts/a.test")).json())
    [pattern] = [each for each in detail.url_patterns if each.pattern == "/facets/?..."]
    assert (pattern.budget, pattern.refused > 0) == (0, True)
    shown = console()
    with shown.capture() as text:
        shown.print(host_table(detail, running.clock.now()))
    assert "/facets/?..." in text.get()
    answer = Why.model_validate(
        (await get(running, "/why", url=web.url("/facets/?p=1&q=2"))).json()
    )
    assert answer.causes[0].cause == "growth"
    assert "a.test/facets/?..." in answer.answer

    # What a sitemap or the operator names is followed, though a link to it was refused.
    named = await running.state.admit(site_1, new[1:2], Referrer(None, 1))
    seed = await running.state.admit(site_1, new[2:], Referrer(None, 0, seed=True))
    assert [each.url for each in (*named.found, *seed.found)] == new[1:]
