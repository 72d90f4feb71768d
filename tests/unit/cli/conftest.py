"""Commands run here."""

from tests.peer.commands import command

__all__ = ["command"]
