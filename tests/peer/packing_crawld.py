"""`crawld` that packs pages early, and is killed meanwhile: `python -m tests.peer.packing_crawld`.

`KILL_AT` is a step and its number, as "append 2": the kill comes after that step, inside of its
transaction. "append" stores a block of packed pages, "insert" makes a packed page a row; empty: no
kill.
"""

import os
import signal
from functools import partial

from crawld.cli.main import main
from crawld.daemon import start
from crawld.store.frontier import packed, packed_block
from crawld.store.frontier.packed import Packing

_steps = {"append": packed_block.append, "insert": packed.insert}
_step, _, _number = os.environ.get("KILL_AT", "").partition(" ")
_left = [int(_number or "0")]


def _run_and_die(step, *arguments):
    result = _steps[step](*arguments)
    if step == _step:
        _left[0] -= 1
        if not _left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
    return result


packed_block.append = partial(_run_and_die, "append")
packed.insert = partial(_run_and_die, "insert")
start.CrawlSettings = partial(start.CrawlSettings, packing=Packing(file_pages=10))


if __name__ == "__main__":
    main()
