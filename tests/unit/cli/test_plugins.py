"""`crawld plugins`: the skeleton works, its own test passes, and check finds what is wrong."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from crawld.cli.main import app
from crawld.config.plugin import PluginConfig
from crawld.plugin_host.trial import found_at, try_plugin

SITE = '[[site]]\nname = "s"\nseeds = ["http://localhost:1/"]\n'


@pytest.fixture
def crawld():
    def run(*words, code=0):
        result = CliRunner().invoke(app, ["plugins", *map(str, words)])
        assert result.exit_code == code, result.output
        return result.output

    return run


@pytest.fixture
def skeleton(tmp_path, crawld):
    output = crawld("new", "my_plugin", "--dir", tmp_path / "plugins")
    assert 'name = "my_plugin"' in output
    return tmp_path / "plugins" / "my_plugin.py"


def config(tmp_path, more=""):
    path = tmp_path / "crawld.toml"
    path.write_text(
        f'[daemon]\nplugins_dir = "plugins"\n[[plugin]]\nname = "my_plugin"\n{more}\n{SITE}'
    )
    return path


def test_the_skeleton_passes_its_own_test(skeleton):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", skeleton.parent]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # to load all takes 0.5 s
    ended = subprocess.run(command, cwd=skeleton.parent, capture_output=True, text=True, env=alone)
    assert ended.returncode == 0, ended.stdout
    assert "6 passed" in ended.stdout


def test_the_skeleton_is_ok(skeleton, crawld, tmp_path):
    assert "my_plugin: ok" in crawld("check", skeleton)
    found = json.loads(crawld("check", "-c", config(tmp_path), "--json"))
    assert found[0]["problems"] == []
    assert {hook["hook"] for hook in found[0]["hooks"]} == {
        "prepare_request",
        "read_response",
        "weigh_page",
    }


def test_no_file_is_overwritten_and_no_bad_name_taken(skeleton, crawld):
    assert "exists already" in crawld("new", "my_plugin", "--dir", skeleton.parent, code=2)
    for name in ("My-Plugin", "test_it", "../x"):
        assert "cannot be the name" in crawld("new", name, "--dir", skeleton.parent, code=2)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def weigh_page(url): return -1.0", "weigh_page: returned -1.0"),
        ("def read_response(reading): return 3", "read_response: returned int, not a Verdict"),
        ("def admit_page(url): raise KeyError('x')", "admit_page: KeyError: 'x'"),
        ("def weigh_page(url):\n    while True: pass", "weigh_page: did not end within"),
        ("def prepare_request(request): return PageRequest('https://b.test/')", "another origin"),
        ("def policies(): return {'p': dict}", "policies p: AttributeError"),
        ("def estimators(): return {'e': lambda m: -1}", "estimators e: returned -1"),
        ("def weigh_page(urls): return 1", "weigh_page(…) with the argument urls, which it never"),
        ("def weigh_page(urls): return 1", "did you mean url? its arguments are: url, site"),
        ("def policies(x): return {}", "it has no arguments"),
        ("def wiegh_page(url): return 1", "did you mean weigh_page?"),
        (
            "def read_response(reading): return Verdict(digest='text')",
            "digest is str, not bytes: use hashlib.blake2b(data, digest_size=16).digest()",
        ),
        (
            "def read_response(reading): return Verdict(digest=bytes(65))",
            "digest has 65 bytes, not 1 to 64: use hashlib",
        ),
    ],
)
def test_check_finds_what_is_wrong(tmp_path, crawld, code, words):
    path = tmp_path / "bad.py"
    path.write_text(f"from crawld.plugins import *\nCRAWLD_API = 1\n@hookimpl\n{code}\n")
    assert words in crawld("check", path, code=2)


def test_check_fails_a_hook_that_ends_after_the_limit(tmp_path):
    path = tmp_path / "slow.py"
    path.write_text(
        "import time\nfrom crawld.plugins import *\nCRAWLD_API = 1\n"
        "@hookimpl\ndef weigh_page(url): time.sleep(0.02)\n"
    )
    found, block = found_at(path), PluginConfig(name="slow")
    [problem] = try_plugin(found, block, loop_limit_s=0.01).problems
    assert problem.startswith("weigh_page: a call took 0.")
    assert "the limit on the event loop is 0.01 s; the daemon would disable it" in problem


def test_check_config_loads_the_plugins(skeleton, tmp_path):
    def checked(code):
        result = CliRunner().invoke(app, ["check-config", str(config(tmp_path))])
        assert result.exit_code == code, result.output
        return result.output

    assert "my_plugin" in checked(0)
    skeleton.write_text(skeleton.read_text().replace("CRAWLD_API = 1", "CRAWLD_API = 2"))
    assert "version 2 of the plug-in interface" in checked(2)
    skeleton.write_text("raise ValueError('not today')")
    assert "cannot be imported: ValueError: not today" in checked(2)
    skeleton.unlink()
    assert 'there is no plug-in "my_plugin"' in checked(2)


def test_check_advises_where_the_loop_is_held(tmp_path, crawld):
    path = tmp_path / "slow.py"
    path.write_text(
        "import time\nfrom crawld.plugins import *\nCRAWLD_API = 1\n"
        "@hookimpl\ndef weigh_page(url): time.sleep(0.005)\n"
    )
    output = crawld("check", path)
    assert "slow: ok" in output
    assert "holds the event loop" in output


def test_check_refuses_options_and_what_is_missing(skeleton, tmp_path, crawld):
    path = config(tmp_path, "options = { min_word = 3 }")
    assert "known is min_words" in crawld("check", "-c", path, code=2)
    assert "there is no file" in crawld("check", tmp_path / "none.py", code=2)
    assert "hint" not in crawld("check", code=2)
    (tmp_path / "crawld.toml").write_text(
        config(tmp_path).read_text() + 'policy = "my_plugin:none"\n'
    )
    assert 'no policy "my_plugin:none"' in crawld("check", "-c", tmp_path / "crawld.toml", code=2)


def test_list_shows_what_is_there_and_used(skeleton, tmp_path, crawld):
    (skeleton.parent / "other.py").write_text(
        "from crawld.plugins import *\nCRAWLD_API = 1\n"
        "@hookimpl\ndef policies(): return {'p': OrderedPolicy}\n"
    )
    path = config(tmp_path)
    path.write_text(path.read_text() + '[[plugin]]\nname = "other"\n')
    found = json.loads(crawld("list", "-c", path, "--json"))
    assert [(each["name"], each["used"]) for each in found["plugins"]] == [
        ("my_plugin", True),
        ("other", True),
    ]
    assert {"index", "other:p"} <= set(found["parts"]["policies"])
    assert found["parts"]["notifiers"] == ["apprise"]
    assert {"content", "revisit", "mediawiki", "documents", "apprise"} == set(found["built_in"])
    assert "used, number 2" in crawld("list", "-c", path)
    assert "crawld plugins new NAME" in crawld("list")
