"""Requests and responses of the control socket about replicas."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from crawld.core.replica.verdict import VerdictLevel
from crawld.daemon.api.schemas.form import Form
from crawld.daemon.api.schemas.status import Done

MAX_NAME = 300
"""Longest host name or pattern."""


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
    similar: int = Field(description="Of the others, texts that resemble, such as by their dates.")
    features: dict[str, float]
    word: Literal["confirmed", "rejected"] | None = Field(
        description="The decision of the operator."
    )
    judged_at: float


class ReplicaStatus(BaseModel):
    """A host that is a copy of another."""

    host: str
    canonical_host: str
    status: Literal["pruned", "partly", "held", "withdrawn"]
    waits_for: Literal["operator", "turn", "config"] | None = Field(
        description="What a held replica waits for: the operator; its turn, since one search "
        "prunes only so many hosts (storm_share); or the config, which forbids pruning."
    )
    reason: str
    since: float
    pages: int = Field(description="Pages with a copy or suspended.")
    suspended: int = Field(description="Suspended pages; the others are visited.")
    twins: int = Field(description="Pages that the canonical host has too.")
    agreeing: int = Field(description="Of these, pages with the same text when last compared ...")
    differing: int = Field(description="... and pages with another text, which are visited.")
    sampled: int
    agreed: int
    lag_s: float | None
    stands_in: bool = Field(
        description="Whether it may answer for the host it copies (use_replicas)."
    )
    look_at: float


class Replicas(BaseModel):
    """Replicas and judged pairs; questions to the operator first, those about most pages first.

    Both lists come in parts of the same size.
    """

    replicas: list[ReplicaStatus]
    replicas_in_all: int = Field(description="Replicas in all parts.")
    questions: int = Field(description="Of these, those that ask for an answer ...")
    waiting: int = Field(description="... and those that wait for their turn.")
    pairs: list[PairStatus] = Field(
        description="Pairs of a host that waits and the one that it may copy, and those that the "
        "operator has decided; with all=true or a host, every pair; at most 2,000 in all parts."
    )
    pairs_in_all: int = Field(description="Pairs in all parts.")
    pairs_left_out: int = Field(description="Judged pairs that are in no part.")
    turn_hosts: int = Field(description="Hosts that one search prunes at most (storm_share).")
    every_s: float = Field(description="Time between two searches.")


class ReplicaForm(Form):
    """A pair, a group, or the replicas whose names match a pattern; exactly one of them."""

    host: str | None = Field(None, max_length=MAX_NAME, description="One replica.")
    other: str | None = Field(
        None, max_length=MAX_NAME, description="The other host, if `host` is in several pairs."
    )
    group: str | None = Field(
        None, max_length=MAX_NAME, description="Canonical host: all of its replicas."
    )
    match: str | None = Field(
        None, max_length=MAX_NAME, description="All replicas whose name matches, e.g. *.example.org"
    )
    dry_run: bool = Field(False, description="Change nothing; tell what would happen.")


class PreferForm(Form):
    """A host to keep among its replicas."""

    host: str


class ReplicaProspect(BaseModel):
    """What a decision means for the pages of a host."""

    host: str
    canonical_host: str
    status: Literal["pruned", "partly", "held", "withdrawn"] | None = Field(
        description="The present status; None: it is no replica so far."
    )
    resting: int = Field(description="Pages that rest now.")
    would_rest: int = Field(description="Pages whose text is that of the canonical host.")
    differing: int = Field(description="Pages that differ; they are visited as before.")
    repeated: int = Field(
        description="Pages whose text stands on many paths, as a login wall does; visited."
    )
    only_here: int = Field(description="Pages of which the canonical host has no copy; visited.")
    unvisited: int = Field(description="Pages that have no copy yet.")
    resting_examples: list[str]
    differing_examples: list[str]


class ReplicaDecision(Done):
    """The result of a decision, or with dry_run what it would be."""

    dry_run: bool
    pairs: list[tuple[str, str]] = Field(description="Pairs that it decides.")
    hosts: list[ReplicaProspect] = Field(description="With dry_run: the hosts it is about.")
    unexamined: int = Field(description="Hosts beyond the limit of one dry run.")
