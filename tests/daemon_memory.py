"""The memory of daemons that ran in this process, and of large tests."""

import gc
import resource
import sys

from crawld.daemon.process import return_heap_memory

_KEPT_BYTES = 340 << 20
_STEP_BYTES = 20 << 20

_returned_from = _KEPT_BYTES


def forget_routes() -> None:
    """Empty the caches of FastAPI, which hold the routes of daemons, and so the daemons."""
    models = sys.modules.get("fastapi.dependencies.models")
    for cached in vars(models).values() if models else ():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()


def collect() -> None:
    """Free ended daemons, whose objects their start has exempted from garbage collection."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def return_if_large() -> None:
    """Return free memory to the system once the process has become larger: daemons keep theirs."""
    global _returned_from
    if _resident_bytes() > _returned_from:
        collect()
        return_heap_memory()
        _returned_from = max(_KEPT_BYTES, _resident_bytes() + _STEP_BYTES)
