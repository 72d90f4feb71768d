"""How the titles of a part of a wiki are listed, and why each belongs to it."""

from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_members import (
    MAX_NAMED,
    MemberPage,
    MemberReason,
    Membership,
    MemberWalk,
    count_query,
    normalize_categories,
    pages_query,
    read_newest,
    read_pages,
)
from tests.unit.sources.test_mediawiki_scope import RULES


def answer(*rows, cursor=None):
    return ApiResponse({"pages": list(rows)}, cursor)


def page(title, space=0, **more):
    return {"title": title, "ns": space, **more}


def titles_of(found):
    return [member.title for member in found.members]


def test_a_walk_through_cyclic_categories():
    walk = MemberWalk.start(["physics", "Category:Maths"], 1, [], RULES)
    assert walk.query(RULES)["gcmtitle"] == "Category:Physics"
    rows = [page("A"), page("Category:Optics", 14)]
    found, walk = walk.read(answer(*rows, cursor={"gcmcontinue": "x"}))
    assert found.members == [Membership("A", MemberReason.CATEGORY, "Category:Physics")]
    assert walk.query(RULES)["gcmcontinue"] == "x"
    rows = [page("B", redirect=True), page("Category:Maths", 14), {"title": 7}, "junk"]
    found, walk = walk.read(answer(*rows))
    assert titles_of(found) == ["B"]
    assert found.redirects == ["B"]
    assert [title for title, _ in walk.categories] == ["Category:Maths", "Category:Optics"]
    _, walk = walk.read(answer())
    _, walk = walk.read(answer(page("Category:Lenses", 14), page("Category:Physics", 14)))
    assert walk.is_done  # Optics is at the depth limit
    assert walk.seen == {"Category:Physics", "Category:Maths", "Category:Optics"}


def test_a_walk_through_prefixes():
    walk = MemberWalk.start([], 0, ["help:inst", "list of "], RULES)
    query = walk.query(RULES)
    assert (query["gapprefix"], query["gapnamespace"]) == ("Inst", 12)
    found, walk = walk.read(answer(page("Help:Install", 12), page("Help:Inst", 12, redirect=True)))
    assert found.members[0] == Membership("Help:Install", MemberReason.PREFIX, "Help:Inst")
    assert found.redirects == ["Help:Inst"]
    assert walk.query(RULES)["gapprefix"] == "List of "
    assert walk.skip().is_done


def test_categories_of_a_prefix_in_their_namespace_are_its_titles():
    walk = MemberWalk.start([], 0, ["Category:Op"], RULES)
    found, _ = walk.read(answer(page("Category:Optics", 14)))
    assert titles_of(found) == ["Category:Optics"]


def test_an_unknown_category_is_skipped():
    walk = MemberWalk.start(["None", "Some"], 0, [], RULES).skip()
    assert walk.subject == "Category:Some"


def test_categories_in_any_spelling():
    written = ["physics", "category:physics", "Category:_maths_", "a|b", "Help:A"]
    spelt = ["Category:Physics", "Category:Maths", "Category:Help:A"]
    assert normalize_categories(written, RULES) == spelt


def test_the_state_of_pages():
    query = pages_query(["Category:A", "Category:B"], titles=["One", "Two"])
    assert (query["titles"], query["clcategories"]) == ("One|Two", "Category:A|Category:B")
    many = [f"Category:{number}" for number in range(MAX_NAMED + 1)]
    assert "clcategories" not in pages_query(many, numbers=[7, 8])
    wanted = {"prop": "info", "inprop": "talkid", "pageids": "7|8"}
    assert pages_query([], numbers=[7, 8]) == wanted
    first = page("One", pageid=7, categories=[{"title": "Category:A"}])
    before = read_pages(answer(first, {"pageid": 9, "missing": True}, page("Two", missing=True)))
    assert before == [
        MemberPage("One", 7, False, frozenset({"Category:A"})),
        MemberPage("Two", None, False, frozenset()),
    ]
    more = page("One", pageid=7, redirect=True, categories=[{"title": "Category:B"}])
    [whole] = read_pages(answer(more), before)
    assert whole == MemberPage("One", 7, True, frozenset({"Category:A", "Category:B"}))


def test_the_reason_for_a_person():
    assert Membership("A", MemberReason.TITLE).text == "by its title"
    assert Membership("A", MemberReason.MOVE, "B").text == "by move from 'B'"


def test_the_newest_pages_of_a_category_are_asked_for_beside_sizes():
    query = count_query(["Category:A", "Category:B"], "Category:B")
    assert query["cmtitle"] == "Category:B"
    assert {**count_query(["Category:A", "Category:B"]), **query} == query
    rows = [page("New"), page("Category:Below", 14), page("Talk:New", 1), {"ns": 0}]
    assert read_newest(ApiResponse({"categorymembers": rows})) == ["New", "Talk:New"]
    assert read_newest(ApiResponse({"pages": []})) == []
