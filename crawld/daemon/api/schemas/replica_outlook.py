"""Why a host rests as a replica, as a part of its status."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class ReplicaOutlook(BaseModel):
    """A replica: why it rests, how many of its pages do, and why others do not."""

    canonical_host: str
    status: Literal["pruned", "partly", "held", "withdrawn"]
    waits_for: Literal["operator", "turn", "config"] | None
    reason: str
    since: float
    look_at: float = Field(description="When pages that rest are compared again.")
    resting: int = Field(description="Suspended pages.")
    deferred: int = Field(description="Of these, pages that were never visited.")
    differing: int = Field(description="Visited, since their text is another.")
    repeated: int = Field(description="Visited, since their text stands on many paths.")
    only_here: int = Field(description="Visited, since the canonical host has no copy.")
    undecided: int = Field(description="Visited, not decided yet.")
    elsewhere: int = Field(
        description="Suspended pages whose text is that of another host than the canonical one."
    )
    text: str = Field(description="All of this in sentences.")
