"""Tasks beside the crawl that outlive their bugs.

What policies are told and which sources are polled make the mirror fresher; without them it is
still a mirror. So a bug there, or one row of the file that brings it out at every start, is logged
and the task begun anew after a rest, while pages are visited as before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
import trio

from crawld.errors import is_store_failure

log = structlog.get_logger(__name__)

REST_S = 60.0
"""Between a failure and the next try."""


async def supervise(name: str, task: Callable[[], Awaitable[None]]) -> None:
    """Run a task until it returns, anew after each bug.

    Args:
        name: of the task, for the log.
        task: begins from what the file says.

    Raises:
        StoreError: the file cannot be used any more; also in a group, if a task of the task met it.
    """
    while True:
        try:
            await task()
        except Exception as error:
            if is_store_failure(error):
                raise
            log.exception("task_failed", task=name, again_s=REST_S)
            await trio.sleep(REST_S)
        else:
            return
