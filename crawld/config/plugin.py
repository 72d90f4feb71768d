"""The config model of a `[[plugin]]` block.

The rules of `crawld/config/model.py` apply here too.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from crawld.config.key import MIB, ConfigTable, key
from crawld.config.values import Count, PositiveSeconds, SiteName, is_part_name

MAX_PLUGINS = 32
"""Each is asked about every page."""

RESERVED_NAMES = frozenset({"crawld"})


def is_plugin_name(text: str) -> bool:
    """Whether a text can be the name of a plug-in: it is the name of its Python module, too."""
    return is_part_name(text) and text.isidentifier() and text not in RESERVED_NAMES


def _plugin_name(text: str) -> str:
    if not is_plugin_name(text):
        raise ValueError("must be up to 40 small letters, digits and underscores, a letter first")
    return text


PluginName = Annotated[str, AfterValidator(_plugin_name)]


class PluginConfig(ConfigTable):
    """One plug-in that is used; plug-ins are asked in the order of their blocks."""

    name: PluginName = Field(
        description="Name of the plug-in: of its file in plugins_dir without .py, or of its entry "
        "point."
    )
    sites: tuple[SiteName, ...] = key((), 'Only these sites: ["docs"]; empty: all.', restart=True)
    options: dict[str, object] = key(
        {}, "Its own options: { min_length = 200 }; see its documentation.", restart=True
    )
    max_failures: Count = key(
        10,
        "Failures after which it is disabled until the next start; a thousand calls without one "
        "take one back.",
        unit="failures",
        restart=True,
    )
    max_s: PositiveSeconds = key(
        10.0,
        "Longest time of one call off the event loop; a longer one disables it. On the event loop, "
        "where quick hooks run, it is 2 s.",
        restart=True,
    )
    max_memory_bytes: Count = key(
        256 * MIB,
        "Growth of the process by its calls that disables it, about.",
        restart=True,
    )
