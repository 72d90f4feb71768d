"""Why pages of a part of a real MediaWiki are, or are no longer, fetched."""

from urllib.parse import urlencode

from tests.e2e.test_wiki_parts import mirror, shown_titles, wait

__all__ = ["mirror"]  # a fixture


def first(crawld, mediawiki, title):
    """Return the cause that decides about a title, its answer, and why the title is in the part."""
    found = crawld.get(f"/why?{urlencode({'url': mediawiki.url(title)})}")
    return found["causes"][0]["cause"], found["answer"], (found["part"] or {}).get("reasons")


def test_pages_that_leave_their_part_or_are_deleted_say_so(mirror, mediawiki):
    for title in ("Leaves", "Dies", "Stays"):
        mediawiki.edit(title, f"text of {title} [[Category:Some]]")
    mediawiki.run_jobs()
    crawld = mirror(wiki_categories=["Some"])
    whole = {"Main_Page", "Leaves", "Dies", "Stays"}
    wait(crawld, lambda: shown_titles(crawld, mediawiki) == whole)
    cause, _, reasons = first(crawld, mediawiki, "Stays")
    assert cause in ("rests", "hinted")
    assert reasons == ["by category 'Category:Some'"]
    mediawiki.edit("Leaves", "text without its category")
    mediawiki.delete("Dies")
    mediawiki.run_jobs()
    wait(crawld, lambda: first(crawld, mediawiki, "Leaves")[0] == "wiki_part")
    _, answer, reasons = first(crawld, mediawiki, "Leaves")
    assert '"Leaves" has left the part of the wiki that site wiki covers' in answer
    assert reasons == []
    deleted = "Its wiki reports that it was deleted"
    wait(crawld, lambda: deleted in first(crawld, mediawiki, "Dies")[1])
    wait(crawld, lambda: first(crawld, mediawiki, "Dies")[0] in ("gone", "wiki_part"))
    cause, answer, _ = first(crawld, mediawiki, "Entry_0001")
    assert cause == "wiki_part"
    assert '"Entry 0001" is not in the part' in answer
    assert "discussion page" in first(crawld, mediawiki, "Talk:Stays")[1]
    for ended in (
        crawld.crawlctl("why", mediawiki.url("Leaves")),
        crawld.crawld("why", mediawiki.url("Leaves"), "--db", crawld.db),
    ):
        assert '"Leaves" has left the part of the wiki' in " ".join(ended.stdout.split())
