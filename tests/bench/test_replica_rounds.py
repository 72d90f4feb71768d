"""The rounds of the replicas job: what their figures see, and what the job does in them."""

from itertools import pairwise

import numpy as np
import pytest

from crawld.bench.replica_rounds.compared_again import ComparedAgain
from crawld.bench.replica_rounds.diverged_copies import DivergedCopies
from crawld.bench.replica_rounds.found_copies import DeferredWaits, FoundCopies
from crawld.bench.replica_rounds.page_truth import PageTruth
from crawld.bench.replica_rounds.page_visits import PageVisits
from crawld.bench.replica_rounds.round_figures import RoundFigures, unsaved_name
from crawld.bench.replica_rounds.rounds_web import decidable_groups, rounds_web
from crawld.bench.replica_rounds.run_rounds import RoundsScenario, run_rounds
from crawld.bench.replica_rounds.simulated_crawl import SimulatedCrawl
from crawld.bench.replica_rounds.unsaved_requests import UnsavedCause, UnsavedRequests
from crawld.core.replica.agreement import PageVerdict
from crawld.simweb.lookalike.pages import SiteTexts
from crawld.simweb.lookalike.web import LookalikeParameters, make_lookalike_web
from crawld.simweb.replica_parameters import STANDARD, scale_web
from crawld.simweb.replica_web import make_web
from crawld.store.replica.survey import TwinStanding

KINDS = ("www", "staging", "versions", "shops", "platform_copier", "small_changes")
SMALL = LookalikeParameters(hosts=30, kinds=KINDS)


@pytest.fixture(scope="module")
def rounds():
    return run_rounds(
        make_lookalike_web(SMALL, 11), 1, RoundsScenario(days=6.0, step_days=1.0, follow_ups=0)
    )


def test_copies_rest_and_their_requests_are_saved(rounds):
    assert rounds.metrics["requests_saved_share"] > 0.5


def test_every_request_that_is_not_saved_has_a_cause(rounds):
    unsaved = {cause: rounds.metrics[unsaved_name(cause)] for cause in UnsavedCause}
    savable = rounds.metrics["savable_requests"]
    missing = savable * (1.0 - rounds.metrics["requests_saved_share"])
    assert sum(unsaved.values()) == pytest.approx(missing)
    assert unsaved[UnsavedCause.SAMPLED] > 0.0


def test_requests_are_counted_under_what_was_known_before_them():
    ledger = UnsavedRequests()
    agrees = TwinStanding(PageVerdict.AGREES, rests=False, is_released=False, turns=0)
    known = {
        10: (UnsavedCause.SAMPLED, agrees._replace(rests=True)),
        11: (UnsavedCause.SAMPLED, agrees._replace(is_released=True)),
        12: (UnsavedCause.WAITING, agrees._replace(verdict=PageVerdict.UNKNOWN)),
        13: (UnsavedCause.DIFFERENT, agrees._replace(verdict=PageVerdict.REPEATED)),
        14: (UnsavedCause.REPEATING, agrees._replace(turns=1)),
        15: (UnsavedCause.RETURNED, agrees),
        16: (UnsavedCause.UNCOMPARED, None),
    }
    standing = {page: one for page, (_, one) in known.items() if one is not None}
    ledger.note(standing, {1: "partly", 2: "held"}, {1: 0})
    for page, (cause, _) in known.items():
        before = ledger.counts[cause]
        ledger.add([5, page], [0, 1], [0.25, 1.0], 0.25)
        assert ledger.counts[cause] == before + 1.0
    ledger.add([5, 20], [0, 2], [0.25, 2.0], 0.25)
    ledger.add([5, 21], [0, 3], [1.25, 3.0], 0.25)
    assert (ledger.counts[UnsavedCause.HELD], ledger.counts[UnsavedCause.UNRELATED]) == (2.0, 3.0)
    assert ledger.counts[UnsavedCause.KEPT] == 1.0


def test_a_copy_is_found_once_it_rests_under_its_own_group():
    web = make_lookalike_web(LookalikeParameters(hosts=60, kinds=("mirrors",)), 3)
    groups = decidable_groups(web)
    linking = {name: [group for group in groups
                      if any(getattr(web.hosts[host].decoration, name) for host in group)]
               for name in ("absolute_links", "date", "counter")}  # fmt: skip
    assert all(linking.values())
    found = FoundCopies(web, groups)
    none = found.figures()
    assert none["links_copies"] == sum(len(group) - 1 for group in linking["absolute_links"])
    assert none["links_copies_found"] == none["dates_copies_found"] == 0.0
    first, outside = linking["date"][0], groups.index(linking["date"][0]) - 1
    found.note({first[1]: groups[outside][0]}, [first[1]])
    found.note({first[1]: first[0]}, [])
    assert found.figures() == none
    found.note(dict.fromkeys(first[1:], first[0]), first[1:])
    assert found.figures()["dates_copies_found"] == len(first) - 1


def test_a_copy_that_begins_to_differ_is_seen_before_its_section_is_back():
    web = make_lookalike_web(LookalikeParameters(0, kinds=("diverging_copies",), groups=9), 3)
    noted = DivergedCopies(web, SimulatedCrawl(web, None, step_days=1.0))
    asked = sorted((one for one in noted.copies if one.returns), key=lambda one: one.since)
    copy = next(one for one in asked if one.turned < one.section)
    busy = next(one for one in asked if one is not copy)
    noted.copies[:] = [copy, busy]  # of the other no page rests before it differs
    noted.note_resting(copy.since - 0.5, copy.section)
    noted.note_resting(busy.since - 0.5, copy.section)
    agrees = TwinStanding(PageVerdict.AGREES, rests=True, is_released=False, turns=0)
    differs = agrees._replace(verdict=PageVerdict.DIFFERS)
    noted.note_known(copy.since - 0.1, dict.fromkeys(copy.turned, differs))
    noted.note_known(copy.since + 0.5, dict.fromkeys(copy.section, agrees))
    assert not noted.awaits(copy.since - 0.1)
    assert noted.awaits(copy.since + 0.5)
    noted.note_known(copy.since + 1.0, {min(copy.turned): differs})
    noted.note_known(copy.since + 1.5, {max(copy.turned): differs})
    assert not noted.awaits(copy.since + 1.5)
    noted.note_resting(copy.since + 2.0, copy.section - copy.turned)
    noted.note_resting(copy.since + 3.0, frozenset())
    noted.note_resting(99.0, copy.section)
    assert noted.figures() == pytest.approx({
        "diverged": 1.0, "page_back_days_max": 2.0, "returning_sections": 1.0,
        "sections_back_in_time": 0.0, "section_back_days_median": 3.0,
        "section_back_days_max": 3.0, "section_seen_days_median": 1.0,
        "section_seen_days_max": 1.0, "section_back_after_seen_days_max": 2.0,
    })  # fmt: skip
    copy.section_back = 2.0
    assert noted.figures()["sections_back_in_time"] == 1.0
    copy.seen = copy.section_back = None
    assert noted.figures()["section_back_days_max"] == noted.figures()["section_seen_days_max"]
    assert noted.figures()["section_seen_days_max"] == 99.0


def test_a_deferred_page_waits_until_its_first_visit():
    waits, visited = DeferredWaits(), set()
    for day, deferred in ((0.0, {1, 2}), (10.0, {2}), (30.0, {2}), (45.0, set())):
        visited |= {1} if day == 10.0 else set()
        waits.note(day, deferred, visited.__contains__)
    assert waits.longest_days == 45.0, "the second was never visited, though it rests no more"


def test_no_page_rests_that_differed_when_last_compared(rounds):
    assert rounds.metrics["resting_differing_pages"] == 0.0


def test_pages_at_rest_are_sampled_and_those_that_differ_return(rounds):
    assert rounds.metrics["samples"] > 0.0
    assert rounds.metrics["differing_samples_resting"] == 0.0


def test_a_page_that_still_rests_after_a_differing_visit_is_counted():
    web = make_lookalike_web(LookalikeParameters(0, kinds=("diverging_copies",), groups=9), 3)
    crawl = SimulatedCrawl(web, None, step_days=1.0)
    crawl.visited_day[:] = 0.0
    copy = next(one for one in DivergedCopies(web, crawl).copies if len(one.turned) > 1)
    original = next(host.number for host in web.hosts if host.number != copy.host
                    and host.family == web.hosts[copy.host].family)  # fmt: skip
    turned, agreeing = sorted(copy.turned), min(copy.section - copy.turned)
    resting = dict.fromkeys((*turned, agreeing), original)
    again = ComparedAgain(crawl, PageTruth(web))
    again.note(resting)
    again.note({})  # they wait for a visit
    crawl.visited_day[[*turned, agreeing]] = copy.since + 1.0
    again.note({turned[0]: original, agreeing: original})
    assert again.figures() == {
        "samples": len(turned) + 1.0,
        "differing_samples": float(len(turned)),
        "differing_samples_resting": 1.0,
    }
    again.note(resting)
    assert again.samples == len(turned) + 1.0, "nothing was visited since"


def test_no_host_is_wrongly_declared(rounds):
    assert rounds.metrics["declared"] >= 2.0
    assert not rounds.figures.wrong


def test_no_attacker_wins(rounds):
    assert rounds.metrics["attacks"] >= 2.0
    assert rounds.metrics["hijacks_won"] == 0.0


def test_pages_that_differ_are_seen_by_the_truth():
    web = make_lookalike_web(LookalikeParameters(hosts=4, kinds=("small_changes",)), 2)
    victim, attacker = next(
        (web.hosts[host.victim], host) for host in web.hosts if host.victim >= 0
    )
    truth = PageTruth(web)
    every = np.arange(len(victim.pages))
    differs = truth.differs(victim.number, attacker.number, every, np.full(len(every), 3.0))
    assert differs.tolist() == (attacker.pages.edit != 0).tolist()
    assert differs.any()
    assert not differs.all()


def test_the_texts_of_all_hosts_at_once_are_those_of_each():
    hosts = make_lookalike_web(LookalikeParameters(hosts=300), 3).hosts
    every = SiteTexts([host.pages for host in hosts])
    for day in (0.0, 13.04, 20.5, 60.0):
        each = [host.pages.text_at(host.number, day) for host in hosts]
        np.testing.assert_array_equal(every.text_at(day), np.concatenate(each))


def test_a_decorated_host_has_equal_texts_once_its_noise_is_learnt():
    web = make_lookalike_web(LookalikeParameters(hosts=200, kinds=("plain",)), 2)
    host = next(host for host in web.hosts if host.decoration.date)
    visits = PageVisits(web)
    assert visits.learn(host.number, 0.0) is not None
    text = int(host.pages.text_at(host.number, 0.0)[2])
    first, second = (visits.changed(1, host.number, 2, day, text) for day in (0.0, 3.25))
    assert first.digest != second.digest
    assert first.cleaned_digest == second.cleaned_digest


def test_only_copies_of_one_domain_or_that_say_so_are_decidable():
    web = make_lookalike_web(
        LookalikeParameters(hosts=60, kinds=("www", "open_mirrors", "countries", "moves")), 5
    )
    decidable = {web.hosts[one].kind for group in decidable_groups(web) for one in group}
    assert {"www", "countries"} <= decidable
    assert "open_mirrors" not in decidable


def test_the_older_webs_keep_their_pages_and_groups():
    old = make_web(scale_web(STANDARD, 200, 0.3, 20), 1)
    web = rounds_web(old)
    assert [host.name for host in web.hosts] == list(old.hosts.names)
    assert [host.group for host in web.hosts] == old.group.tolist()
    visited = sum(int(host.visited.sum()) for host in web.hosts)
    assert visited <= len(old.hosts.page_host) <= visited + len(web.hosts)
    assert decidable_groups(web)


def resting_pages_of(web, host, *, under):
    """Return the figures after a step in which all pages of a host rest under another."""
    crawl = SimulatedCrawl(web, None, step_days=1.0)
    crawl.visited_day[:] = 0.0
    figures = RoundFigures(web, crawl, PageTruth(web))
    first, end = crawl.first_page[host], crawl.first_page[host + 1]
    figures.note(
        1.0, [(host, under)], {host: under}, dict.fromkeys(range(int(first), int(end)), under)
    )
    return figures.metrics([])


def test_resting_that_ignores_differences_shows_in_the_figures():
    web = make_lookalike_web(LookalikeParameters(hosts=12, kinds=("versions", "www")), 4)
    old, new = next(
        (one, other)
        for one, other in pairwise(web.hosts)
        if one.family == other.family and one.kind == "versions"
    )
    found = resting_pages_of(web, old.number, under=new.number)
    count, share = web.equal_share(old.number, new.number, 0.0)
    assert found["resting_differing_pages"] == round((1 - share) * count) > 0
    assert found["wrong_verdicts_per_1000"] == 1_000.0
    assert found["requests_saved_share"] >= 0.0


def test_a_copy_that_rests_is_right_and_saves_what_an_oracle_saves():
    web = make_lookalike_web(LookalikeParameters(hosts=2, kinds=("countries",)), 4)
    first, second = web.hosts[:2]
    found = resting_pages_of(web, second.number, under=first.number)
    assert found["resting_differing_pages"] == 0.0
    assert found["wrong_verdicts_per_1000"] == 0.0


def test_a_victim_that_rests_under_an_attacker_is_a_hijack():
    web = make_lookalike_web(LookalikeParameters(hosts=2, kinds=("strong_copier",)), 4)
    attacker = next(host for host in web.hosts if host.victim >= 0)
    found = resting_pages_of(web, attacker.victim, under=attacker.number)
    assert found["hijacks_won"] == 1.0
    assert found["wrong_verdicts_per_1000"] == 1_000.0
    harmless = resting_pages_of(web, attacker.number, under=attacker.victim)
    assert harmless["hijacks_won"] == 0.0
    assert harmless["wrong_verdicts_per_1000"] == 0.0
