"""Several sites of one scripted wiki."""

from crawld.daemon.crawl.api_client import api_of
from crawld.daemon.jobs.wiki_parts.asking import AskOnce
from crawld.sources.mediawiki_api import ApiResponse, ApiTrouble, TroubleKind
from crawld.store.changes import wiki as wiki_rows
from tests.daemon.harness import until
from tests.daemon.jobs.conftest import history
from tests.daemon.jobs.wiki import reply

PAGES = {"Start": history(2), "One": history(2, start=10), "Two": history(2, start=20)}


def no_changes(given):
    """Answer a poll of the recent changes that asks for nothing else: there are none."""
    alone = given.keys().isdisjoint({"titles", "pageids"})
    if alone and "recentchanges" in given.get("list", ""):
        return reply({"batchcomplete": True, "query": {"recentchanges": [], "logevents": []}})
    return None


def part_of(wiki, *titles, name="part", **more):
    """Return a site for titles of a wiki; its only seed is that of the site `s`."""
    return {"name": name, "seeds": [wiki.url()], "api": True, "wiki_titles": titles, **more}


class Wiki:
    """Answers with a number that counts the requests."""

    def __init__(self, *troubles):
        self.troubles = list(troubles)
        self.asked = []

    async def ask(self, parameters):
        self.asked.append(parameters)
        if self.troubles:
            return self.troubles.pop(0)
        return ApiResponse({"number": len(self.asked)})


async def test_a_request_that_sites_have_in_common_is_sent_once():
    wiki = Wiki(ApiTrouble(TroubleKind.LAGGED, "7 s behind"))
    ask = AskOnce(wiki.ask)
    one, two = {"list": "allpages", "apprefix": "A"}, {"list": "allpages", "apprefix": "B"}
    assert isinstance(await ask(one), ApiTrouble)  # no answer: it is sent again
    answers = [(await ask(each)).query["number"] for each in (one, two, one, {**one})]
    assert answers == [2, 3, 2, 2]
    assert wiki.asked == [one, one, two]


def users(mirror):
    """Return the names of the sites that use the one wiki."""
    rows = mirror.rows("SELECT name FROM wiki_site JOIN site USING (site_id) ORDER BY site_id")
    return [name for (name,) in rows]


def asked_for_siteinfo(wiki):
    return [given for given in wiki.api_requests() if given.get("meta") == "siteinfo"]


async def test_a_part_finds_its_wiki_through_the_page_of_a_site_without_the_api(
    wiki_of, backfilling, mirror
):
    wiki = await wiki_of(PAGES, faults=[no_changes])
    await backfilling(wiki, api=False, beside=[part_of(wiki, "One")])
    await until(lambda: users(mirror) == ["part"])
    await until(lambda: asked_for_siteinfo(wiki))
    # The pages are those of the site without the API: no history is asked for.
    assert mirror.rows("SELECT 1 FROM wiki_page JOIN page USING (page_id) WHERE site_id = 1") == []
    assert not [given for given in wiki.api_requests() if "pageids" in given]


async def test_several_sites_ask_for_the_siteinfo_and_each_history_once(
    wiki_of, backfilling, mirror, wikis
):
    wiki = await wiki_of(PAGES, faults=[no_changes])
    beside = [part_of(wiki, "One", name="one"), part_of(wiki, "Two", name="two")]
    await backfilling(wiki, beside=beside)
    await until(lambda: wikis.complete(*PAGES))
    assert users(mirror) == ["s", "one", "two"]
    assert len(asked_for_siteinfo(wiki)) == 1
    histories = [given["pageids"] for given in wiki.api_requests() if "pageids" in given]
    assert len(histories) == len(set(histories))
    assert mirror.rows("SELECT count(*) FROM wiki") == [(1,)]


async def test_a_wiki_is_asked_while_one_of_its_sites_may(wiki_of, backfilling, mirror, wikis):
    wiki = await wiki_of(PAGES, faults=[no_changes])
    beside = [part_of(wiki, "One", name="one")]
    daemon = await backfilling(wiki, beside=beside)
    await until(lambda: wikis.complete(*PAGES))
    await daemon.site_registry.set_paused("s", paused=True)
    asked = len(wiki.api_requests())
    daemon.background.jobs.run_soon("members")
    daemon.background.hint_poller.poll_all()
    await until(lambda: len(wiki.api_requests()) > asked, what="a request for the other site")
    await daemon.site_registry.set_paused("one", paused=True)
    row = await daemon.database.read(wiki_rows.get, 1)
    client = daemon.background.hint_poller._finders[0]._client
    held = await client.ask(api_of(row, daemon.state.sites), {"meta": "siteinfo"})
    assert held.trouble is TroubleKind.HELD
