"""`--version`, and the completion of bash, zsh and fish."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from crawld.cli import crawlctl, main


@pytest.mark.parametrize("program", ["crawld", "crawlctl"])
def test_both_programs_name_their_version(command, program):
    ended = command(program, "--version")
    assert (ended.code, ended.out) == (0, f"{program} {version('crawld')}\n")


@pytest.fixture
def shell(tmp_path):
    """Return a function that runs a script of bash, with both programs on its path."""
    for module in (main, crawlctl):
        name = "crawld" if module is main else "crawlctl"
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module.__name__} "$@"\n')
        program.chmod(0o755)
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "HOME": str(tmp_path), "SHELL": "/bin/bash"}

    def run(script):
        return subprocess.run(
            ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stdout

    return run


COMPLETE = """
COMP_WORDS=({line}) COMP_CWORD=$(({words} - 1))
_{program}_completion {program}
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("crawlctl stat", "status"),
        ("crawlctl pages --state g", "gone"),
        ("crawlctl --so", "--socket"),
        ("crawld check", "check-config"),
        ("crawld export z", "zim"),
    ],
)
def test_bash_completes_after_the_installation(shell, tmp_path, line, found):
    program = line.partition(" ")[0]
    shell(f"{program} --install-completion bash || {program} --install-completion")
    script = COMPLETE.format(line=line, words=len(line.split()), program=program)
    assert shell(f"source ~/.bashrc\n{script}").split() == [found]


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ("_CRAWLCTL_COMPLETE=complete_zsh _TYPER_COMPLETE_ARGS='crawlctl stat'", '"status":'),
        (
            "_CRAWLCTL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args"
            " _TYPER_COMPLETE_ARGS='crawlctl stat'",
            "status\tShow the state",
        ),
        ("_CRAWLCTL_COMPLETE=source_zsh", "compdef _crawlctl_completion crawlctl"),
        ("_CRAWLCTL_COMPLETE=source_fish", "complete --command crawlctl"),
    ],
)
def test_zsh_and_fish_get_what_they_ask_for(shell, variables, found):
    assert found in shell(f"{variables} crawlctl || true")
