"""The order of the causes is one list, and each of them decides when nothing before it applies."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.page import Outcome, PageState
from crawld.core.why.cause import Effect, VisitCause
from crawld.core.why.causes import CAUSES, find_causes, next_visit_at
from crawld.core.why.facts import (
    DuplicateFacts,
    GrowthFacts,
    HintFacts,
    HostFacts,
    LiveFacts,
    PageFacts,
    PartFacts,
    PluginFacts,
    RefusalFacts,
    ReplicaFacts,
    RobotsFacts,
    SiteFacts,
    UrlFacts,
)

NOW = 1_800_000_000.0
HOUR_S = 3_600.0
PAGE = PageFacts(
    state=PageState.VISITED,
    depth=1,
    seed=False,
    requisite=False,
    title="T",
    discovered_at=NOW - 9 * HOUR_S,
    found_on=None,
    last_visit_at=NOW - 2 * HOUR_S,
    last_change_at=NOW - 2 * HOUR_S,
    last_outcome=Outcome.UNCHANGED,
    last_failure=None,
    visit_count=3,
    change_count=1,
    failure_count=0,
    gone_count=0,
    retry_at=None,
    redirect_url=None,
)
FACTS = UrlFacts(
    given="http://a.test/x",
    url="http://a.test/x",
    now=NOW,
    robots=RobotsFacts(url="http://a.test/robots.txt", verdict="rules", allowed=True),
    host=HostFacts(name="a.test", pages=9, visited=5, delay_s=15.0, base_delay_s=15.0),
    site=SiteFacts(name="s", min_revisit_s=HOUR_S),
    page=PAGE,
    sites=("s",),
    live=LiveFacts(),
)
UNSEEN = replace(FACTS, page=None)


def of_site(**changes):
    return lambda facts: replace(facts, site=replace(facts.site, **changes))


def of_page(**changes):
    return lambda facts: replace(facts, page=replace(facts.page, **changes))


def of_host(**changes):
    return lambda facts: replace(facts, host=replace(facts.host, **changes))


def of_robots(**changes):
    return lambda facts: replace(facts, robots=replace(facts.robots, **changes))


def of_live(*pauses, **changes):
    def change(facts):
        live = facts.live
        return replace(facts, live=replace(live, pauses=live.pauses.union(pauses), **changes))

    return change


# What makes each cause apply to a page that is visited; they can be combined in any way.
OF_VISITED = {
    VisitCause.PURGED: lambda facts: replace(facts, purged_at=NOW - 1.0),
    VisitCause.SCOPE: of_site(refusal="exclude", rule="prefix:/x"),
    VisitCause.WIKI_PART: of_site(wiki_refusal="wiki_part"),
    VisitCause.ROBOTS: of_robots(allowed=False, line=3, text="Disallow: /x"),
    VisitCause.STOPPING: of_live(stopping=True),
    VisitCause.EVERYTHING_PAUSED: of_live("operator"),
    VisitCause.DISK: of_live("disk_room"),
    VisitCause.NETWORK_DOWN: of_live("network"),
    VisitCause.SITE_PAUSED: of_site(paused=True),
    VisitCause.SITE_QUOTA: of_site(monthly_bytes=10, received_bytes=10),
    VisitCause.HOST_PAUSED: of_host(paused=True),
    VisitCause.VISITED_ONCE: of_live(once=True),
    VisitCause.ROBOTS_UNREACHABLE: of_host(robots_closed_until=NOW + 60.0),
    VisitCause.HOST_CLOSED: of_host(closed_until=NOW + 120.0),
    VisitCause.QUIET_HOURS: of_host(quiet_until=NOW + HOUR_S),
    VisitCause.RETRY: of_page(
        last_outcome=Outcome.FAILED, last_failure="timeout", failure_count=2, retry_at=NOW + 240.0
    ),
    VisitCause.HOST_BACKOFF: of_host(backoff_level=2, delay_s=60.0),
    VisitCause.QUARANTINED: of_page(quarantined="analysis"),
    VisitCause.REMOVED: of_page(removal="deletion", removed_at=NOW - 9.0),
    VisitCause.REDIRECT: of_page(redirect_url="http://a.test/y"),
    VisitCause.HINTED: of_page(hints=(HintFacts("sitemap", NOW - 60.0),)),
    VisitCause.ROBOTS_UNREAD: of_robots(verdict=None),
    VisitCause.NO_ADDRESS: of_host(located=False),
    VisitCause.HOST_DELAY: of_host(next_at=NOW + 7.0),
    VisitCause.SHARED_RATE: of_host(
        shared_rate="[schedule]", rate_opens_at=NOW + 9.0, rate_waiting=3
    ),
}
NEVER_VISITED = of_page(
    state=PageState.DISCOVERED, last_visit_at=None, last_outcome=None, visit_count=0
)
# What makes the others apply, alone.
ALONE = {
    VisitCause.NO_SITE: (UNSEEN, of_site(refusal="host")),
    VisitCause.SITE_REMOVED: (FACTS, of_site(configured=False)),
    VisitCause.TRAP: (UNSEEN, of_site(trap="repetition")),
    VisitCause.GROWTH: (UNSEEN, of_site(growth=GrowthFacts("a.test", "/x?...", 70, 1))),
    VisitCause.PLUGIN: (UNSEEN, of_site(plugin=PluginFacts("mine", "too old"))),
    VisitCause.REPLICA: (
        replace(FACTS, replica=ReplicaFacts("b.test", "pruned", NOW - 9.0)),
        of_page(state=PageState.SUSPENDED),
    ),
    VisitCause.DUPLICATE: (
        replace(FACTS, duplicate=DuplicateFacts("http://a.test/y", ("the case",), 3)),
        of_page(state=PageState.SUSPENDED),
    ),
    VisitCause.CAP: (UNSEEN, of_site(max_pages=5, pages=5)),
    VisitCause.UNKNOWN: (UNSEEN, of_site()),
    VisitCause.GONE: (
        FACTS,
        of_page(state=PageState.GONE, last_outcome=Outcome.GONE, retry_at=NOW + HOUR_S),
    ),
    VisitCause.NEVER_VISITED: (FACTS, NEVER_VISITED),
    VisitCause.RESTS: (FACTS, of_page(last_visit_at=NOW - 60.0)),
    VisitCause.QUEUED: (FACTS, of_page()),
}
ORDER = list(VisitCause)


def causes(facts):
    return [each.cause for each in find_causes(facts)]


def test_every_cause_has_one_rule_and_a_case_here():
    assert len(CAUSES) == len(VisitCause)
    assert set(OF_VISITED) | set(ALONE) == set(VisitCause)
    assert set(OF_VISITED) & set(ALONE) == set()


@pytest.mark.parametrize("cause", OF_VISITED)
def test_each_cause_is_found_where_it_applies_and_nowhere_else(cause):
    assert cause not in causes(FACTS)
    assert cause in causes(OF_VISITED[cause](FACTS))


@pytest.mark.parametrize("cause", ALONE)
def test_each_other_cause_decides_where_it_applies(cause):
    facts, change = ALONE[cause]
    assert causes(change(facts))[0] == cause


@given(st.sets(st.sampled_from(sorted(OF_VISITED, key=ORDER.index)), min_size=1))
def test_the_first_of_any_causes_decides_and_the_others_follow_in_order(chosen):
    if VisitCause.RETRY in chosen:
        chosen = chosen - {VisitCause.VISITED_ONCE}  # failed pages are tried again
    facts = FACTS
    for cause in chosen:
        facts = OF_VISITED[cause](facts)
    found = causes(facts)
    assert found == sorted(found, key=ORDER.index)
    assert found[0] == min([*chosen, VisitCause.QUEUED], key=ORDER.index)
    assert set(chosen) <= set(found)


@given(st.sets(st.sampled_from(sorted(OF_VISITED, key=ORDER.index)), min_size=1))
def test_the_next_visit_comes_after_all_waits_and_never_while_one_blocks(chosen):
    facts = FACTS
    for cause in chosen:
        facts = OF_VISITED[cause](facts)
    found = find_causes(facts)
    at = next_visit_at(facts, found)
    if any(each.effect is Effect.BLOCKS for each in found):
        assert at is None
    else:
        assert at == max([NOW, *(each.until for each in found if each.until is not None)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (of_site(refusal="depth", max_depth=0), "1 link from a seed, and site s follows 0"),
        (of_site(refusal="host"), "host a.test does not belong to site s"),
        (of_site(refusal="include"), "none of the include rules of site s"),
        (of_site(refusal="requisite"), "mirrors no images"),
        (of_site(wiki_refusal="wiki_talk"), "discussion page"),
        (of_site(wiki_refusal="wiki_view"), "view of a wiki page"),
        (of_page(removal="move", removed_at=NOW - 9.0, moved_to="u"), "moved to u 9.0 s ago"),
        (of_robots(allowed=False), "more rules than are matched exactly"),
        (of_page(state=PageState.EXCLUDED, last_failure="robots"), "forbade it when its turn came"),
    ],
)
def test_the_words_name_what_decided(change, words):
    assert words in find_causes(change(FACTS))[0].text


def test_a_title_that_left_its_part_is_told_apart_from_one_that_never_was_in_it():
    part = PartFacts(title="Old name", known=True)
    outside = of_site(wiki_refusal="wiki_part")(replace(FACTS, part=part))
    assert '"Old name" has left the part' in find_causes(outside)[0].text
    never = replace(outside, page=None)
    assert '"Old name" is not in the part' in find_causes(never)[0].text
    unasked = replace(never, part=PartFacts(title=None, known=False))
    assert "has not been asked yet" in find_causes(unasked)[0].text


def test_a_link_that_was_refused_tells_why():
    refused = replace(UNSEEN, refused=RefusalFacts("site_cap", NOW - 60.0))
    text = find_causes(refused)[0].text
    assert text.startswith("A link to it was refused 1 min 00 s ago")
    assert "as many pages as max_pages allows" in text


def test_a_redirect_out_of_the_mirror_says_so():
    moved = of_page(redirect_url="http://b.test/")(FACTS)
    assert "http://b.test/, which is no page of the mirror" in find_causes(moved)[0].text
    known = of_page(redirect_known=True)(moved)
    assert "no page" not in find_causes(known)[0].text


def test_a_run_that_visits_once_tries_a_failed_page_again():
    once = of_live(once=True)(FACTS)
    assert causes(once)[0] is VisitCause.VISITED_ONCE
    assert causes(OF_VISITED[VisitCause.RETRY](once))[0] is VisitCause.RETRY


def test_a_seed_is_visited_outside_of_the_scope_of_its_site():
    seed = of_page(seed=True)(of_site(refusal="exclude", wiki_refusal="wiki_part")(FACTS))
    assert causes(seed)[0] is VisitCause.QUEUED


def test_a_queue_of_a_thousand_pages_is_not_counted_to_its_end():
    text = find_causes(of_page(ahead=1_000)(NEVER_VISITED(FACTS)))[0].text
    assert "more than 1,000 pages are before it" in text
    assert "4 h 10 min or more" in text
