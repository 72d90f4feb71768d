"""Parts of the daemon that are registered as plug-ins, beside those that need no daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crawld.daemon.hints.finders import DOCUMENTS, MEDIAWIKI
from crawld.daemon.notify.apprise_service import APPRISE

DAEMON_PARTS: Final[Mapping[str, object]] = {
    "mediawiki": MEDIAWIKI,
    "documents": DOCUMENTS,
    "apprise": APPRISE,
}
"""Plug-ins by name."""
