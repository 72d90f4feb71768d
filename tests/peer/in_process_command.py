"""Run a command line in the test's own process."""

from dataclasses import dataclass

import pytest
import structlog

from crawld.cli import crawlctl, main


@dataclass
class CommandResult:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(capsys):
    """Return a function that runs a command line: `command("crawlctl", "status")`."""

    def run(program, *arguments):
        app = {"crawld": main.app, "crawlctl": crawlctl.app}[program]
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([str(each) for each in arguments], prog_name=program)
        output = capsys.readouterr()
        return CommandResult(ended.value.code or 0, output.out, output.err)

    yield run
    structlog.reset_defaults()
