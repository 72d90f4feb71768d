"""The memory of daemons that ran in this process."""

import gc
import sys


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
