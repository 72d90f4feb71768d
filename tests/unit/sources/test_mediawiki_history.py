import hashlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_history import (
    LogEntry,
    WikiRevision,
    history_query,
    read_history,
    read_log,
    read_titles,
    revision_kinds,
    titles_query,
)


def sha1(text):
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def row(revision_id, timestamp, text="a", **more):
    values = {"revid": revision_id, "parentid": 0, "timestamp": timestamp, "size": len(text)}
    return {**values, "sha1": sha1(text), "tags": [], **more}


def page(title, number=None, *rows, **more):
    values = {"ns": 0, "title": title}
    if number is not None:
        values["pageid"] = number
    return {**values, "revisions": list(rows), **more}


def answer(*pages, **more):
    return ApiResponse({"pages": list(pages), **more})


def revision(revision_id, at, text):
    digest = None if text is None else hash(text)
    return WikiRevision(revision_id, float(at), 1, digest)


class TestTitles:
    def test_redirects_and_spellings_are_resolved(self):
        found = read_titles(
            answer(
                page("Target", 7, row(9, "2024-01-02T03:04:05Z")),
                normalized=[{"from": "old name", "to": "Old name"}],
                converted=[{"from": "Old name", "to": "Old name 2"}],
                redirects=[
                    {"from": "Old name 2", "to": "Middle"},
                    {"from": "Middle", "to": "Target", "tofragment": "x"},
                ],
            ),
            ["old name", "Target"],
        )
        assert found["old name"] == found["Target"]
        assert (found["Target"].number, found["Target"].title) == (7, "Target")
        [latest] = found["Target"].revisions
        assert (latest.revision_id, latest.at) == (9, 1704164645.0)

    def test_redirect_loops_and_missing_titles_are_left_out(self):
        steps = [{"from": "A", "to": "B"}, {"from": "B", "to": "A"}]
        assert read_titles(answer(redirects=steps), ["A", "C"]) == {}

    def test_missing_invalid_special_and_foreign_titles(self):
        found = read_titles(
            answer(
                page("Gone", missing=True),
                page("Shared.png", missing=True, known=True),
                page("A{b", invalid=True, invalidreason="bad character"),
                page("Special:Version", special=True),
                interwiki=[{"title": "wikt:x", "iw": "wikt"}],
            ),
            ["Gone", "Shared.png", "A{b", "Special:Version", "wikt:x"],
        )
        assert {title: shown.number for title, shown in found.items()} == dict.fromkeys(found)
        assert len(found) == 5
        refused = [title for title, shown in found.items() if shown.refused]
        assert refused == ["A{b", "Special:Version", "wikt:x"]
        assert found["Shared.png"].is_shared
        assert not found["Gone"].is_shared

    def test_format_version_1_is_read_too(self):
        pages = {"7": page("A", 7, row(1, "2024-01-02T03:04:05Z")), "-1": page("B", missing="")}
        found = read_titles(ApiResponse({"pages": pages}), ["A", "B"])
        assert (found["A"].number, found["B"].number) == (7, None)

    def test_the_query(self):
        assert titles_query(["A", "B"])["titles"] == "A|B"
        assert "rvlimit" not in titles_query(["A"])
        asked = history_query(7, {"rvcontinue": "x", "continue": "||"})
        assert (asked["pageids"], asked["rvlimit"], asked["rvcontinue"]) == (7, "max", "x")


class TestHistory:
    def test_revisions_are_read(self):
        rows = [
            row(5, "2024-01-02T03:04:05Z", tags=["mw-undo", "mobile edit"]),
            row(9, "2024-01-02T03:04:05Z"),
            row(2, "2001-01-15T00:00:00Z", sha1hidden=True, sha1=None, suppressed=True),
        ]
        shown = read_history(answer(page("A", 7, *rows)))
        assert [each.revision_id for each in shown.revisions] == [5, 9, 2]
        assert [each.kind for each in shown.revisions] == ["revert", None, None]
        assert shown.revisions[2].digest is None
        assert shown.revisions[0].at == shown.revisions[1].at
        expected = int.from_bytes(bytes.fromhex(sha1("a"))[:8], "big", signed=True)
        assert shown.revisions[0].digest == expected
        assert shown.unusable == 0

    def test_unusable_revisions_are_counted(self):
        rows = [
            {"revid": 0, "timestamp": "2024-01-02T03:04:05Z"},
            {"revid": 2**64, "timestamp": "2024-01-02T03:04:05Z"},
            {"revid": 3},
            {"revid": 4, "timestamp": "yesterday"},
            {"revid": "5", "timestamp": "2024-01-02T03:04:05Z"},
            row(6, "2024-01-02T03:04:05Z", size=-1, sha1="zz"),
        ]
        shown = read_history(answer(page("A", 7, *rows)))
        [only] = shown.revisions
        assert (only.revision_id, only.size_bytes, only.digest) == (6, None, None)
        assert shown.unusable == 5

    @pytest.mark.parametrize(
        "query", [{}, {"pages": []}, {"pages": "no"}, {"pages": [page("A", 1), page("B", 2)]}]
    )
    def test_a_response_without_the_page_is_none(self, query):
        assert read_history(ApiResponse(query)) is None

    @pytest.mark.parametrize("number", [0, -1, 2**63, 1e3, "7"])
    def test_an_invalid_page_id_is_none(self, number):
        assert read_history(ApiResponse({"pages": [page("A", number)]})).number is None

    def test_a_deleted_page_has_no_page_id(self):
        assert read_history(ApiResponse({"pages": [{"pageid": 7, "missing": True}]})).number is None


class TestLog:
    def test_moves_deletions_and_restorations(self):
        def entry(kind, action, day, **more):
            return {
                "type": kind,
                "action": action,
                "timestamp": f"2024-01-0{day}T00:00:00Z",
                **more,
            }

        entries = [
            entry("delete", "restore", 4, logid=4),
            entry("delete", "delete", 3, logid=3),
            entry("move", "move_redir", 2, logid=2, params={"target_title": "B"}),
            entry("protect", "x", 1, logid=1),
            entry("move", "move", 1),
        ]
        day_s = 86_400
        assert read_log(ApiResponse({"logevents": entries})) == [
            LogEntry(4, 1_704_326_400.0, "restoration"),
            LogEntry(3, 1_704_326_400.0 - day_s, "deletion"),
            LogEntry(2, 1_704_326_400.0 - 2 * day_s, "move", "B"),
        ]


class TestKinds:
    @pytest.mark.parametrize(
        ("texts", "expected"),
        [
            ("", []),
            ("ab", [None, None]),
            ("aba", [None, None, "revert"]),
            ("aab", [None, "null", None]),
            ("abab", [None, None, "revert", "revert"]),
            ("abbaa", [None, None, "null", "revert", "null"]),
        ],
    )
    def test_by_text(self, texts, expected):
        history = [revision(number, number, text) for number, text in enumerate(texts, 1)]
        assert revision_kinds(history) == expected

    def test_hidden_texts_have_no_kind(self):
        history = [revision(1, 1, None), revision(2, 2, None), revision(3, 3, "a")]
        assert revision_kinds(history) == [None, None, None]

    def test_revisions_are_ordered_by_time(self):
        history = [revision(1, 30, "a"), revision(5, 10, "a"), revision(3, 20, "b")]
        assert revision_kinds(history) == ["revert", None, None]

    @given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc")), max_size=20))
    def test_without_nulls_each_text_differs_from_the_one_before(self, rows):
        history = [revision(number, at, text) for number, (at, text) in enumerate(rows, 1)]
        marked = sorted(
            zip(history, revision_kinds(history), strict=True),
            key=lambda pair: (pair[0].at, pair[0].revision_id),
        )
        kept = [each.digest for each, kind in marked if kind != "null"]
        assert all(one != other for one, other in itertools.pairwise(kept))
        assert len([kind for _, kind in marked if kind is None]) == len({text for _, text in rows})
