"""Pages of one site on one host that are out of every scope, until the scopes change."""

from __future__ import annotations

from crawld.daemon.frontier.look_ahead import LookAhead


class LeftOut:
    """Single pages, or all pages of the queue.

    Attributes:
        all: whether the whole host is out of scope, so that nothing is to be noted of its pages:
            there may be millions.
    """

    # No set until one is needed: there may be 10,000 of these.
    __slots__ = ("_pages", "all")

    def __init__(self) -> None:
        self.all = False
        self._pages: set[int] | None = None

    def add(self, page: int) -> None:
        """Leave out a page."""
        self._pages = self._pages or set()
        self._pages.add(page)

    def add_all(self, ahead: LookAhead) -> None:
        """Leave out all pages, until new ones come."""
        ahead.empty()
        self.all = True

    def covers(self, ahead: LookAhead) -> bool:
        """Whether all pages of a queue with this look-ahead are left out."""
        return self.all and not ahead

    def discard(self, page: int) -> None:
        """Note that a page is queued again."""
        if self._pages is not None:
            self._pages.discard(page)

    @property
    def pages(self) -> set[int]:
        """The single pages."""
        return self._pages or set()

    def forget(self) -> None:
        """Leave out nothing."""
        self.all, self._pages = False, None
