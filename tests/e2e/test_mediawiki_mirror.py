"""A complete mirror of a real wiki: skin, images, moved and deleted pages."""

from tests.e2e.daemon_config import NOT_ARTICLES, query_rows, start_daemon, wiki_site
from tests.e2e.png import grey_png


def start(crawld, mediawiki, *, min_revisit_s=0.5, **more):
    without_files = [*NOT_ARTICLES, "regex:/wiki/File(_talk)?:"]
    start_daemon(
        crawld,
        wiki_site(mediawiki.url(), exclude=without_files, **more),
        politeness={"host_delay_s": 0.02},
        schedule={"min_revisit_s": min_revisit_s},
        jobs={"backfill_every_s": 0.2},
        content={"confirm_pages": 0},
    )


def page_rows(crawld, pattern):
    return query_rows(
        crawld,
        "SELECT last_outcome, version_id IS NOT NULL, redirect_url FROM page WHERE url LIKE ?",
        pattern,
    )


def count_copies(crawld, mediawiki, title):
    [[count]] = query_rows(
        crawld,
        "SELECT count(*) FROM version JOIN page USING (page_id) WHERE url = ?",
        mediawiki.url(title),
    )
    return count


def test_a_wiki_is_mirrored_with_its_skin_and_images(crawld, mediawiki):
    mediawiki.set_robots("User-agent: *\nDisallow:\n")
    mediawiki.upload("Dot.png", grey_png(b"M"))
    title = mediawiki.pages[0].title
    mediawiki.edit(title, "A dot: [[File:Dot.png]] and text.")
    start(crawld, mediawiki)
    wanted = ("%/w/load.php?%only=styles%", "%/w/images/%/Dot.png", "%/w/load.php?%startup%")

    def whole(_):
        found = [page_rows(crawld, pattern) for pattern in wanted]
        return all(each and all(row[0] == "changed" for row in each) for each in found)

    crawld.wait_until(whole)
    [[body]] = query_rows(
        crawld,
        "SELECT data FROM body JOIN version USING (body_id) JOIN page USING (page_id)"
        " WHERE url LIKE '%/Dot.png'",
    )
    assert body == grey_png(b"M")
    [[pages, requisites]] = query_rows(crawld, "SELECT page_count, requisite_count FROM site")
    assert pages > 1
    assert requisites >= 3


def events_of(crawld, mediawiki, title):
    """Return the kinds of a page's events but edits, in their order."""
    rows = query_rows(
        crawld,
        "SELECT kind FROM event JOIN page USING (page_id)"
        " WHERE url = ? AND kind <> 'changed' ORDER BY event_id",
        mediawiki.url(title),
    )
    return [kind for (kind,) in rows]


def test_a_moved_page_keeps_its_history_and_a_deleted_page_its_copy(crawld, mediawiki):
    moved, deleted = (page.title for page in mediawiki.pages[1:3])
    start(crawld, mediawiki, requisites=False)
    crawld.wait_until(
        lambda _: (
            count_copies(crawld, mediawiki, moved) and count_copies(crawld, mediawiki, deleted)
        )
    )
    mediawiki.move(moved, "A new name")
    mediawiki.delete(deleted)
    crawld.wait_until(
        lambda _: (
            page_rows(crawld, mediawiki.url(moved))[0][2] == mediawiki.url("A new name")
            and count_copies(crawld, mediawiki, "A new name") > 0
            and page_rows(crawld, mediawiki.url(deleted))[0][0] == "gone"
        )
    )
    assert count_copies(crawld, mediawiki, moved) == 0
    assert page_rows(crawld, mediawiki.url(deleted))[0][1]
    crawld.wait_until(lambda _: page_rows(crawld, mediawiki.url("A new name"))[0][0] is not None)
    assert events_of(crawld, mediawiki, moved) == ["new", "moved"]
    assert events_of(crawld, mediawiki, deleted) == ["new", "gone"]
    crawld.post("/drain")
    report = crawld.crawld("doctor", "--db", crawld.db)
    assert report.returncode == 0, report.stdout


def last_outcome_and_copy(crawld, mediawiki, title):
    """Return the outcome of a page's last visit, and the id of its current version."""
    [[outcome, version_id]] = query_rows(
        crawld, "SELECT last_outcome, version_id FROM page WHERE url = ?", mediawiki.url(title)
    )
    return outcome, version_id


def test_a_deleted_page_keeps_its_copy_until_it_is_restored(crawld, mediawiki):
    title = mediawiki.pages[2].title
    # No revisit is due within the test: only the wiki's log can report the deletion.
    start(crawld, mediawiki, min_revisit_s=3_600.0, requisites=False, api=True)
    crawld.wait_until(lambda _: count_copies(crawld, mediawiki, title) == 1)
    crawld.wait_until(lambda found: any(each["poll_count"] for each in found), "/hints")
    _, kept = last_outcome_and_copy(crawld, mediawiki, title)
    mediawiki.delete(title)
    crawld.wait_until(lambda _: last_outcome_and_copy(crawld, mediawiki, title) == ("gone", kept))
    # What the wiki says confirms the visit, or one more if it came first: no grace period.
    state_of = "SELECT state FROM page WHERE url = ?"
    crawld.wait_until(lambda _: query_rows(crawld, state_of, mediawiki.url(title)) == [("gone",)])
    logged = "SELECT kind FROM change WHERE source = 'log'"
    crawld.wait_until(lambda _: query_rows(crawld, logged) == [("deletion",)])
    mediawiki.undelete(title)
    crawld.wait_until(lambda _: last_outcome_and_copy(crawld, mediawiki, title)[0] != "gone")
    outcome, shown = last_outcome_and_copy(crawld, mediawiki, title)
    assert outcome in ("changed", "unchanged", "not_modified")
    assert shown is not None
    # The log told of the deletion before the visit, which is no second event.
    assert events_of(crawld, mediawiki, title) == ["new", "gone", "back"]
    [[state]] = query_rows(crawld, state_of, mediawiki.url(title))
    assert state == "visited"
