"""A message of notification as a mail: plain text and HTML, in ASCII with short lines."""

from __future__ import annotations

from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import blake2b
from typing import Final

from crawld.core.notify.timing import LAST_TIME
from crawld.daemon.notify.message import NotifyMessage
from crawld.daemon.notify.wording import html_text, plain_text, subject

MAX_CHARACTERS: Final = 200_000
"""Characters of each form of a mail; events beyond it are counted only."""

_POLICY: Final = SMTP.clone(cte_type="7bit")
_ENCODING: Final = "quoted-printable"


def mail_content(
    message: NotifyMessage, sender: str, recipients: tuple[str, ...], now: float
) -> bytes:
    """Return the mail as it is sent: ASCII, lines of at most 998 bytes that end with CR LF.

    Args:
        sender: address, also in the domain of Message-ID.
        now: Unix seconds, for the header Date.
    """
    mail = EmailMessage(policy=_POLICY)
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Subject"] = _no_encoded_words(subject(message))
    date = datetime.fromtimestamp(min(max(now, 0.0), LAST_TIME), UTC)
    mail["Date"] = format_datetime(date)
    mail["Message-ID"] = message_id(message.key, sender)
    # RFC 3834: keeps holiday replies and the like from answering.
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Crawld-Rule"] = message.rule
    mail.set_content(plain_text(message, MAX_CHARACTERS), cte=_ENCODING)
    mail.add_alternative(html_text(message, MAX_CHARACTERS), subtype="html", cte=_ENCODING)
    # By the key, which no page knows, and so the same at each try.
    mail.set_boundary(f"=_{blake2b(message.key.encode(), digest_size=16).hexdigest()}")
    return mail.as_bytes()


def _no_encoded_words(text: str) -> str:
    """Return a text without encoded words (RFC 2047): the library would decode line ends in them.

    >>> _no_encoded_words("=?utf-8?q?=0D=0ABcc=3A_a=40b?=")
    '= ?utf-8?q?=0D=0ABcc=3A_a=40b?='
    """
    return text.replace("=?", "= ?")


def message_id(key: str, sender: str) -> str:
    """Return the Message-ID of a message, the same at each try.

    >>> message_id("urn:crawld:5f2a:7", "crawld@example.org")
    '<crawld.5f2a.7@example.org>'
    """
    return f"<{key.removeprefix('urn:').replace(':', '.')}@{sender.rpartition('@')[2]}>"
