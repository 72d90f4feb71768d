"""The three hint sources of a MediaWiki, with valid and invalid API responses."""

from dataclasses import replace

import pytest

from crawld.core.page import Outcome, PageState
from crawld.core.url import url_hash
from crawld.daemon.hints.copied_revision import MAX_SEARCHED
from crawld.daemon.hints.source import HELD, PollTrouble
from crawld.sources.mediawiki_api import ApiTrouble, TroubleKind
from crawld.sources.mediawiki_changes import ChangesCursor, PendingTemplates, ProbeProgress
from crawld.store import visit
from crawld.store.changes import change, fan_out, hint_source, template_use
from crawld.store.changes.template_use import Survey
from crawld.store.frontier import redirect
from crawld.store.visit import VisitRecord
from tests.unit.daemon.hints.scripted_wiki import (
    HOUR_S,
    NOW,
    changed,
    edit,
    is_waiting,
    iso_time,
    reply,
)
from tests.unit.daemon.site_values import make_discovery
from tests.unit.store.rows import discover_in_full


async def test_edits_give_hints_for_titles_and_their_redirects(make):
    world = await make()
    answer = reply(recentchanges=[edit(1, "Page 0", page=100), edit(2, "Nobody's", page=999)])
    poll = await world.poll("recent_changes", answer)
    assert world.hinted_titles(poll) == {"Page 0", "Page 59"}
    assert poll.told_until == NOW - 1.0
    assert all(page.first_at <= page.last_at <= NOW for page in poll.pages)
    assert ChangesCursor.from_json(poll.cursor).at == NOW - 5


async def test_a_deletion_gives_hints_for_redirects_too(make):
    world = await make()
    log = {"logid": 1, "type": "delete", "action": "delete", "title": "Page 0", "ns": 0}
    poll = await world.poll(
        "recent_changes", reply(logevents=[{**log, "timestamp": iso_time(NOW - 3), "pageid": 0}])
    )
    assert world.hinted_titles(poll) == {"Page 0", "Page 59"}


def visit_redirect(connection, page_id):
    record = VisitRecord(
        page_id=page_id, visited_at=NOW - 60.0, outcome=Outcome.MOVED, state=PageState.VISITED
    )
    visit.record(connection, record)


@pytest.mark.parametrize(
    ("row", "hinted"),
    [
        (edit(1, "Page 0", page=100), {"Page 0"}),
        ({**edit(1, "Page 0", page=100), "redirect": True}, {"Page 0", "Page 59"}),
        (edit(1, "Page 59", page=999), {"Page 59"}),
        ({**edit(1, "Page 0", page=100), "type": "new"}, {"Page 0", "Page 59"}),
    ],
)
async def test_a_redirect_is_not_visited_for_the_text_of_its_target(make, row, hinted):
    world = await make()
    await world.database.write(visit_redirect, world.pages["Page 59"])
    poll = await world.poll("recent_changes", reply(recentchanges=[row]))
    assert world.hinted_titles(poll) == hinted


async def test_a_redirect_is_visited_when_its_target_moves_or_is_deleted(make):
    world = await make()
    await world.database.write(visit_redirect, world.pages["Page 59"])
    log = {"logid": 1, "type": "move", "action": "move", "title": "Page 0", "ns": 0, "pageid": 0}
    moved = {"timestamp": iso_time(NOW - 3), "params": {"target_title": "Page 7", "target_ns": 0}}
    poll = await world.poll("recent_changes", reply(logevents=[{**log, **moved}]))
    assert world.hinted_titles(poll) == {"Page 0", "Page 7", "Page 59"}
    assert poll.replaced == {world.pages["Page 7"]}


async def test_a_deletion_stands_in_the_file_before_its_page_is_visited(make):
    world = await make()
    row = {"rcid": 5, "type": "log", "logid": 1, "logtype": "delete", "logaction": "delete"}
    titles = ("Page 0", "Nobody's")
    rows = [{**row, "rcid": n, "logid": n, "title": each} for n, each in enumerate(titles)]
    log = [{**each, "ns": 0, "timestamp": iso_time(NOW - 3), "pageid": 0} for each in rows]
    poll = await world.poll("recent_changes", reply(recentchanges=log))
    for _ in range(2):  # a log read again adds nothing
        await world.database.write(poll.also_write)
        page_id, since = world.pages["Page 0"], NOW - HOUR_S
        assert await world.database.read(redirect.is_deleted_from_wiki, page_id, since)
        assert await world.database.read(change.count, page_id) == 1


@pytest.mark.parametrize(
    ("title", "space", "path"),
    [
        ("File:A flag.png", 6, "/images/a/ab/A_flag.png"),
        ("MediaWiki:Common.css", 8, "/w/load.php?modules=site.styles"),
    ],
)
async def test_an_upload_or_a_style_gives_hints_for_requisites(make, title, space, path):
    world = await make()
    ids = {}
    for each in (path, "/images/b/b0/Other.png"):
        found = [make_discovery(each, requisite=True)]
        _, [ids[each]] = await world.database.write(discover_in_full, found)
        later = {"outcome": Outcome.UNCHANGED, "state": PageState.VISITED}
        record = VisitRecord(page_id=ids[each], visited_at=NOW, retry_at=NOW + HOUR_S, **later)
        await world.database.write(visit.record, record)
    poll = await world.poll("recent_changes", reply(recentchanges=[edit(1, title, space=space)]))
    assert [each.page_id for each in poll.requisites] == [ids[path]]


async def test_times_are_corrected_for_the_clock_skew(make):
    world = await make()
    ahead = reply(at=NOW + 900, recentchanges=[edit(1, "Page 3", at=NOW + 890, page=103)])
    poll = await world.poll("recent_changes", ahead)
    page = poll.pages[0]
    assert abs(page.first_at - (NOW - 10)) <= 1
    assert page.last_at <= NOW


async def test_a_long_response_continues_at_once(make):
    world = await make()
    part = {"rccontinue": "x|2", "continue": "-||"}
    poll = await world.poll("recent_changes", reply(recentchanges=[edit(1, "Page 1")], cursor=part))
    assert (poll.more, poll.told_until) == (True, None)
    await world.poll("recent_changes", reply(), cursor=poll.cursor)
    assert world.client.asked[-1]["rccontinue"] == "x|2"


async def test_a_gap_in_recent_changes_starts_a_round_of_probes(make):
    world = await make()
    first = await world.poll("recent_changes", reply(recentchanges=[edit(1, "Page 1", NOW - 900)]))
    doubted = await world.poll(
        "recent_changes", reply(recentchanges=[edit(9, "Page 2")]), cursor=first.cursor
    )
    assert doubted.more
    oldest = reply(recentchanges=[edit(8, "Page 4", NOW - 60)])
    settled = await world.poll("recent_changes", oldest, cursor=doubted.cursor)
    assert not settled.more
    [(number, place)] = settled.cursor_updates
    assert number == world.known.sources["probe"].hint_source_id
    assert ProbeProgress.from_json(place).urgent


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        ((200, "<!DOCTYPE html><title>Log in</title>"), "not_json"),
        ((403, "<html>no</html>"), "closed"),
        ((200, {"error": {"code": "readapidenied", "info": "no"}}), "closed"),
        ((503, ""), "unavailable"),
        ((200, {"error": {"code": "maxlag", "info": "9 s"}}), "lagged"),
        ((200, '{"query": '), "not_json"),
    ],
)
async def test_invalid_responses_are_trouble_with_a_pause(make, answer, trouble):
    world = await make()
    for kind in ("recent_changes", "probe"):
        poll = await world.poll(kind, answer)
        assert isinstance(poll, PollTrouble)
        assert (poll.trouble, poll.requests) == (trouble, 1)
        assert poll.pause_s >= 5.0


async def test_a_host_in_back_off_is_no_trouble(make):
    world = await make()
    poll = await world.poll("recent_changes", ApiTrouble(TroubleKind.HELD, "closed", 60.0))
    assert (poll.trouble, poll.pause_s) == (HELD, 60.0)


async def test_an_unknown_cursor_is_dropped(make):
    world = await make()
    cursor = ChangesCursor(at=NOW - 60, continuation={"rccontinue": "old"}).to_json()
    refused = {"error": {"code": "badcontinue", "info": "no"}}
    poll = await world.poll("recent_changes", refused, cursor=cursor)
    assert ChangesCursor.from_json(poll.cursor) == ChangesCursor(at=NOW - 60)


async def test_a_small_wiki_reports_deletions_too(make):
    world = await make(20)
    log = {"logid": 1, "type": "delete", "action": "delete", "title": "Page 0", "ns": 0}
    poll = await world.poll(
        "recent_changes", reply(logevents=[{**log, "timestamp": iso_time(NOW)}])
    )
    [removal] = poll.removals
    assert removal.kind == "deletion"


async def test_a_template_edited_while_its_users_are_listed_is_listed_again(make):
    world = await make()
    begun = PendingTemplates(
        (("Template:A", NOW - 60), ("Template:B", NOW - 50)), continuation={"eicontinue": "10|5"}
    )
    number = world.known.sources["fan_out"].hint_source_id
    await world.database.write(hint_source.set_cursors, [(number, begun.to_json())])
    rows = [edit(1, "Template:A", space=10), edit(2, "Template:B", space=10)]
    poll = await world.poll("recent_changes", reply(recentchanges=rows))
    [(_, text)] = poll.cursor_updates
    pending = PendingTemplates.from_json(text)
    assert pending.continuation == begun.continuation
    titles = [title for title, _ in pending.templates]
    assert titles == ["Template:A", "Template:B", "Template:A"]
    assert pending.templates[0] == begun.templates[0]
    assert all(at > NOW - 50 for _, at in pending.templates[1:])


async def test_users_of_the_most_used_template_are_listed_first(make):
    world = await make()
    number = world.known.sources["fan_out"].hint_source_id
    survey = Survey(NOW, 0, {"Template:B": 4, "Template:C": 200, "File:F.png": 5})
    await world.database.write(lambda c: template_use.put(c, hint_source_id=number, survey=survey))
    waiting = PendingTemplates((("Template:A", NOW - 60), ("Template:B", NOW - 50)))
    await world.database.write(hint_source.set_cursors, [(number, waiting.to_json())])
    rows = [edit(1, "Template:C", space=10), edit(2, "Template:D", space=10)]
    poll = await world.poll("recent_changes", reply(recentchanges=rows))
    [(_, text)] = poll.cursor_updates
    titles = [title for title, _ in PendingTemplates.from_json(text).templates]
    assert titles == ["Template:C", "Template:B", "Template:A", "Template:D"]
    assert poll.settled_until == NOW - 60


def shown(world, *titles, revision=7, at=NOW - 2 * HOUR_S, touched=NOW - 2 * HOUR_S):
    pages = [
        {
            "pageid": world.pages[title],
            "title": title,
            "touched": iso_time(touched),
            "revisions": [{"revid": revision, "timestamp": iso_time(at)}],
        }
        for title in titles
    ]
    return reply(pages=pages)


async def probe(world, answer, cursor=None):
    """Probe and store the result, as the poller does."""
    poll = await world.poll("probe", answer, cursor=cursor)
    if poll.also_write is not None:
        await world.database.write(poll.also_write)
    return poll


async def test_probes_report_only_new_revisions(make):
    world = await make(10)
    titles = list(world.pages)
    poll = await probe(world, shown(world, *titles))
    assert (poll.pages, poll.told_until) == ([], NOW - 1.0)
    assert world.client.asked[0]["titles"].count("|") == 9
    # First newer than the visit; then an imported revision, older than the last probe.
    poll = await probe(world, shown(world, *titles, revision=8, at=NOW - 60))
    assert len(poll.pages) == 10
    poll = await probe(world, shown(world, *titles[:1], revision=9, at=NOW - 9 * HOUR_S))
    assert world.hinted_titles(poll) == {"Page 0"}


async def test_a_copy_made_during_an_edit_tells_its_revision(make):
    world = await make(3)
    bodies = {"Page 0": b'{"wgRevisionId":7,', "Page 1": b'{"wgRevisionId":8,', "Page 2": b"none"}

    def copy(connection):
        for title, body in bodies.items():
            number = world.pages[title]
            visit.record(connection, changed(number, body))

    await world.database.write(copy)
    # By the wiki, all three got revision 8 three seconds before their visits.
    titles = list(world.pages)
    answer = shown(world, *titles, revision=8, at=NOW - HOUR_S - 3, touched=NOW - HOUR_S - 3)
    assert world.hinted_titles(await probe(world, answer)) == {"Page 0"}


async def test_an_edit_that_the_copy_shows_already_brings_no_second_visit(make):
    world = await make(5)
    visited_at = NOW - HOUR_S
    copies = {"Page 0": 70, "Page 1": 81, "Page 2": 82, "Page 3": None, "Page 4": 84}

    def copy(connection):
        for title, revision in copies.items():
            body = f'{{"wgRevisionId":{revision},' if revision else "none"
            visit.record(connection, changed(world.pages[title], f"{body}{title}".encode()))

    await world.database.write(copy)
    # By the wiki, all were edited in the second of their visits, one of them twice, and one was
    # deleted and restored.
    rows = [edit(n, f"Page {n}", at=visited_at, page=100 + n, revid=80 + n) for n in range(5)]
    rows.append(edit(9, "Page 2", at=visited_at, page=102, revid=92))
    log = {"logid": 1, "type": "delete", "action": "restore", "title": "Page 4", "ns": 0}
    log["timestamp"] = iso_time(visited_at)
    poll = await world.poll("recent_changes", reply(recentchanges=rows, logevents=[log]))
    later = [page for page in poll.pages if page.last_at > visited_at]
    assert world.hinted_titles(replace(poll, pages=later)) == {
        *("Page 0", "Page 2", "Page 3", "Page 4")
    }
    assert "Page 1" in world.hinted_titles(poll)  # it was reported, so it was not missed


async def test_a_wiki_that_dates_edits_by_our_visits_lets_few_copies_be_searched(make):
    world = await make(2 * MAX_SEARCHED)

    def copy(connection):
        for number, page in enumerate(world.pages.values()):
            visit.record(connection, changed(page, b'{"wgRevisionId":%d,' % (1_000 + number)))

    await world.database.write(copy)
    rows = [
        edit(number, title, at=NOW - HOUR_S, page=100 + number, revid=1_000 + number)
        for number, title in enumerate(world.pages)
    ]
    poll = await world.poll("recent_changes", reply(recentchanges=rows))
    later = {page.page_id for page in poll.pages if page.last_at > NOW - HOUR_S}
    assert len(world.pages) - len(later) == MAX_SEARCHED


async def test_a_copy_of_the_newest_revision_may_be_of_an_older_template(make):
    world = await make(2)

    def copy(connection):
        for number in world.pages.values():
            visit.record(connection, changed(number, b'{"wgRevisionId":8,'))

    await world.database.write(copy)
    # Revision 8 was saved three seconds before the visit; its wiki renders "Page 1" again later.
    edited_at = NOW - HOUR_S - 3
    answer = shown(world, "Page 0", revision=8, at=edited_at, touched=edited_at)
    later = shown(world, "Page 1", revision=8, at=edited_at, touched=NOW - HOUR_S + 10)
    answer["query"]["pages"] += later["query"]["pages"]
    poll = await probe(world, answer)
    assert poll.pages == []
    [(_, text)] = poll.cursor_updates
    assert world.hinted_titles(await world.poll("fan_out", cursor=text)) == {"Page 1"}


async def test_probes_report_pages_that_appeared_or_disappeared(make):
    world = await make(3)
    gone = reply(pages=[{"title": title, "missing": True} for title in world.pages])
    assert len((await probe(world, gone)).pages) == 3
    await world.database.write(
        lambda connection: connection.execute("UPDATE page SET last_outcome = 'gone'")
    )
    assert (await probe(world, gone)).pages == []
    assert len((await probe(world, shown(world, *world.pages))).pages) == 3


async def test_a_page_rendered_without_a_new_revision_is_possibly_stale(make):
    world = await make(3)
    await probe(world, shown(world, *world.pages))
    poll = await probe(world, shown(world, "Page 1", touched=NOW - 30))
    assert poll.pages == []
    [(number, text)] = poll.cursor_updates
    assert number == world.known.sources["fan_out"].hint_source_id
    hinted_titles = await world.poll("fan_out", cursor=text)
    assert (world.hinted_titles(hinted_titles), hinted_titles.requests) == ({"Page 1"}, 0)


async def test_a_round_of_probes_covers_all_pages(make):
    world = await make(120)
    titles, cursor = list(world.pages), None
    for first in (0, 50, 100):
        part = titles[first : first + 50]
        poll = await probe(world, shown(world, *part), cursor)
        assert world.client.asked[-1]["titles"].split("|") == part
        cursor = poll.cursor
    assert poll.told_until is not None
    assert ProbeProgress.from_json(cursor).after == 0


async def test_fewer_titles_are_queried_after_a_rejection(make):
    world = await make(60)
    for limit, then in ((50, 25), (10, 10)):  # one that is no reason, and one that is
        refused = {"error": {"code": "toomanyvalues", "info": "no", "limit": limit}}
        poll = await world.poll("probe", refused)
        assert ProbeProgress.from_json(poll.cursor).titles == then


async def test_users_of_an_edited_template_are_possibly_stale(make):
    world = await make()
    poll = await world.poll(
        "recent_changes", reply(recentchanges=[edit(1, "Template:Box", space=10)])
    )
    [(_, text)] = poll.cursor_updates
    users = [{"title": f"Page {number}", "ns": 0} for number in range(1, 5)]
    part = {"eicontinue": "10|9"}
    hinted_titles = await world.poll("fan_out", reply(embeddedin=users, cursor=part), cursor=text)
    assert world.hinted_titles(hinted_titles) == {"Page 1", "Page 2", "Page 3", "Page 4"}
    assert world.client.asked[-1]["eititle"] == "Template:Box"
    hinted_titles = await world.poll("fan_out", reply(embeddedin=[]), cursor=hinted_titles.cursor)
    assert world.client.asked[-1]["eicontinue"] == "10|9"
    assert PendingTemplates.from_json(hinted_titles.cursor) == PendingTemplates()


async def test_a_templates_pages_are_counted_and_explain_changes_since_its_edit(make):
    world = await make(60)
    edited = edit(1, "Template:T", NOW - 30, space=10)
    recent = await world.poll("recent_changes", reply(recentchanges=[edited]))
    # Until its pages are listed, its edit may explain what visits find.
    assert recent.settled_until == NOW - 30
    ((_, queued),) = recent.cursor_updates
    users = [{"title": "Page 3"}, {"title": "Page 4"}]
    listed = await world.poll("fan_out", reply(embeddedin=users), cursor=queued)
    assert (listed.cause, {page.first_at for page in listed.pages}) == ("Template:T", {NOW - 30})
    number = world.known.sources["fan_out"].hint_source_id
    await world.database.write(listed.also_write)
    counted = await world.database.read(fan_out.listed, number)
    assert counted == {"Template:T": (2, listed.at)}
    answer = reply(recentchanges=[edited, edit(2, "Page 1")])
    later = await world.poll("recent_changes", answer, cursor=recent.cursor)
    assert later.settled_until is None


async def test_a_title_maps_to_its_url_hash(make):
    world = await make(3)
    concern = world.sources["probe"].change_of("Page 1", None, (NOW, NOW), of_text=True)
    assert concern.url_hash == url_hash("http://a.test/wiki/Page_1")


async def test_what_waits_in_a_cursor_is_known_without_a_poll(make):
    world = await make()
    assert is_waiting(world, "recent_changes")
    assert is_waiting(world, "recent_changes", ChangesCursor(at=NOW).to_json())
    assert is_waiting(world, "probe", ProbeProgress(urgent=True).to_json())
    assert not is_waiting(world, "probe", ProbeProgress(after=7).to_json())
    assert is_waiting(world, "fan_out", PendingTemplates(templates=(("T", NOW),)).to_json())
    assert is_waiting(world, "fan_out", PendingTemplates(pages=((1, NOW, NOW),)).to_json())
    assert not is_waiting(world, "fan_out", PendingTemplates().to_json())
    assert not is_waiting(world, "fan_out")


async def test_pages_that_show_an_uploaded_file_are_possibly_stale(make):
    world = await make()
    poll = await world.poll(
        "recent_changes", reply(recentchanges=[edit(1, "File:A flag.png", space=6)])
    )
    [(_, text)] = poll.cursor_updates
    users = reply(imageusage=[{"title": "Page 1", "ns": 0}])
    hinted = await world.poll("fan_out", users, cursor=text)
    assert world.client.asked[-1]["iutitle"] == "File:A flag.png"
    assert "eititle" not in world.client.asked[-1]
    assert world.hinted_titles(hinted) == {"Page 1"}


def file_users(*versions, cursor=None):
    """Return who shows a file with versions (seconds ago, width), the newest first."""
    held = [
        {"timestamp": iso_time(NOW - ago_s), "width": width, "height": 9, "mime": "image/png"}
        for ago_s, width in versions
    ]
    pages = [{"title": "File:A flag.png", "ns": 6, "imageinfo": held}]
    return reply(imageusage=[{"title": "Page 1", "ns": 0}], pages=pages, cursor=cursor)


@pytest.mark.parametrize(
    ("versions", "is_stale"),
    [
        ([(4, 300), (5000, 300)], False),
        ([(4, 300), (5000, 200)], True),
        ([(4, 300), (5000, 300), (9000, 200)], False),
        ([(4, 300), (20, 200), (5000, 300)], True),
        ([(4, 300), (20, 300), (5000, 200)], True),
        ([(4, 300), (20, 300), (5000, 300)], False),
        ([(4, 300)], True),  # it is new
        ([(5000, 300), (9000, 300)], True),  # it was restored
        ([(9, 300), (9000, 300)], True),
        ([(8, 300), (9000, 300)], False),
        ([], True),
        ([(4, None), (5000, None)], True),
    ],
)
async def test_pages_that_show_a_file_change_with_its_size(make, versions, is_stale):
    world = await make()
    text = PendingTemplates(templates=(("File:A flag.png", NOW - 5),)).to_json()
    cursor = {"iistart": "2026", "continue": "||"}
    poll = await world.poll("fan_out", file_users(*versions, cursor=cursor), cursor=text)
    [query] = world.client.asked
    assert (query["titles"], query["prop"]) == ("File:A flag.png", "imageinfo")
    assert world.hinted_titles(poll) == ({"Page 1"} if is_stale else set())
    assert not PendingTemplates.from_json(poll.cursor).templates


async def test_the_users_of_a_file_are_listed_to_their_end(make):
    world = await make()
    text = PendingTemplates(templates=(("File:A flag.png", NOW - 5),)).to_json()
    cursor = {"iistart": "2026", "iucontinue": "0|7", "continue": "||imageinfo"}
    poll = await world.poll("fan_out", file_users((4, 300), cursor=cursor), cursor=text)
    await world.poll("fan_out", reply(imageusage=[]), cursor=poll.cursor)
    assert world.client.asked[-1]["iucontinue"] == "0|7"
    assert "iistart" not in world.client.asked[-1]
    assert "prop" not in world.client.asked[-1]
