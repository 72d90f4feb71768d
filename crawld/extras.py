"""How to install the optional packages of a command."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def install_command(extra: str, package: Path = PACKAGE) -> str:
    """Return the command that installs an extra for this Python.

    From a checkout it names the checkout, since no index may have this version.

    Args:
        package: where crawld is.
    """
    root = package.parent
    name = f"-e {shlex.quote(f'{root}[{extra}]')}"
    if not (root / "pyproject.toml").exists():
        name = shlex.quote(f"crawld[{extra}]")
    return f"{shlex.quote(sys.executable)} -m pip install {name}"
