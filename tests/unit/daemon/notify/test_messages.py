"""Messages as mails, JSON and text, of pages whose titles and texts are hostile."""

import json
import re
from email import message_from_bytes, policy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawld.core.content.words import Hunk, Op, Piece
from crawld.core.event import EventKind
from crawld.core.notify.change_text import change_text
from crawld.daemon.notify.mail import mail_content
from crawld.daemon.notify.message import NotifyMessage, message_key, reported
from crawld.daemon.notify.webhook import webhook_body
from crawld.daemon.notify.wording import MAX_SUBJECT_CHARACTERS, plain_text, subject
from crawld.store.mirror.events import ChangeEvent

NOW = 1_780_000_000.0
MIRROR = "5f2a" * 8
SENDER = "crawld@example.org"
TO = ("you@example.org", "me@example.org")


def event(number=7, title="A title", kind=EventKind.CHANGED, **more):
    values = {
        "event_id": number, "kind": kind, "at": NOW, "site": "docs", "page_id": 1,
        "url": "https://docs.example.org/a?b=1&c", "title": title, "version_id": 2,
        "before_id": 1, "difference": 0.25, "target_url": None,
    }  # fmt: skip
    return ChangeEvent(**{**values, **more})


def change(old="wide open", new="safely shut"):
    pieces = (Piece(Op.SAME, "The door is "), Piece(Op.REMOVED, old), Piece(Op.ADDED, new))
    return change_text([Hunk(0, 0, pieces)])


def message(*events, text=None, **more):
    told = tuple(
        reported(each, MIRROR, "https://mirror.example.org", text or change()) for each in events
    )
    key = message_key(MIRROR, "team", [each.event_id for each in events] or [0])
    return NotifyMessage(key, "team", MIRROR, told, **more)


def mail(*given, **more):
    content = mail_content(message(*given, **more), SENDER, TO, NOW)
    return content, message_from_bytes(content, policy=policy.default)


def text_of(parsed, kind):
    return parsed.get_body((kind,)).get_content().replace("\r\n", "\n")


def test_a_mail_of_one_event():
    _, parsed = mail(event())
    assert parsed["Subject"] == "[docs] Changed: A title"
    assert parsed["From"] == SENDER
    assert parsed["To"] == "you@example.org, me@example.org"
    assert parsed["Message-ID"] == f"<crawld.{MIRROR}.7@example.org>"
    assert parsed["Date"] == "Thu, 28 May 2026 20:26:40 +0000"
    assert parsed["Auto-Submitted"] == "auto-generated"
    assert text_of(parsed, "plain") == (
        "Changed: A title\n"
        "https://docs.example.org/a?b=1&c\n"
        "2026-05-28 20:26 UTC; site docs; 2 words added, 2 removed\n"
        "\n"
        "    The door is [-wide open-]{+safely shut+}\n"
        "\n"
        "Page in the mirror: https://mirror.example.org/https/docs.example.org/a?b=1&c\n"
        "Difference: https://mirror.example.org/diff/1..2/https/docs.example.org/a?b=1&c\n"
        "\n"
        f"-- \nRule team of crawld, mirror {MIRROR[:8]}\n"
    )
    html = LexborHTMLParser(text_of(parsed, "html"))
    assert html.css_first("del").text() == "wide open"
    assert html.css_first("ins").text() == "safely shut"
    links = [each.attributes["href"] for each in html.css("a")]
    assert links[0] == "https://docs.example.org/a?b=1&c"
    assert links[2].endswith("/diff/1..2/https/docs.example.org/a?b=1&c")


def test_a_mail_is_the_same_at_each_try():
    assert mail(event())[0] == mail(event())[0]


def test_a_digest_counts_by_kind():
    gone = event(9, kind=EventKind.GONE, version_id=None, difference=None)
    moved = event(8, kind=EventKind.MOVED, target_url="https://docs.example.org/b", site="wiki")
    _, parsed = mail(event(7), moved, gone, event(10, title=None))
    assert parsed["Subject"] == "[docs, wiki] Pages: 2 changed, 1 moved, 1 gone"
    assert parsed["Message-ID"] == f"<crawld.{MIRROR}.team.7-10@example.org>"
    text = text_of(parsed, "plain")
    assert "now at https://docs.example.org/b" in text
    assert "Changed: https://docs.example.org/a?b=1&c" in text  # a page without a title


def test_times_are_in_the_zone_of_the_rule():
    text = plain_text(message(event(), zone="Europe/Paris"), 3_000)
    assert "2026-05-28 22:26 CEST" in text
    for at in (-1e18, 1e18):
        assert plain_text(message(event(at=at)), 3_000)
        assert json.loads(webhook_body(message(event(at=at))))


def test_a_long_message_is_cut_with_a_count():
    many = [event(number) for number in range(1, 101)]
    text = plain_text(message(*many), 3_000)
    assert len(text) < 3_300
    told = text.count("Changed: ")
    assert f"… and {100 - told} more events" in text
    assert len(plain_text(message(event(url="https://a.org/" + "a" * 9_000)), 3_000)) < 3_300


def test_a_mail_of_many_long_events_is_bounded():
    long = "<" * 1_000
    many = [event(number, title=long, url="https://a.org/" + "%3C" * 500) for number in range(500)]
    content, parsed = mail(*many, text=change("<" * 900, ">" * 900))
    assert len(content) < 5 * 2**20
    for kind in ("plain", "html"):
        assert re.search(r"… and \d+ more events", text_of(parsed, kind))


def test_a_test_says_so():
    test = NotifyMessage("urn:crawld:a:team:test-1", "team", MIRROR, (), text="This is a test.")
    assert subject(test) == "[crawld] Test of team"
    assert "This is a test." in plain_text(test, 3_000)
    body = json.loads(webhook_body(test))
    assert (body["test"], body["events"], body["text"]) == (True, [], "This is a test.")


HOSTILE = [
    "a\r\nBcc: all@example.org\r\n\r\n<b>",
    "a\nBcc: all@example.org",
    "\r\n.\r\nMAIL FROM:<a@b>",
    "=?utf-8?q?=0D=0ABcc=3A_all=40example.org?=",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnp.exe\u2066",
    "\x00\x07\x1b[2J",
    "Ü" * 1_000,
    "😀" * 1_000,
    "x" * 100_000,
    "a, b <c@d>; e:",
    "\u2028\u2029\x85",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_titles_and_texts(text):
    check_hostile(text)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=400))
def test_any_title_and_text(text):
    check_hostile(text)


def check_hostile(text):
    content, parsed = mail(event(title=text), text=change(text, text))
    assert content.isascii()
    lines = content.split(b"\r\n")
    assert max(map(len, lines)) <= 998
    assert b"\n" not in content.replace(b"\r\n", b"")
    assert b"\r" not in content.replace(b"\r\n", b"")
    assert parsed.defects == []
    assert set(parsed.keys()) == {
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "X-Crawld-Rule",
        "MIME-Version", "Content-Type",
    }  # fmt: skip
    assert len(parsed["Subject"]) <= MAX_SUBJECT_CHARACTERS
    assert re.sub(r"[^\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]", "", parsed["Subject"]) == ""
    html = LexborHTMLParser(text_of(parsed, "html"))
    tags = {node.tag for node in html.root.traverse() if not node.tag.startswith("-")}
    assert tags <= {"html", "head", "meta", "title", "body", "h3", "a", "p", "del", "ins"}
    body = json.loads(webhook_body(message(event(title=text), text=change(text, text))))
    assert body["events"][0]["title"] == text
