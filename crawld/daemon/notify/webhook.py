"""A message of notification as the JSON body and the headers of a webhook request."""

from __future__ import annotations

import hmac
import json
from typing import Any, Final

from pydantic import SecretStr

from crawld.core.display import iso_text
from crawld.core.notify.change_text import ChangeText
from crawld.core.notify.timing import LAST_TIME
from crawld.daemon.notify.message import NotifyMessage, ReportedEvent

SIGNATURE_HEADER: Final = "X-Crawld-Signature-256"


def webhook_body(message: NotifyMessage) -> bytes:
    """Return the body, JSON in UTF-8; `docs/notifications.md` describes it."""
    content: dict[str, Any] = {
        "id": message.key,
        "mirror": message.mirror_id,
        "rule": message.rule,
        "test": message.is_test,
        "events": [_event(each) for each in message.events],
    }
    if message.text:
        content["text"] = message.text
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _event(reported: ReportedEvent) -> dict[str, Any]:
    event, change = reported.event, reported.change
    content: dict[str, Any] = {
        "id": reported.urn,
        "event_id": event.event_id,
        "kind": event.kind.value,
        "at": iso_text(min(max(event.at, 0.0), LAST_TIME)),
        "site": event.site,
        "url": event.url,
        "title": event.title,
        "difference": event.difference,
    }
    optional = {
        "target_url": event.target_url,
        "change": None if change is None else _change(change),
        "page": reported.page_link,
        "diff": reported.diff_link,
    }
    return content | {name: value for name, value in optional.items() if value is not None}


def _change(change: ChangeText) -> dict[str, Any]:
    return {
        "words_added": change.words_added,
        "words_removed": change.words_removed,
        "pieces": [{"op": piece.op.value, "text": piece.text} for piece in change.pieces],
        "cut": change.is_cut,
    }


def webhook_headers(key: str, body: bytes, secret: SecretStr | None) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request: its type, its key, and its signature if there is a secret.

    The signature is HMAC-SHA256 of the body with the secret, in hexadecimal digits.
    """
    headers = (("Content-Type", "application/json"), ("Idempotency-Key", key))
    if secret is None:
        return headers
    digest = hmac.new(secret.get_secret_value().encode(), body, "sha256").hexdigest()
    return (*headers, (SIGNATURE_HEADER, f"sha256={digest}"))
