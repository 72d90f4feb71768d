"""The style sheet and the script of the generated pages, and their paths.

A path has the digest of its file as query, so that a browser never combines a page with the script
of another version. The script's own digest is all that the policy of a page allows to run.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Final

TEMPLATES: Final = Path(__file__).parent / "templates"

STYLE: Final = (TEMPLATES / "crawld.css").read_bytes()
SCRIPT: Final = (TEMPLATES / "crawld.js").read_bytes()

STYLE_PATH: Final = "/-/crawld.css"
SCRIPT_PATH: Final = "/-/crawld.js"

SCRIPT_INTEGRITY: Final = f"sha256-{base64.b64encode(hashlib.sha256(SCRIPT).digest()).decode()}"
"""The digest of the script, as in `integrity` and in a Content-Security-Policy."""

MARK: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" aria-hidden="true">'
    '<rect x="2" y="2" width="15" height="15" rx="3" fill="#0b6b53"/>'
    '<rect x="7" y="7" width="15" height="15" rx="3" fill="#63d3b0" stroke="#fff"'
    ' stroke-width="1.5"/></svg>'
)
"""The mark of crawld: a page and its copy."""


def versioned(path: str, content: bytes) -> str:
    """Return the path of a file with its digest."""
    return f"{path}?{hashlib.sha256(content).hexdigest()[:12]}"
