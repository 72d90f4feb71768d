"""Routes about URLs that show the same page: rules, and the operator's word on them."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.exceptions import HTTPException

from crawld.daemon.api.parameters import Served
from crawld.daemon.api.schemas.dust import DustForm, DustList, DustRuleStatus
from crawld.daemon.api.schemas.status import Done
from crawld.daemon.daemon import Daemon
from crawld.store.frontier import dust, dust_page
from crawld.store.frontier.dust import DustRuleRow, RuleWord

JOB: Final = "dust"


def add_dust_routes(router: APIRouter) -> None:
    """Add the routes."""

    @router.get("/dust")
    async def rules(daemon: Served, origin: str | None = None) -> DustList:
        """Rules by which URLs show the same page, of one origin or all."""
        rows = await daemon.database.read(dust.list_rules)
        hidden = await daemon.database.read(dust_page.count_hidden)
        shown = [row for row in rows if origin is None or row.origin == origin.rstrip("/")]
        shown.sort(key=lambda row: (not row.applies, row.status != "trial", row.origin))
        names = {row.origin_id: row.origin for row in shown}
        return DustList(
            rules=[_status(row) for row in shown],
            hidden={name: hidden[key] for key, name in names.items() if key in hidden},
        )

    @router.post("/dust/confirm")
    async def confirm(daemon: Served, form: DustForm) -> Done:
        """Apply a rule, whatever its trial says; pages that differ are still visited."""
        return await _decide(daemon, form, "confirmed")

    @router.post("/dust/revoke")
    async def revoke(daemon: Served, form: DustForm) -> Done:
        """Apply a rule no more; the pages that it hides return."""
        return await _decide(daemon, form, "revoked")

    @router.post("/dust/forget")
    async def forget(daemon: Served, form: DustForm) -> Done:
        """Forget what was confirmed or revoked: pages decide again."""
        return await _decide(daemon, form, None)


async def _decide(daemon: Daemon, form: DustForm, word: RuleWord | None) -> Done:
    now = daemon.clock.now()
    row = await daemon.database.write(dust.set_word, form.number, word, now)
    if row is None:
        raise HTTPException(404, f"there is no rule {form.number}; see: crawlctl dust")
    daemon.background.jobs.run_soon(JOB)
    text = row.rule.rewrite.words()
    where = f"{row.origin}/{row.rule.section}"
    said = {"confirmed": "applies", "revoked": "applies no more"}.get(
        word or "", "is decided by pages again"
    )
    return Done(done=f"rule {form.number} ({text}, {where}) {said}; the job {JOB} runs")


def _status(row: DustRuleRow) -> DustRuleStatus:
    rewrite, section = row.rule
    return DustRuleStatus(
        number=row.dust_rule_id,
        origin=row.origin,
        section=section,
        text=rewrite.words(),
        form=rewrite.form.value,
        name=rewrite.name,
        value=rewrite.value,
        status=row.status,
        word=row.word,
        applies=row.applies,
        since=row.since,
        equal=row.equal,
        differing=row.differing,
    )
