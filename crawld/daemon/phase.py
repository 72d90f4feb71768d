"""The phases of a daemon's life."""

from typing import Literal

Phase = Literal["starting", "running", "draining", "stopping"]
