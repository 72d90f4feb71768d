"""What a message of notification says, before it has the form of its receiver."""

from __future__ import annotations

from dataclasses import dataclass, field

from crawld.core.event import event_urn
from crawld.core.notify.change_text import ChangeText
from crawld.store.mirror.events import ChangeEvent
from crawld.web.address import mirror_path


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """An event as a message reports it.

    Attributes:
        urn: names the event, the same in every message, feed and mirror.
        change: what the change says; None: not a change, too large, not kept, or one of many.
        page_link: the page in the mirror; None: the mirror has no public address.
        diff_link: the difference in the mirror; None: the same, or it lacks one of both copies.
    """

    event: ChangeEvent
    urn: str
    change: ChangeText | None = None
    page_link: str | None = None
    diff_link: str | None = None


@dataclass(frozen=True, slots=True)
class NotifyMessage:
    """A message of a rule.

    Attributes:
        key: names the message, the same at each try; that of one event is the event's.
        rule: name of the rule.
        mirror_id: names the mirror.
        events: at least one, oldest first; a test has none.
        zone: time zone of times for people.
        text: what it says besides.
    """

    key: str
    rule: str
    mirror_id: str
    events: tuple[ReportedEvent, ...] = field(repr=False)
    zone: str = "UTC"
    text: str = ""

    @property
    def is_test(self) -> bool:
        """Whether it reports nothing and only shows that messages arrive."""
        return not self.events


def message_key(mirror_id: str, rule: str, event_ids: list[int]) -> str:
    """Return the name of the message with these events, in their order.

    >>> message_key("5f2a", "team", [7]), message_key("5f2a", "team", [7, 8, 9])
    ('urn:crawld:5f2a:7', 'urn:crawld:5f2a:team:7-9')
    """
    if len(event_ids) == 1:
        return event_urn(mirror_id, event_ids[0])
    return f"urn:crawld:{mirror_id}:{rule}:{event_ids[0]}-{event_ids[-1]}"


def reported(
    event: ChangeEvent, mirror_id: str, public_url: str | None, change: ChangeText | None
) -> ReportedEvent:
    """Return an event with its links."""
    urn = event_urn(mirror_id, event.event_id)
    if public_url is None:
        return ReportedEvent(event, urn, change)
    path = mirror_path(event.url)
    diff = None
    if event.version_id is not None and event.before_id is not None:
        diff = f"{public_url}/diff/{event.before_id}..{event.version_id}{path}"
    return ReportedEvent(event, urn, change, f"{public_url}{path}", diff)
