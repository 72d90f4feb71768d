"""Import a program quickly, and no more of it than it uses."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from types import ModuleType


@contextmanager
def uncollected() -> Iterator[None]:
    """Import without collections of garbage, and exempt what is made from later ones.

    The modules of the daemon make half a million objects, and nearly all stay. The collector would
    look at the growing heap again and again: a seventh of the time of the imports.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


COMPANIONS: Final = ("brotli", "brotlicffi", "click", "greenlet", "pygments", "rich", "twisted")
"""Packages that structlog and httpx import only because they are installed: for colored tracebacks,
other event loops, codings that crawld does not accept, and the command line of httpx."""


def import_alone() -> None:
    """Import structlog and httpx without their companions, which take 9 MB of each daemon.

    A package whose place among the modules is None cannot be imported (Python's reference, 5.3.1).
    """
    loaded: dict[str, ModuleType] = {
        name: sys.modules[name] for name in COMPANIONS if name in sys.modules
    }
    for name in COMPANIONS:
        sys.modules[name] = cast("ModuleType", None)
    try:
        import httpx  # noqa: F401
        import structlog  # noqa: F401
    finally:
        for name in COMPANIONS:
            del sys.modules[name]
        sys.modules.update(loaded)
