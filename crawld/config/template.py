"""Generates the commented template of the config file, with default, unit and meaning of every key.

The template always matches the models; `etc/crawld.toml` is this text.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from crawld.config.key import needs_restart, unit_of
from crawld.config.model import Config
from crawld.config.notify import NotifyConfig
from crawld.config.plugin import PluginConfig
from crawld.config.site import INNER_TABLES, SiteConfig

_HEAD = """\
# Configuration of crawld. Every key is shown with its default; remove the "#" to change it.
# Then run: crawld check-config FILE. Relative paths are relative to the directory of this file.
# Keys marked (restart) need a restart; a reload cannot change them.
"""

_EXAMPLES: dict[type[BaseModel], dict[str, object]] = {
    SiteConfig: {"name": "docs", "seeds": ["https://docs.example.org/"]},
    NotifyConfig: {"name": "team", "webhook": "https://hooks.example.org/crawld"},
    PluginConfig: {"name": "main_text"},
}
_WIDTH = 98


def template() -> str:
    """Return the text of a config file that shows every key."""
    parts = [_HEAD]
    for name, field in Config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            parts.append(_table(f"[{name}]", field.annotation))
    parts.append(_table("#[[site]]", SiteConfig))
    parts.append(_table("#[[notify]]", NotifyConfig))
    parts.append(_table("#[[plugin]]", PluginConfig))
    return "\n".join(parts)


def _table(header: str, model: type[BaseModel]) -> str:
    lines = [*_prose(model.__doc__ or ""), header]
    for name, field in model.model_fields.items():
        lines += [*_prose(_meaning(name, field)), f"#{name} = {_default(model, name, field)}"]
        if name in INNER_TABLES:
            for key, part in INNER_TABLES[name].model_fields.items():
                lines[-1:-1] = _prose(f"{key}: {_meaning(key, part)}")
    return "\n".join(lines) + "\n"


def _prose(text: str) -> Iterator[str]:
    return (f"# {line}" for line in textwrap.wrap(text, _WIDTH, break_on_hyphens=False))


def _meaning(name: str, field: FieldInfo) -> str:
    text = field.description or ""
    if unit := unit_of(name, field):
        text += f" Unit: {unit}."
    return text + (" (restart)" if needs_restart(field) else "")


def _default(model: type[BaseModel], name: str, field: FieldInfo) -> str:
    value = _EXAMPLES.get(model, {}).get(name, field.default)
    return "unset" if value is None else to_toml(value)


def to_toml(value: object) -> str:
    """Return a config value in TOML."""
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(to_toml(each) for each in value)}]"
    # Text, numbers, booleans and the empty table are the same in JSON and TOML.
    return json.dumps(value, ensure_ascii=False)
