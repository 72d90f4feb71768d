"""Sends messages by Apprise, an optional package that knows a hundred services.

It is a plug-in of crawld itself: the notifier `apprise`. It uses threads and the network by its
own means: neither the address fence nor the limits of `net/` apply, so its URLs are the operator's
only.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Final

from crawld.config.check_notify import EXTRA
from crawld.extras import install_command
from crawld.plugins import API, Message, Notifier, hookimpl

NAME: Final = "apprise"


def send_by_apprise(message: Message) -> str:
    """Send a message and return why it was not delivered, empty if it was; runs on a thread.

    Its target is Apprise's URL of one service, which contains its passwords.
    """
    try:
        from apprise import Apprise, NotifyFormat
    except ModuleNotFoundError:
        return f"Apprise is not installed; install it: {install_command(EXTRA)}"
    # Its log would have parts of URLs, which are secret.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    service = Apprise.instantiate(message.target)
    if service is None:
        return "apprise_file has no URL that Apprise knows"
    if service.notify(body=message.text, title=message.subject, body_format=NotifyFormat.TEXT):
        return ""
    return f"the service {service.service_name} did not take it"


@hookimpl
def _notifiers() -> Mapping[str, Notifier]:
    """Return Apprise."""
    return {NAME: send_by_apprise}


APPRISE: Final = SimpleNamespace(CRAWLD_API=API, notifiers=_notifiers)
