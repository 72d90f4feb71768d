"""A scripted wiki and a daemon that mirrors it, in this process."""

import pytest

from tests.daemon.jobs.wiki import ScriptedWiki

EPOCH_AT = 1_700_000_000


def history(revisions, text="text", start=1):
    """Return revisions an hour apart, each with a different text."""
    return [
        (start + number, EPOCH_AT + 3_600 * number, f"{text} {number}")
        for number in range(revisions)
    ]


@pytest.fixture
def wiki_of(nursery):
    """Return a function that serves a wiki: `wiki = await wiki_of({"Start": history(3)})`."""

    async def start(pages, **more):
        wiki = ScriptedWiki(pages, **more)
        await nursery.start(wiki.serve)
        return wiki

    return start


@pytest.fixture
def backfilling(daemon, mirror):
    """Return a function that mirrors a wiki whose API may be used."""

    async def start(wiki, *, api=True, **tables):
        # Requests are counted: hint sources are polled once and then hardly ever.
        jobs = {"backfill_every_s": 0.05, "poll_share": 1e-3, **tables.pop("jobs", {})}
        tables = {"jobs": jobs, **tables}
        return await daemon(wiki.url(), site={"api": api}, **tables)

    return start


@pytest.fixture
def wikis(mirror):
    """Return an object that reads the stored state of the wiki and its pages."""

    class StoredWiki:
        def wiki(self):
            rows = mirror.rows(
                "SELECT api_url, trouble, trouble_detail, trouble_count, closed_until,"
                " request_count, change_count FROM wiki"
            )
            names = ("api_url", "trouble", "detail", "count", "closed_until", "requests", "changes")
            return dict(zip(names, rows[0], strict=True)) if rows else {}

        def states(self):
            return dict(mirror.rows("SELECT title, state FROM wiki_page"))

        def changes(self, title):
            return mirror.rows(
                "SELECT changed_at, revision_id, kind FROM change JOIN wiki_page USING (page_id)"
                " WHERE title = ? ORDER BY changed_at, revision_id",
                title,
            )

        def complete(self, *titles):
            states = self.states()
            return all(states.get(title) == "complete" for title in titles)

    return StoredWiki()
