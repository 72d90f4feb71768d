"""Requests and responses of the control socket about replicas."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from crawld.core.replica.verdict import VerdictLevel
from crawld.daemon.api.schemas.status import Form


class PairStatus(BaseModel):
    """A pair of hosts that may be replicas, and the evidence."""

    hosts: tuple[str, str]
    level: VerdictLevel
    probability: float | None
    reasons: list[str] = Field(description="Evidence in words, the strongest first.")
    pages: tuple[int, int] = Field(description="Pages fetched from each.")
    common: int
    compared: int
    equal: int
    features: dict[str, float]
    word: Literal["confirmed", "rejected"] | None = Field(
        description="The decision of the operator."
    )
    judged_at: float


class ReplicaStatus(BaseModel):
    """A host that is a copy of another."""

    host: str
    canonical_host: str
    status: Literal["pruned", "held", "withdrawn"]
    reason: str
    since: float
    suspended: int = Field(description="Suspended pages; the others exist on this host only.")
    sampled: int
    agreed: int
    lag_s: float | None
    stands_in: bool = Field(
        description="Whether it may answer for the host it copies (use_replicas)."
    )
    look_at: float


class Replicas(BaseModel):
    """All replicas and judged pairs."""

    replicas: list[ReplicaStatus]
    pairs: list[PairStatus]


class ReplicaForm(Form):
    """A host, and the other one if it is in several pairs."""

    host: str
    other: str | None = None
