"""Sends messages by Apprise, an optional package that knows a hundred services.

It uses threads and the network by its own means: neither the address fence nor the limits of `net/`
apply, so its URLs are the operator's only.
"""

from __future__ import annotations

import logging

from crawld.config.check_notify import EXTRA
from crawld.extras import install_command


def send_by_apprise(url: str, title: str, text: str) -> str:
    """Send a message and return why it was not delivered, empty if it was; runs on a thread.

    Args:
        url: Apprise's URL of one service, which contains its passwords.
    """
    try:
        from apprise import Apprise, NotifyFormat
    except ModuleNotFoundError:
        return f"Apprise is not installed; install it: {install_command(EXTRA)}"
    # Its log would have parts of URLs, which are secret.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    service = Apprise.instantiate(url)
    if service is None:
        return "apprise_file has no URL that Apprise knows"
    if service.notify(body=text, title=title, body_format=NotifyFormat.TEXT):
        return ""
    return f"the service {service.service_name} did not take it"
