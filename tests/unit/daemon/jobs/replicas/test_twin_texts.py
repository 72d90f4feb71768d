"""The texts of twins: bodies are read as rarely as possible."""

from dataclasses import replace

import pytest

from crawld.bench.replica_rounds.job_stand_ins import replicas_context
from crawld.core.content.analysis import read_blocks
from crawld.core.content.fingerprint import cleaned_digest, sketch
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.volatile import NO_RULES, Cover, VolatileRule, VolatileRules
from crawld.core.replica.agreement import PageVerdict
from crawld.daemon.jobs.replicas.twin_texts import TwinTexts
from crawld.store import visit
from crawld.store.changes import volatile
from crawld.store.changes.volatile import Template
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.replica import pages as replica_pages
from crawld.store.replica import twin_facts
from tests.unit.store.rows import NOW, changed, found

HOSTS = ("a.test", "www.a.test")
TEXT = "<p>" + " ".join(f"word{number}" for number in range(60))


class Twins:
    """A page on two hosts."""

    def __init__(self, database):
        self.database = database
        context, _ = replicas_context(database, 1, lambda: NOW, 1)
        self.texts = TwinTexts(context)

    async def fill(self):
        await self.database.write(site.upsert, "web", "{}", source="config", at=NOW)
        new = await self.database.write(
            frontier.discover, [found("page", host=host) for host in HOSTS]
        )
        self.page_ids = [page.page_id for page in new]
        for page_id in self.page_ids:
            await self.show(page_id, TEXT)

    async def show(self, page_id, html, at=NOW, text=None):
        text = html if text is None else text
        known = {"cleaned_digest": cleaned_digest(text), "sketch": sketch(text)}
        await self.database.write(visit.record, changed(page_id, html.encode(), at, **known))

    async def compare(self):
        """Return the comparison of the second page with the first."""
        origins = await self.database.read(replica_pages.origins_of_pair, (2, 1))
        (facts,) = await self.database.read(twin_facts.twin_facts, [self.page_ids[1]], 1)
        return await self.texts.compare(facts, origins, HOSTS[0])


@pytest.fixture
async def twins(tmp_path):
    async with await Database.open(tmp_path / "w.db") as database:
        twins = Twins(database)
        await twins.fill()
        yield twins


async def test_a_body_is_read_once(twins):
    first = await twins.compare()
    assert first.comparison.verdict is PageVerdict.AGREES
    assert twins.texts.bodies_read == 1
    assert await twins.compare() == first
    assert twins.texts.bodies_read == 1


async def test_a_new_text_is_read(twins):
    await twins.compare()
    await twins.show(twins.page_ids[1], TEXT + " more", NOW + 60.0)
    changed_text = await twins.compare()
    assert changed_text.comparison.verdict is PageVerdict.UNKNOWN
    assert twins.texts.bodies_read == 3


async def test_bodies_are_read_again_under_other_noise_rules(twins):
    noise = VolatileRule(Cover.PLACE, 3, 5, confirmed=True)
    first = await twins.compare()
    for rules, reads in (((noise,), 2), ((replace(noise, seen=9),), 2), ((), 2)):
        template = Template(VolatileRules(rules).to_bytes(), 1)
        await twins.database.write(volatile.put_of_host, 2, template)
        assert await twins.compare() == first
        assert twins.texts.bodies_read == reads


@pytest.mark.parametrize(
    ("evidence", "confirmations", "verdict"),
    [
        ({"at_once": 3}, 6, PageVerdict.AGREES),
        ({"stayed": 1}, 6, PageVerdict.DIFFERS),
        ({}, 6, PageVerdict.DIFFERS),
        ({}, 0, PageVerdict.AGREES),  # no page was fetched twice
        ({"stayed": 1, "repeats": 2}, 6, PageVerdict.AGREES),
        ({"stayed": 1, "only_times": True}, 6, PageVerdict.AGREES),
    ],
)
async def test_figures_that_stay_for_a_time_are_no_noise(twins, evidence, confirmations, verdict):
    texts = [f"{TEXT}</p><p>It has {figure} degrees</p>" for figure in (3, 7)]
    first, second = (read_blocks(text.encode(), "text/html") for text in texts)
    learnt = ReadingPair.of(first, second).learn(NO_RULES, pair=1)
    rules = [replace(rule, **{"at_once": 0} | evidence) for rule in learnt.rules]
    template = Template(VolatileRules(tuple(rules)).to_bytes(), confirmations)
    await twins.database.write(volatile.put_of_host, 2, template)
    for page_id, text in zip(twins.page_ids, texts, strict=True):
        await twins.show(page_id, text, NOW + 60.0, text=TEXT)
    assert (await twins.compare()).comparison.verdict is verdict


async def test_pages_with_one_text_around_different_players_differ(twins):
    for number, page_id in enumerate(twins.page_ids):
        player = f"<iframe src=https://player.test/embed/{number}></iframe>"
        await twins.show(page_id, TEXT + player, NOW + 60.0, text=TEXT)
    found = await twins.compare()
    assert found.comparison.verdict is PageVerdict.DIFFERS
    assert found.digest is not None


@pytest.mark.parametrize(
    ("prices", "verdict"), [((5, 5), PageVerdict.AGREES), ((5, 7), PageVerdict.UNKNOWN)]
)
async def test_a_page_whose_text_the_twin_has_just_lost_agreed_with_all_of_it(
    twins, prices, verdict
):
    kept, copy = twins.page_ids
    for price, page_id in zip(prices, twins.page_ids, strict=True):
        shop = f"{TEXT}<input type=hidden name=price value={price}>"
        await twins.show(page_id, shop, NOW + 60.0, text=TEXT)
    await twins.show(kept, TEXT + " more", NOW + 100.0)
    shop = f"{TEXT}<input type=hidden name=price value={prices[1]}>"
    await twins.show(copy, shop, NOW + 130.0, text=TEXT)
    assert (await twins.compare()).comparison.verdict is verdict


async def test_the_text_of_a_wall_is_one_whatever_it_embeds(twins):
    """It is counted on all paths of its host."""
    first = await twins.compare()
    await twins.show(twins.page_ids[1], TEXT + "<input value=/a/path>", NOW + 60.0, text=TEXT)
    assert (await twins.compare()).digest == first.digest
