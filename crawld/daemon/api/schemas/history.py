"""What the control socket says of the past of a page."""

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
    """A page as it was: one stored copy, all there is but the body."""

    url: str
    superseded_at: float | None
    http_version: str
    reason: str | None
    charset: str | None
    digest: str
    headers: list[tuple[str, str]]


class DiffPiece(BaseModel):
    """A run of words with one fate."""

    op: Op
    text: str


class DiffHunk(BaseModel):
    """Blocks in a row that differ; blocks are numbered from 0."""

    old_block: int
    new_block: int
    pieces: list[DiffPiece]


class Diff(BaseModel):
    """What changed from one copy to another; the difference is a share from 0 to 1.

    Blocks that change by themselves do not count, unless the raw difference was asked for;
    `noisy_blocks` are those of the new copy that were passed over although they differ.
    """

    url: str
    old: VersionStatus
    new: VersionStatus
    difference: float
    raw: bool = False
    noisy_blocks: int = 0
    hunks: list[DiffHunk]
