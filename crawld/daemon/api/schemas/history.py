"""Responses of the control socket about the history of a page."""

from __future__ import annotations

from pydantic import BaseModel

from crawld.core.content.words import Op
from crawld.daemon.api.schemas.status import VersionStatus


class History(BaseModel):
    """The stored copies of a page, newest first."""

    url: str
    title: str | None
    change_count: int
    versions: list[VersionStatus]


class VersionDetail(VersionStatus):
    """One stored copy in full, without its body."""

    url: str
    superseded_at: float | None
    http_version: str
    reason: str | None
    charset: str | None
    digest: str
    headers: list[tuple[str, str]]


class DiffPiece(BaseModel):
    """A run of words that were kept, added or removed."""

    op: Op
    text: str


class DiffHunk(BaseModel):
    """A run of blocks that differ; blocks are numbered from 0."""

    old_block: int
    new_block: int
    pieces: list[DiffPiece]


class Diff(BaseModel):
    """The changes from one copy to another; `difference` is a share from 0 to 1.

    Blocks that change by themselves are skipped, except in a raw diff; `noisy_blocks` counts the
    skipped blocks of the new copy that differ.
    """

    url: str
    old: VersionStatus
    new: VersionStatus
    difference: float
    raw: bool = False
    noisy_blocks: int = 0
    hunks: list[DiffHunk]
