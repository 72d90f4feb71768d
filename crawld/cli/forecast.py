"""`crawlctl forecast`: expected freshness per request budget, and the budget for a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType

from crawld.cli import tables
from crawld.cli.output import clean
from crawld.cli.session import Session
from crawld.core.display import count_text, delay_text, duration_text, plural

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.forecast import Forecast, ForecastPoint, ForecastTarget


def forecast(
    session: Session,
    what: Annotated[
        str | None, typer.Argument(metavar="SITE|HOST", help="Default: all.", show_default=False)
    ] = None,
    *,
    target: Annotated[
        float | None,
        typer.Option(help="Show the budget for this freshness, e.g. 0.95.", show_default=False),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plot the curve as SVG.", show_default=False)
    ] = None,
) -> None:
    """Show expected freshness and age per request budget, with and without hints."""
    response = session.client.get("/forecast", what=what, target=target)
    value = session.show(response, forecast_text)
    if svg is not None:
        _draw(value, svg)


def forecast_text(value: Forecast) -> RenderableType:
    """Return the forecast as sentences and a table."""
    hints = value.hints
    kind = "measured" if hints.learnt else "assumed"
    known = f"{count_text(value.exact)} of {count_text(value.sampled)} sampled pages"
    lines = [
        f"{plural(value.pages, 'page')} on {plural(value.hosts, 'host')}; {known} have an exact"
        " history, the others a modeled change rate.",
        *_assumption_lines(value),
        f"Hints ({kind}): {duration_text(hints.lag_s)} late, {hints.missed_share:.0%} of changes"
        f" missed, {1.0 - hints.trust:.0%} of hints false.",
        _sentence(value.now),
        *_present_lines(value),
    ]
    if value.target is not None:
        lines.append(_target_sentence(value.target))
    headings = (
        *("budget", "delay", "requests/day", "fresh", "age of stale"),
        *("fresh, hints", "age of stale, hints"),
    )
    rows = [
        (
            f"{point.budget:g} ×",
            _delay_text(point.delay_s),
            count_text(round(point.requests_per_day)),
            _share_text(point.freshness, 1),
            _age_text(point.stale_age_s),
            _share_text(point.freshness_hinted, 1),
            _age_text(point.stale_age_hinted_s),
        )
        for point in value.curve
    ]
    return Group(*(clean(line) for line in lines), tables.table(headings, rows))


def _delay_text(delay_s: float | None) -> str:
    return delay_text(delay_s)


def _sentence(now: ForecastPoint) -> str:
    at = f"At one request per {delay_text(now.delay_s)}" if now.delay_s else "At the current delays"
    plain, hinted = _share_text(now.freshness), _share_text(now.freshness_hinted)
    return f"{at}, in the long run: {plain} fresh, {hinted} with hints."


def _assumption_lines(value: Forecast) -> list[str]:
    """Return what the forecast assumes, as sentences."""
    given = value.assumptions
    source = "by their histories and models"
    if given.changes_per_day > given.history_changes_per_day:
        source = (
            f"as sources report at present; {_count_text(given.history_changes_per_day)} by their"
            " histories and models"
        )
    lines = [f"Assumed: {_count_text(given.changes_per_day)} changes a day, {source}."]
    if given.hints:
        lines.append(f"Hints are on; polls take up to {given.poll_share:.0%} of the requests.")
    else:
        lines.append('No source reports changes: "with hints" is what hints would add.')
    if given.hosts_limited:
        lines.append(
            f"{plural(given.hosts_limited, 'host')} limited by max_requests_per_s or"
            " max_bytes_per_s: each gets its part of that rate."
        )
    if given.hosts_backing_off:
        lines.append(
            f"{plural(given.hosts_backing_off, 'host')} in back-off now: the plain delays are"
            " assumed."
        )
    return lines


def _present_lines(value: Forecast) -> list[str]:
    """Return how the copies are now, since the forecast is a mean over a long time."""
    now = value.present
    if now is None:
        return []
    text = f"At present: {_share_text(now.freshness)} fresh ({now.low:.0%} to {now.high:.0%})"
    if now.known_stale >= 0.5:
        copies = "1 copy is" if round(now.known_stale) == 1 else f"{now.known_stale:.0f} copies are"
        text += f"; {copies} known to be stale, which takes {duration_text(now.catch_up_s)}"
    return [f"{text}."]


def _count_text(changes_per_day: float) -> str:
    if changes_per_day < 9.5:
        return f"{changes_per_day:.2g}"
    return count_text(round(changes_per_day))


def _share_text(share: float, digits: int = 0) -> str:
    """Return a share in per cent; what changes is never entirely fresh."""
    most = 1.0 - 0.5 * 10.0 ** -(digits + 2)
    if most <= share < 1.0:
        return f"over {1.0 - 10.0 ** -(digits + 2):.{digits}%}"
    return f"{share:.{digits}%}"


def _age_text(age_s: float | None) -> str:
    return "" if age_s is None else "under 1 s" if age_s < 1.0 else duration_text(age_s)


def _target_sentence(target: ForecastTarget) -> str:
    def needs(budget: float | None, delay_s: float | None) -> str:
        if budget is None:
            return "out of reach"
        every = "" if delay_s is None else f", one request per {delay_text(delay_s)}"
        return f"{budget:.3g} times the current budget{every}"

    plain = needs(target.budget, target.delay_s)
    hinted = needs(target.budget_hinted, target.delay_hinted_s)
    return f"{target.freshness:.0%} fresh: {plain}; with hints: {hinted}."


def _draw(value: Forecast, path: Path) -> None:
    from crawld.lab.plot import plot_freshness

    rows: list[dict[str, object]] = []
    for point in value.curve:
        shared = {"requests": point.requests_per_day / value.pages}
        rows.append({**shared, "policy": "without hints", "freshness": point.freshness})
        rows.append({**shared, "policy": "with hints", "freshness": point.freshness_hinted})
    plot_freshness(
        rows,
        path,
        x="requests",
        x_label="requests per page and day",
        title=f"{value.what or 'all sites'}: {value.pages:,} pages",
    )


COMMANDS = (forecast,)
