"""The `command` fixture."""

from tests.peer.in_process_command import command

__all__ = ["command"]
