"""Describe the change model of a page, and when and why it is visited next."""

from __future__ import annotations

from typing import NamedTuple

from crawld.config.model import Config
from crawld.core.change.classes import PAGE_CLASSES, RateClasses
from crawld.core.change.hawkes import Hawkes, unchanged_probability
from crawld.core.change.model import PageModel
from crawld.core.content.volatile import VolatileRules
from crawld.core.page import PageState
from crawld.core.units import DAY_S
from crawld.core.validators import ValidatorTrust
from crawld.core.why.words import change_words, has_evidence
from crawld.daemon.api.schemas import status
from crawld.daemon.daemon import Daemon
from crawld.store.changes import hint, volatile
from crawld.store.frontier.page import PageRecord
from crawld.store.replica import outlook


class NextVisit(NamedTuple):
    """The earliest time of the next visit, Unix seconds (None: never), and why."""

    at: float | None
    why: str


def next_visit(daemon: Daemon, record: PageRecord) -> NextVisit:
    """Return when a page may be visited next, and why."""
    state, now = daemon.state, daemon.clock.now()
    site, host = state.sites.get(record.site_id), state.hosts.get(record.host)
    if site is None:
        return NextVisit(None, "its site is no longer configured")
    if site.paused or (host is not None and host.paused):
        return NextVisit(None, f"{'its site' if site.paused else 'its host'} is paused")
    if record.state is PageState.EXCLUDED:
        return NextVisit(None, "robots.txt excludes it")
    if record.state is PageState.SUSPENDED:
        own = daemon.database.look_up(outlook.own_verdict, record.page_id)
        if own is not None and own.visit_at is not None:
            return NextVisit(
                max(own.visit_at, now),
                "never visited: pages around it have the text of another host; visited once",
            )
        return NextVisit(None, "it has the text of another host, which is visited: crawlctl why")
    if record.last_visit_at is None:
        return NextVisit(now, f"never visited: waits for its turn at depth {record.depth}")
    if record.retry_at is not None:
        reason = record.last_failure or (record.last_outcome or "")
        return NextVisit(max(record.retry_at, now), f"the last visit ended {reason}: retried then")
    rested_at = record.last_visit_at + state.settings.min_revisit_s
    policy = daemon.config.schedule.policy
    hints = daemon.database.look_up(hint.of_page, record.page_id)
    hinted = f"; {hints[0][0].replace('_', ' ')} hinted at a change" if hints else ""
    if rested_at > now:
        why = f"rests until then; after that the policy {policy} selects{hinted}"
        return NextVisit(rested_at, why)
    return NextVisit(now, f"the policy {policy} selects among the pages of its host{hinted}")


def rate_classes(config: Config) -> RateClasses:
    """Return the classes of change rates in force."""
    days = config.schedule.rate_classes_days
    return RateClasses(tuple(sorted(each * DAY_S for each in set(days)))) if days else PAGE_CLASSES


def model_status(
    record: PageRecord, site: Hawkes, now: float, classes: RateClasses = PAGE_CLASSES
) -> status.ModelStatus | None:
    """Return the change model of a page in words; None if it has none.

    Args:
        site: how changes of its site cause others.
    """
    if record.model is None:
        return None
    try:
        model = PageModel.from_bytes(record.model)
    except ValueError:
        return None
    known = {
        "text": change_words(model),
        "has_evidence": has_evidence(model),
        "unchanged_probability": unchanged_probability(model, site, now),
    }
    return status.ModelStatus.model_validate(model.explain(now, classes) | known)


async def noise_status(daemon: Daemon, record: PageRecord) -> status.NoiseStatus:
    """Return the noise rules of a page and its host."""
    own = await daemon.database.read(volatile.of_page, record.page_id)
    template = daemon.crawl.learning.detector.template(record.host_id)
    return status.NoiseStatus(
        page_rules=_confirmed(own),
        host_rules=_confirmed(template.rules),
        confirmations=template.confirmations,
    )


def _confirmed(stored: bytes) -> int:
    return len(VolatileRules.from_bytes(stored).confirmed().rules)


def validator_status(record: PageRecord) -> status.ValidatorStatus:
    """Return how far the validators of a page's origin are trusted."""
    trust = ValidatorTrust.from_bytes(record.validators)
    return status.ValidatorStatus(
        etag=_verdict(trust.etag.lies, trust.etag.restless),
        last_modified=_verdict(
            trust.last_modified.lies,
            trust.last_modified.restless,
            ahead=trust.ahead > trust.on_time,
        ),
        clock_skew_s=trust.skew_s,
    )


def _verdict(lies: bool, restless: bool, *, ahead: bool = False) -> status.Trust:
    if lies:
        return "lies"
    if ahead:
        return "in_future"
    return "restless" if restless else "trusted"
