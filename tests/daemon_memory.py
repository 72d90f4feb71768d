"""The memory of daemons that ran in this process, and of large tests."""

import gc
import os

from crawld.daemon.process import return_heap_memory
from crawld.process_status import memory_mb

_KEPT_MB = 340.0
_STEP_MB = 8.0

_trimmed_mb = _collected_mb = _KEPT_MB


def collect() -> None:
    """Free ended daemons, whose objects their start has exempted from garbage collection."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _resident_mb() -> float:
    return memory_mb(os.getpid(), "VmRSS")


def return_if_large() -> None:
    """Return free memory to the system once the process has become larger: daemons keep theirs."""
    global _trimmed_mb, _collected_mb
    if _resident_mb() <= _trimmed_mb + _STEP_MB:
        return
    return_heap_memory()
    if _resident_mb() > _collected_mb + _STEP_MB:  # most large tests leave no garbage
        gc.collect()
        return_heap_memory()
        _collected_mb = max(_KEPT_MB, _resident_mb())
    _trimmed_mb = max(_KEPT_MB, _resident_mb())
