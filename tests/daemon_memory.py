"""The memory of daemons that ran in this process, and of large tests."""

import gc
import os
import sys

from crawld.core.content import language
from crawld.daemon.process import return_heap_memory
from crawld.process_status import memory_mb

_KEPT_MB, _STEP_MB = 340.0, 20.0

_MODEL_KEPT_MB = 410.0
"""Above it, the model of languages is dropped after a test: 60 MB, and 0.6 s to read it again."""

_returned_from_mb = _KEPT_MB


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


def _resident_mb() -> float:
    return memory_mb(os.getpid(), "VmRSS")


def return_if_large() -> None:
    """Return free memory to the system once the process has become larger: daemons keep theirs."""
    global _returned_from_mb
    if _resident_mb() <= _returned_from_mb:
        return
    return_heap_memory()
    if (resident_mb := _resident_mb()) <= _returned_from_mb:
        return  # most large tests leave free memory only
    if resident_mb > _MODEL_KEPT_MB:
        language._identifier.cache_clear()
    gc.collect()
    return_heap_memory()
    _returned_from_mb = max(_KEPT_MB, _resident_mb() + _STEP_MB)
