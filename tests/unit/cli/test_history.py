"""`crawlctl page`, `history` and `diff`: tables and marked words."""

from crawld.cli.history import diff_text, history_table, version_table
from crawld.daemon.api.schemas.history import Diff, History, VersionDetail
from tests.unit.cli.conftest import shown

VERSION = {
    "version_id": 7,
    "visited_at": 1_700_000_000.0,
    "status": 200,
    "content_type": "text/html",
    "size_bytes": 30_000,
    "stored_bytes": 42,
}


def diff(*pieces):
    shown_pieces = [{"op": op, "text": text} for op, text in pieces]
    hunk = {"old_block": 3, "new_block": 4, "pieces": shown_pieces}
    return Diff.model_validate(
        {
            "url": "http://a.test/",
            "old": VERSION,
            "new": {**VERSION, "version_id": 9},
            "difference": 0.0123,
            "hunks": [hunk] if pieces else [],
        }
    )


CHANGED = diff(("same", "It was "), ("removed", "fine"), ("added", "cold"), ("same", " today"))


def test_a_diff_counts_the_ignored_noise():
    noisy = diff().model_copy(update={"noisy_blocks": 2})
    text = shown(diff_text(noisy, color=False))
    assert "2 blocks of noise; --raw shows them" in text
    assert "only noise has changed" in text


def test_words_are_marked_without_color():
    text = shown(diff_text(CHANGED, color=False))
    assert "It was [-fine-]{+cold+} today" in text
    assert "@ block 3 → 4" in text
    assert "version 7 of 2023-11-14T22:13:20Z" in text
    assert "1.23 %" in text
    assert "\x1b" not in text


def test_words_are_colored_on_a_terminal():
    text = shown(diff_text(CHANGED, color=True), color=True)
    assert "\x1b[9;31mfine\x1b[0m\x1b[1;32mcold\x1b[0m today" in text
    assert "[-" not in text


def test_equal_versions():
    assert "no visible text has changed" in shown(diff_text(diff(), color=False))


def test_long_unchanged_text_is_cut_between_changes():
    long = " ".join(f"word{number}" for number in range(200))
    text = shown(diff_text(diff(("removed", "a"), ("same", long), ("added", "b")), color=False))
    assert "word0 " in text
    assert "word199" in text
    assert "…" in text
    assert "word100" not in text


def test_control_characters_do_not_reach_the_terminal():
    text = shown(diff_text(diff(("added", "\x1b[2J\x9b1mx\n\rsecond")), color=False))
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "\r" not in text


def test_each_version_is_valid_until_the_next():
    history = History.model_validate(
        {
            "url": "http://a.test/",
            "title": "T",
            "change_count": 12,
            "versions": [VERSION, {**VERSION, "version_id": 6, "visited_at": 1_699_996_400.0}],
        }
    )
    rows = shown(history_table(history, 1_700_000_060.0)).splitlines()
    assert "2 shown, 12 stored by visits so far" in rows[2]
    assert rows[-2].split()[:4] == ["7", "2023-11-14T22:13:20Z", "1", "min"]
    assert rows[-1].split()[:4] == ["6", "2023-11-14T21:13:20Z", "1", "h"]


def test_a_version_is_shown_with_its_headers():
    version = VersionDetail.model_validate(
        {
            **VERSION,
            "url": "http://a.test/",
            "superseded_at": None,
            "http_version": "HTTP/1.1",
            "reason": "OK",
            "charset": "utf-8",
            "digest": "00ff",
            "headers": [["Server", "nginx\x1b[1m"]],
        }
    )
    text = shown(version_table(version))
    assert "HTTP/1.1 200 OK" in text
    assert "not yet" in text
    assert "nginx�[1m" in text
