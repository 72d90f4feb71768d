"""Every command of README and of the guides in docs/ works as it is printed."""

from pathlib import Path

import pytest

from tests.peer import require_peer
from tests.peer.guide import GuideReader, commands_of, read_guide

ROOT = Path(__file__).parents[2]
GUIDES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


@pytest.fixture
def reader(cleanup, crawld, simweb):
    """Return a function that reads guides, given local origins of more public ones."""
    web = simweb("--pages", "12")

    def make(hosts):
        local = {
            "https://docs.example.org": web.url("").removesuffix("/"),
            "https://other.example.org": web.url("", host="127.0.0.2").removesuffix("/"),
        }
        made = GuideReader(crawld, local | hosts)
        cleanup.callback(made.end)
        return made

    return make


def test_commands_of_blocks_are_found():
    text = "`x`\n```sh\ncrawld run \\\n -c a.toml # why\nmake run\n```\n```toml\na = 1\n```\n"
    assert list(commands_of(text)) == ["crawld run -c a.toml"]


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.name)
def test_every_command_works(path, reader, request):
    commands = read_guide(path)
    hosts = {}
    require_peer("curl")
    if any("en.wikipedia.org" in command for command in commands):
        wiki = request.getfixturevalue("mediawiki")
        wiki.edit("Physics", "Physics is a science. See [[Main Page]].")
        hosts["https://en.wikipedia.org"] = wiki.origin
    typing = reader(hosts)
    for command in commands:
        typing.type(command)
