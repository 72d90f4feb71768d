"""The files for administrators: the commented config, examples, the manual of its keys."""

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from crawld.config.key import needs_restart, unit_of
from crawld.config.load import load
from crawld.config.model import Config
from crawld.config.notify import NotifyConfig
from crawld.config.plugin import PluginConfig
from crawld.config.site import SiteConfig
from crawld.config.template import template, to_toml

BLOCKS = {
    "sites": (SiteConfig, "site"),
    "notify": (NotifyConfig, "notify"),
    "plugins": (PluginConfig, "plugin"),
}
EXAMPLES = {
    *(("site", "name"), ("site", "seeds"), ("notify", "name"), ("notify", "webhook")),
    ("plugin", "name"),
}

ROOT = Path(__file__).parents[2]
ETC = ROOT / "etc" / "crawld.toml"
MAN = ROOT / "contrib" / "man"


def model_keys():
    """Yield every key of the model as (table, key) with its field."""
    for table, field in Config.model_fields.items():
        is_table = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        model, name = (field.annotation, table) if is_table else BLOCKS[table]
        for key, part in model.model_fields.items():
            yield (name, key), part


def shown_keys():
    """Yield every key of `etc/crawld.toml` as (table, key) with its value and comment."""
    table, prose = "", []
    for line in ETC.read_text().splitlines():
        if header := re.fullmatch(r"#?\[+(\w+)\]+", line):
            table, prose = header[1], []
        elif key := re.fullmatch(r"#(\w+) = (.+)", line):
            yield (table, key[1]), (key[2], " ".join(prose))
            prose = []
        elif line.startswith("# "):
            prose.append(line[2:])


def test_config_file_shows_every_key_and_no_other():
    shown = [key for key, _ in shown_keys()]
    assert len(shown) == len(set(shown))
    assert set(shown) == {key for key, _ in model_keys()}


def test_config_file_shows_defaults_and_units():
    shown = dict(shown_keys())
    for key, field in model_keys():
        value, prose = shown[key]
        if key not in EXAMPLES:
            expected = "unset" if field.default is None else to_toml(field.default)
            assert value == expected, key
        unit = unit_of(key[1], field)
        assert not unit or f"Unit: {unit}." in prose, key
        assert ("(restart)" in prose) == needs_restart(field), key
        assert len(prose) > 10, key


def test_config_file_is_what_init_writes():
    assert ETC.read_text() == template()


def test_config_file_is_valid_with_every_default_uncommented():
    text = re.sub(r"^#(?=\w+ = (?!unset$)|\[\[)", "", ETC.read_text(), flags=re.MULTILINE)
    parsed = tomllib.loads(text)
    site, notify = parsed.pop("site")[0], parsed.pop("notify")[0]
    assert PluginConfig.model_validate(parsed.pop("plugin")[0]) == PluginConfig(name="main_text")
    assert Config.model_validate(parsed) == Config()
    plain = {"name": "docs", "seeds": ["https://docs.example.org/"]}
    assert SiteConfig.model_validate(site) == SiteConfig.model_validate(plain)
    plain = {"name": "team", "webhook": "https://hooks.example.org/crawld"}
    assert NotifyConfig.model_validate(notify) == NotifyConfig.model_validate(plain)


def test_keys_with_a_quantity_carry_their_unit():
    suffixes = {"seconds": "_s", "bytes": "_bytes"}
    for (_, key), field in model_keys():
        unit = unit_of(key, field)
        for word, suffix in suffixes.items():
            assert (unit == word) == (key.endswith(suffix) and not key.endswith("_per_s")), key


@pytest.mark.parametrize("path", sorted((ROOT / "etc" / "examples").glob("*.toml")), ids=str)
def test_examples_are_valid_without_a_warning(path):
    assert load(path).warnings == ()


def test_manual_shows_every_key_with_its_default():
    text = (MAN / "crawld.toml.5").read_text().replace(r"\(dq", '"')
    tables = re.split(r"^\.Ss \[+(\w+)\]+$", text, flags=re.MULTILINE)
    items = {}
    for table, body in zip(tables[1::2], tables[2::2], strict=True):
        pairs = re.findall(r"^\.It Ic (\w+) = (.+)$", body, re.MULTILINE)
        items |= {(table, key): value for key, value in pairs}
    expected = {
        key: "unset" if field.default is None else to_toml(field.default)
        for key, field in model_keys()
        if key[1] != "name"
    }
    names = {(table, "name"): "required" for table in ("site", "notify", "plugin")}
    assert items == {**expected, **names}
