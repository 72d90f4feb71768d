"""`crawld` with a parser that some pages freeze or kill: `python -m tests.peer.poisoned_crawld`.

A page names what it does to the process:

    poison-freeze   C code holds the lock of the interpreter for ever (a regular expression)
    poison-crash    C code reads address 0
    poison-long     Python code parses for ever

`POISON_LOG` names a file that gets a line for each page that is parsed.
"""

import ctypes
import os
import re

from crawld.cli.main import main
from crawld.core.content import html
from crawld.daemon.jobs.replicas import copies

_parse = html.parse


def _poisoned_parse(markup, **options):
    text = markup if isinstance(markup, str) else markup.decode("utf-8", "replace")
    with open(os.environ["POISON_LOG"], "a", encoding="utf-8") as log:
        log.write(text.split("<", 1)[0].strip() + "\n")
    if "poison-freeze" in text:
        re.match("(a|a)*$", 100 * "a" + "b")
    elif "poison-crash" in text:
        ctypes.string_at(0)
    while "poison-long" in text:
        pass
    return _parse(markup, **options)


html.parse = copies.parse_html = _poisoned_parse


if __name__ == "__main__":
    main()
