"""The config models of notifications: `[[notify]]` blocks, and the mail server.

The rules of `crawld/config/model.py` apply here too.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, model_validator

from crawld.config.key import ConfigTable, key
from crawld.config.values import (
    ClockTime,
    Count,
    FilePath,
    HostName,
    MailAddress,
    PartText,
    RuleText,
    SearchPattern,
    Seconds,
    Share,
    SiteName,
    TimeZone,
    WebUrl,
)
from crawld.core.units import DAY_S
from crawld.core.url import split_url

EventKindName = Literal["new", "changed", "moved", "gone", "back"]
DEFAULT_KINDS: tuple[EventKindName, ...] = ("changed", "moved", "gone", "back")

MAX_RULES = 100
"""Each rule costs a task and a read of the events."""


class MailConfig(ConfigTable):
    """The mail server that sends notifications by mail."""

    host: HostName | None = key(None, "SMTP server; unset: no mail is sent.")
    port: Annotated[int, Field(strict=True, ge=1, le=65_535)] = key(587, "Port of the SMTP server.")
    security: Literal["starttls", "tls", "none"] = key(
        "starttls",
        "Encryption of the connection: starttls, tls (from the start, port 465) or none; the "
        "certificate is checked.",
    )
    user: str | None = key(None, "Name to log in with; unset: no login.")
    password_file: FilePath | None = key(
        None, "File whose only line is the password, mode 0600; needs user."
    )
    sender: MailAddress | None = key(
        None, 'Address that the mails come from: "crawld@example.org"; required for mail.'
    )

    @model_validator(mode="after")
    def _is_complete(self) -> MailConfig:
        if (self.user is None) != (self.password_file is None):
            raise ValueError("user and password_file need each other")
        if self.user is not None and not (self.user.isprintable() and self.user):
            raise ValueError("user must be printable text")
        if self.host is not None and self.sender is None:
            raise ValueError("host needs sender, the address that the mails come from")
        return self


class NotifyConfig(ConfigTable):
    """One rule of notification: where it sends, what it reports and when."""

    name: SiteName = Field(description="Short name of the rule, used in commands and messages.")
    webhook: WebUrl | None = key(
        None, 'URL that gets a POST request with JSON: "https://hooks.example.org/crawld".'
    )
    webhook_file: FilePath | None = key(
        None, "File whose only line is the URL of a webhook that is secret itself, mode 0600."
    )
    headers_file: FilePath | None = key(
        None,
        "File of further request headers and passwords for the webhook, as for sites, mode 0600.",
    )
    secret_file: FilePath | None = key(
        None,
        "File whose only line is the key that signs webhook requests (HMAC-SHA256), mode 0600.",
    )
    allow_private: StrictBool = key(
        False, "Whether the webhook may have a private or loopback address."
    )
    mail_to: tuple[MailAddress, ...] = key(
        (), 'Addresses that get a mail by the server in [mail]: ["you@example.org"].'
    )
    apprise_file: FilePath | None = key(
        None,
        "File whose only line is an Apprise URL, such as ntfy://topic, mode 0600; needs the extra "
        "notify. Private addresses are not refused.",
    )
    notifier: PartText | None = key(
        None, 'Notifier of a plug-in that delivers the messages: "PLUGIN:NAME".'
    )
    notifier_file: FilePath | None = key(
        None, "File whose only line the notifier gets, such as a password, mode 0600."
    )
    sites: tuple[SiteName, ...] = key((), 'Only these sites: ["docs"]; empty: all.')
    include: tuple[RuleText, ...] = key(
        (),
        'Only pages that match one of these: ["prefix:...", "glob:...", "regex:..."]; empty: all.',
    )
    exclude: tuple[RuleText, ...] = key(
        (), "No pages that match one of these; same form as include."
    )
    kinds: tuple[EventKindName, ...] = key(
        DEFAULT_KINDS,
        'What is reported: "changed", "new" (first copy), "moved", "gone", "back" (found again).',
    )
    min_changed_share: Share = key(
        0.0, "Only changes of at least this share of the page's text; not for other kinds."
    )
    min_changed_words: Annotated[int, Field(strict=True, ge=0, le=2**53)] = key(
        0, "Only changes of at least so many words, added or removed.", unit="words"
    )
    matches: SearchPattern | None = key(
        None,
        "Only events whose added text or title contains this regular expression (RE2): "
        '"(?i)security|CVE-".',
    )
    when: Literal["at once", "hourly", "daily"] = key(
        "at once",
        'When it sends: "at once", or everything of an hour or a day in one message (digest): '
        '"hourly", "daily".',
    )
    daily_at: ClockTime = key("07:00", 'Time of day of a daily digest: "HH:MM".')
    timezone: TimeZone = key("UTC", "Time zone of daily_at and of times in messages.")
    merge_above: Count = key(
        20,
        "If more events wait than this, because the receiver failed or much changed at once, they "
        "are sent in one message.",
        unit="events",
    )
    give_up_s: Seconds = key(3 * DAY_S, "How long a message is tried again before it is given up.")

    @property
    def receiver(self) -> str:
        """Where it sends, without what may be secret: of a URL only its host."""
        if self.mail_to:
            more = f" and {len(self.mail_to) - 1} more" if len(self.mail_to) > 1 else ""
            return f"mail to {self.mail_to[0]}{more}"
        if self.notifier is not None:
            return f"notifier {self.notifier}"
        if self.webhook is not None:
            return f"webhook on {split_url(self.webhook).host}"
        return "Apprise" if self.apprise_file is not None else "webhook of a file"

    @model_validator(mode="after")
    def _has_target(self) -> NotifyConfig:
        targets = {
            "webhook": self.webhook,
            "webhook_file": self.webhook_file,
            "mail_to": self.mail_to or None,
            "apprise_file": self.apprise_file,
            "notifier": self.notifier,
        }
        given = [name for name, value in targets.items() if value is not None]
        if len(given) != 1:
            excess = f", not both {' and '.join(given)}" if given else ""
            raise ValueError(f"needs one of {', '.join(targets)}{excess}")
        for_webhooks = self.headers_file or self.secret_file or self.allow_private
        if for_webhooks and not given[0].startswith("webhook"):
            raise ValueError("headers_file, secret_file and allow_private need a webhook")
        if self.notifier_file is not None and self.notifier is None:
            raise ValueError("notifier_file needs notifier")
        if not self.kinds:
            raise ValueError("kinds is empty, so that nothing would be reported")
        return self
