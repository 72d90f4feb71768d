"""Loading: what is found, what is refused, and the fix that the refusal names."""

from importlib import metadata

import pytest

from crawld.config.plugin import PluginConfig
from crawld.errors import ConfigError
from crawld.plugin_host.loading import find_plugins, load_plugins

WEIGH = "@hookimpl\ndef weigh_page(url):\n    return 1.0"


def refused(load, code, **more):
    with pytest.raises(ConfigError) as caught:
        load(bad=code, **more)
    return f"{caught.value.message}; {caught.value.hint}"


def test_files_and_packages_of_the_directory_are_found(tmp_path, write):
    write("one", WEIGH)
    write("test_one", "raise SystemExit")
    (tmp_path / "plugins" / "Upper.py").write_text("raise SystemExit")
    package = tmp_path / "plugins" / "two"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import *\n")
    (package / "inner.py").write_text(
        f"from crawld.plugins import hookimpl\nCRAWLD_API = 1\n{WEIGH}\n"
    )
    (tmp_path / "plugins" / "notes.txt").write_text("no plug-in")
    found = find_plugins(tmp_path / "plugins")
    assert list(found) == ["one", "two"]
    configs = (PluginConfig(name="two"), PluginConfig(name="one"))
    host = load_plugins(configs, tmp_path / "plugins", {})
    assert [hook.plugin.name for hook in host.hooks("weigh_page")] == ["two", "one"]


def test_nothing_is_imported_that_no_block_names(load, write):
    write("harmful", "raise SystemExit")
    assert [each.name for each in load(good=WEIGH).plugins] == ["good"]


def test_a_package_is_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "installed_plugin.py").write_text(
        f"from crawld.plugins import hookimpl\nCRAWLD_API = 1\n{WEIGH}\n"
    )
    info = tmp_path / "some_package-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-package\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[crawld.plugins]\nviews = installed_plugin\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert metadata.version("some-package") == "2.0"
    host = load_plugins((PluginConfig(name="views"),), None, {})
    assert host.plugins[0].origin == "some-package 2.0"
    assert host.hooks("weigh_page")[0].call("", "https://a.test/", "s") == 1.0


def test_arguments_may_be_left_out_and_reordered(load):
    host = load(
        some="""
        @hookimpl
        def admit_page(depth, url):
            return (depth, url)
        """
    )
    assert host.hooks("admit_page")[0].call("", "https://a.test/", "s", 3) == (3, "https://a.test/")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("@hookimpl\ndef wiegh_page(url): return 1", "did you mean weigh_page?"),
        ("@hookimpl\ndef weigh_page(uri): return 1", "uri"),
        ("@hookimpl\nasync def weigh_page(url): return 1", "async def -> def"),
        ("@hookimpl(wrapper=True)\ndef weigh_page(url):\n    return (yield)", "is a wrapper"),
        ("def weigh_page(url): return 1", "mark its functions with @hookimpl"),
        (f"{WEIGH}\n@hookimpl\ndef configure(options): raise ValueError('no size')", "no size"),
    ],
)
def test_mistakes_are_refused_with_the_fix(load, code, words):
    assert words in refused(load, code)


def test_options_without_configure_are_refused(load):
    assert "takes no options" in refused(load, WEIGH, blocks={"options": {"a": 1}})


@pytest.mark.parametrize(
    ("api", "fix"), [("2", "update crawld"), ("0", "update the plug-in"), ("'1'", "update")]
)
def test_another_version_is_refused_with_the_fix(load, api, fix):
    head = f"from crawld.plugins import *\nCRAWLD_API = {api}\n"
    assert fix in refused(load, WEIGH, head=head)


def test_a_missing_one_is_named(load, tmp_path):
    (tmp_path / "plugins").mkdir()
    with pytest.raises(ConfigError, match='there is no plug-in "x"') as caught:
        load_plugins((PluginConfig(name="x"),), tmp_path / "plugins", {})
    assert "x.py" in caught.value.hint
    with pytest.raises(ConfigError, match="cannot be read"):
        load_plugins((PluginConfig(name="x"),), tmp_path / "none", {})


@pytest.mark.parametrize("name", ["Upper", "with-dash", "1st", "crawld", "", "x" * 41, "a/b"])
def test_names_are_those_of_modules(name):
    with pytest.raises(ValueError, match="small letters"):
        PluginConfig(name=name)
