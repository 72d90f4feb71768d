"""Parts of crawld itself that need no daemon, registered as plug-ins under plain names."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Final

from crawld.core.content.difference import difference
from crawld.core.revisit.registry import FACTORIES
from crawld.plugins import API, Difference, PolicyFactory, hookimpl

DEFAULT_DIFFERENCE: Final = "rsync"


@hookimpl
def _differences() -> Mapping[str, Difference]:
    """Return the weighted rsync difference."""
    return {DEFAULT_DIFFERENCE: difference}


@hookimpl
def _policies() -> Mapping[str, PolicyFactory]:
    """Return INDEX and the other policies."""
    return dict(FACTORIES)


BUILT_IN: Final[Mapping[str, object]] = {
    "content": SimpleNamespace(CRAWLD_API=API, differences=_differences),
    "revisit": SimpleNamespace(CRAWLD_API=API, policies=_policies),
}
"""Plug-ins by name; what they supply has no prefix."""
