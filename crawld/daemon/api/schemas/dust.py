"""Requests and responses of the control socket about URLs that show the same page."""

from __future__ import annotations

from pydantic import BaseModel, Field

from crawld.daemon.api.schemas.form import Form
from crawld.store.frontier.dust import RuleStatus, RuleWord


class DustRuleStatus(BaseModel):
    """A rule by which URLs show the same page, or its trial."""

    number: int
    origin: str
    section: str = Field(description="First segment of the paths for which it holds; empty: rest.")
    text: str = Field(description="What it says, in words.")
    form: str
    name: str
    value: str
    status: RuleStatus
    word: RuleWord | None = Field(
        description="The decision of the operator; it counts before the status."
    )
    applies: bool
    since: float
    equal: int = Field(description="Pairs of pages compared that showed the same ...")
    differing: int = Field(description="... and that did not.")


class DustList(BaseModel):
    """Rules and trials, those that apply first."""

    rules: list[DustRuleStatus]
    hidden: dict[str, int] = Field(description="Pages that are not visited, by origin.")


class DustForm(Form):
    """A rule, by its number."""

    number: int
