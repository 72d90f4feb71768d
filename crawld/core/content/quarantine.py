"""What the analyser of remote bytes is called in stored rows, and the type of bytes it left alone.

A page that froze or killed the process is stored without analysis (`crawld/store/frontier/
quarantine.py`). While that lasts, its copies have the type `UNANALYSED` for everyone who reads
them, whatever its server said: nobody parses, rewrites or searches bytes of an unknown type.
"""

from __future__ import annotations

from typing import Final

ANALYSER_VERSION: Final = 1
"""Version of everything that reads remote bytes: decoding, parsing, comparing, rewriting.

Raise it when a change may make a page harmless that froze or killed an older crawld, also one in a
library that does the work. The next start then releases every page in quarantine.
"""

UNANALYSED: Final = "application/vnd.crawld.unanalysed"
"""The media type of a copy that must not be analysed."""
