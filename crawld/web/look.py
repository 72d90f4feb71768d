"""What all generated pages of one mirror show around their content: its title and links.

The application sets it for the thread or task that makes a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

LINKS: Final = (("/changes", "Changes"), ("/random", "Random page"))
DASHBOARD_LINK: Final = (("/-/dashboard", "Dashboard"),)


@dataclass(frozen=True, slots=True)
class Look:
    """The frame of the generated pages.

    Attributes:
        title: name of the mirror; empty: it is named after its sites.
        links: path and text of each link in the header.
    """

    title: str = ""
    links: tuple[tuple[str, str], ...] = LINKS


_SHOWN: Final = ContextVar("look", default=Look())  # noqa: B039 (it is immutable)


def shown_look() -> Look:
    """Return the look of the page that is being made."""
    return _SHOWN.get()


@contextmanager
def shown_as(look: Look) -> Iterator[None]:
    """Give pages that are made meanwhile a look."""
    token = _SHOWN.set(look)
    try:
        yield
    finally:
        _SHOWN.reset(token)
