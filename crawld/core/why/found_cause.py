"""A cause that applies to a URL, in words."""

from __future__ import annotations

from typing import NamedTuple

from crawld.core.why.cause import Effect, VisitCause
from crawld.core.why.facts import ConfigPlace


class FoundCause(NamedTuple):
    """A cause that applies.

    Attributes:
        text: one or two sentences.
        remedy: what would change it; empty: nothing that the operator can do.
        until: when it ends, Unix seconds; None: not by time, or at once.
        place: the line of the config that decided.
    """

    cause: VisitCause
    effect: Effect
    text: str
    remedy: str = ""
    until: float | None = None
    place: ConfigPlace | None = None
