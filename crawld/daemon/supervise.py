"""Restart background tasks after a crash.

Without policies or hint polls the mirror is less fresh but still a mirror. So a bug in such a
task, or a row that triggers it at every start, is logged and the task is restarted after a pause,
while the crawl continues.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
import trio

from crawld.errors import is_store_failure

log = structlog.get_logger(__name__)

RESTART_S = 60.0
"""Pause between a crash and the restart."""


async def supervise(name: str, task: Callable[[], Awaitable[None]]) -> None:
    """Run a task until it returns; restart it after each crash.

    Raises:
        StoreError: the database cannot be used any more; may come in an exception group.
    """
    while True:
        try:
            await task()
        except Exception as error:
            if is_store_failure(error):
                raise
            log.exception("task_crashed", task=name, restart_s=RESTART_S)
            await trio.sleep(RESTART_S)
        else:
            return
