"""Import a program quickly."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
