"""`crawld` that is killed in the middle of a page: `python -m tests.peer.killed_crawld`.

`KILL_AFTER_PARTS` is the number of parts of links that are committed before the kill, 0: none.
"""

import os
import signal

from crawld.cli.main import main
from crawld.store.engine.database import Database
from crawld.store.visit import LinkPart

_write_each = Database.write_each
_left = [int(os.environ.get("KILL_AFTER_PARTS", "0"))]


async def _write_each_and_die(self, fn, arguments):
    results = await _write_each(self, fn, arguments)
    if _left[0] and any(isinstance(each, LinkPart) for each in arguments):
        _left[0] -= 1
        if not _left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
    return results


Database.write_each = _write_each_and_die


if __name__ == "__main__":
    main()
