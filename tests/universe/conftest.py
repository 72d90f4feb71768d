"""What the tests of the universe share."""

from tests.peer.in_process_command import command

__all__ = ["command"]
