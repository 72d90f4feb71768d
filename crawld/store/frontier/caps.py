"""Limits on the number of pages, and what an admission tells of new pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from crawld.store.frontier.packed import Packing

SITE_CAP: Final = "site_cap"
REQUISITE_CAP: Final = "requisite_cap"
HOST_CAP: Final = "host_cap"


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits on the number of pages; a site without an entry has none.

    Attributes:
        per_site: site_id to the most pages of that site.
        per_host: site_id to the most pages of any one host that the site discovers.
        requisites: site_id to the most requisites of that site.
        packing: from which size on links wait for a verdict; None: every page gets a row at once.
    """

    per_site: Mapping[int, int] = field(default_factory=dict)
    per_host: Mapping[int, int] = field(default_factory=dict)
    requisites: Mapping[int, int] = field(default_factory=dict)
    packing: Packing | None = None

    def with_rows(self) -> Caps:
        """Return these limits for pages that need rows at once, as those that get a history."""
        return replace(self, packing=None)


NO_CAPS: Final = Caps()

PACKED: Final = 0
"""In place of the page_id of a packed page."""


class NewPage(NamedTuple):
    """A page that is new to its site.

    Attributes:
        page_id: `PACKED` if it has no row yet.
        was_visited: whether it belonged to another site and has been visited for it.
    """

    page_id: int
    host_id: int
    origin_id: int
    site_id: int
    depth: int
    url: str
    requisite: bool = False
    was_visited: bool = False
