"""What the control socket says of replicas."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from crawld.core.replica.verdict import VerdictLevel
from crawld.daemon.api.schemas.status import Form


class PairStatus(BaseModel):
    """Two hosts that may be one, and why."""

    hosts: tuple[str, str]
    level: VerdictLevel
    probability: float | None
    reasons: list[str] = Field(description="Evidence in words, the weightiest first.")
    pages: tuple[int, int] = Field(description="Pages fetched of each.")
    common: int
    compared: int
    equal: int
    features: dict[str, float]
    word: Literal["confirmed", "rejected"] | None = Field(description="The operator's.")
    judged_at: float


class ReplicaStatus(BaseModel):
    """A host that is a copy of another."""

    host: str
    canonical_host: str
    status: Literal["pruned", "held", "withdrawn"]
    reason: str
    since: float
    suspended: int = Field(description="Pages that rest; the others are on this host alone.")
    sampled: int
    agreed: int
    lag_s: float | None
    stands_in: bool = Field(
        description="Whether it may be asked for pages of the host it copies (use_replicas)."
    )
    look_at: float


class Replicas(BaseModel):
    """Everything about replicas."""

    replicas: list[ReplicaStatus]
    pairs: list[PairStatus]


class ReplicaForm(Form):
    """A host, and another where it stands in several pairs."""

    host: str
    other: str | None = None
