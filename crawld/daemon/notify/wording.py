"""Messages for people: subject, plain text and HTML.

Titles and texts come from servers. Control characters, line ends and characters that change the
direction of text are removed from what stands in a line, and HTML is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final
from zoneinfo import ZoneInfo

from crawld.core.content.words import Op, Piece
from crawld.core.display import plural
from crawld.core.notify.change_text import ChangeText
from crawld.core.notify.timing import LAST_TIME
from crawld.core.words import EVENT_WORDS
from crawld.daemon.notify.message import NotifyMessage, ReportedEvent

MAX_TITLE_CHARACTERS: Final = 200
MAX_SUBJECT_CHARACTERS: Final = 250
MAX_SITES_NAMED: Final = 3

_MARKS: Final = {Op.SAME: ("", ""), Op.REMOVED: ("[-", "-]"), Op.ADDED: ("{+", "+}")}
_STYLES: Final = {
    Op.REMOVED: ("del", "background:#fbd5d5;color:#000"),
    Op.ADDED: ("ins", "background:#cdf0cd;color:#000"),
}


def one_line(text: str, most: int = MAX_TITLE_CHARACTERS) -> str:
    """Return untrusted text as one printable line of at most so many characters."""
    head = text[: 4 * most]
    printable = "".join(each if each.isprintable() else " " for each in head)
    line = " ".join(printable.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def subject(message: NotifyMessage) -> str:
    """Return the subject: the event, or how many there are of each kind."""
    if message.is_test:
        return f"[crawld] Test of {message.rule}"
    if len(message.events) == 1:
        event = message.events[0].event
        return one_line(f"[{event.site}] {headline(message.events[0])}", MAX_SUBJECT_CHARACTERS)
    sites = list(dict.fromkeys(each.event.site for each in message.events))
    named = ", ".join(sites[:MAX_SITES_NAMED]) + (" …" if len(sites) > MAX_SITES_NAMED else "")
    return one_line(f"[{named}] Pages: {_counts(message.events)}", MAX_SUBJECT_CHARACTERS)


def headline(reported: ReportedEvent) -> str:
    """Return what happened to which page."""
    return f"{EVENT_WORDS[reported.event.kind]}: {_title(reported)}"


def _title(reported: ReportedEvent) -> str:
    return one_line(reported.event.title or "") or one_line(reported.event.url)


def _counts(events: Iterable[ReportedEvent]) -> str:
    counts = Counter(each.event.kind for each in events).most_common()
    return ", ".join(f"{count:,} {kind.value}" for kind, count in counts)


def _details(reported: ReportedEvent, zone: str) -> str:
    event, change = reported.event, reported.change
    parts = [_time(event.at, zone)]
    if event.site:
        parts.append(f"site {event.site}")
    if change is not None:
        added, removed = plural(change.words_added, "word"), change.words_removed
        parts.append(f"{added} added, {removed:,} removed")
    elif event.difference is not None:
        parts.append(f"{event.difference:.1%} of the text differs")
    return "; ".join(parts)


def _time(at: float, zone: str) -> str:
    tz = UTC if zone == "UTC" else ZoneInfo(zone)
    found = datetime.fromtimestamp(min(max(at, 0.0), LAST_TIME), tz)
    return found.strftime("%Y-%m-%d %H:%M ") + (found.tzname() or zone)


# --- plain text ----------------------------------------------------------------------------------


def plain_text(message: NotifyMessage, most: int) -> str:
    """Return the message as plain text, without events beyond so many characters."""
    parts: list[str] = [message.text] if message.text else []
    if len(message.events) > 1:
        parts.append(f"Pages: {_counts(message.events)}")
    left = most - sum(map(len, parts))
    for number, reported in enumerate(message.events):
        part = "\n".join(_plain_lines(reported, message.zone))
        left -= len(part) + 2
        if left < 0 and number:
            parts.append(_more(message, number))
            break
        parts.append(part[:most])
    parts.append(f"-- \nRule {message.rule} of crawld, mirror {message.mirror_id[:8]}")
    return "\n\n".join(parts) + "\n"


def _more(message: NotifyMessage, shown: int) -> str:
    return f"… and {plural(len(message.events) - shown, 'more event')}"


def _plain_lines(reported: ReportedEvent, zone: str) -> Iterator[str]:
    event, change = reported.event, reported.change
    yield headline(reported)
    yield event.url
    if event.target_url is not None:
        yield f"now at {event.target_url}"
    yield _details(reported, zone)
    if change is not None and change.pieces:
        yield ""
        yield from (f"    {line}" for line in _plain_diff(change).splitlines())
        yield ""
    links = (("Page in the mirror", reported.page_link), ("Difference", reported.diff_link))
    yield from (f"{name}: {link}" for name, link in links if link is not None)


def _plain_diff(change: ChangeText) -> str:
    shown = "".join(
        before + _plain_piece(piece.text) + after
        for piece in change.pieces
        for before, after in (_MARKS[piece.op],)
    )
    return shown + " …" if change.is_cut else shown


def _plain_piece(text: str) -> str:
    return "\n".join(
        "".join(each if each.isprintable() else " " for each in line) for line in text.split("\n")
    )


# --- HTML ----------------------------------------------------------------------------------------


def html_text(message: NotifyMessage, most: int) -> str:
    """Return the message as an HTML document, without events beyond so many characters."""
    parts = [f"<p>{escape(message.text)}</p>"] if message.text else []
    if len(message.events) > 1:
        parts.append(f"<p><b>Pages: {escape(_counts(message.events))}</b></p>")
    for number, reported in enumerate(message.events):
        part = "\n".join(_html_lines(reported, message.zone))
        most -= len(part)
        if most < 0 and number:
            parts.append(f"<p>{_more(message, number)}</p>")
            break
        parts.append(part)
    footer = f"Rule {message.rule} of crawld, mirror {message.mirror_id[:8]}"
    parts.append(f'<p style="color:#666;font-size:small">{escape(footer)}</p>')
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>'
        f"{escape(subject(message))}</title></head>\n"
        f'<body style="font-family:sans-serif">\n{body}\n</body></html>\n'
    )


def _html_lines(reported: ReportedEvent, zone: str) -> Iterator[str]:
    event, change = reported.event, reported.change
    yield f"<h3>{EVENT_WORDS[event.kind]}: {_link(event.url, _title(reported))}</h3>"
    if event.target_url is not None:
        yield f"<p>now at {_link(event.target_url, one_line(event.target_url))}</p>"
    yield f"<p>{escape(_details(reported, zone))}</p>"
    if change is not None and change.pieces:
        cut = " …" if change.is_cut else ""
        yield f'<p style="white-space:pre-wrap">{_html_diff(change.pieces)}{cut}</p>'
    links = (("page in the mirror", reported.page_link), ("difference", reported.diff_link))
    if shown := [_link(link, name) for name, link in links if link is not None]:
        yield f"<p>{' · '.join(shown)}</p>"


def _link(url: str, text: str) -> str:
    return f'<a href="{escape(url)}">{escape(text)}</a>'


def _html_diff(pieces: Sequence[Piece]) -> str:
    return "".join(_html_piece(piece) for piece in pieces)


def _html_piece(piece: Piece) -> str:
    text = escape(_plain_piece(piece.text))
    if piece.op is Op.SAME:
        return text
    name, style = _STYLES[piece.op]
    return f'<{name} style="{style}">{text}</{name}>'
