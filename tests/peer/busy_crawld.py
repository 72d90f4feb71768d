"""`crawld` with work on threads that never ends: `python -m tests.peer.busy_crawld`.

`BUSY` says which: `rendering` (of any page for a reader) or `analysis` (of a page on a thread). The
file `busy` in the working directory is made once it has begun.
"""

import os
import threading
from pathlib import Path

from crawld.cli.main import main
from crawld.daemon.analyser import Analyser
from crawld.web import mirror


def _run_for_ever(*_, **__):
    Path("busy").touch()
    threading.Event().wait()


if os.environ["BUSY"] == "rendering":
    mirror.rewrite_html = _run_for_ever
else:
    Analyser._marked = _run_for_ever


if __name__ == "__main__":
    main()
