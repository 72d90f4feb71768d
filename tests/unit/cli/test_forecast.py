"""What `crawlctl forecast` prints."""

from crawld.cli.forecast import _draw, forecast_text
from crawld.daemon.api.schemas.forecast import (
    Forecast,
    ForecastHints,
    ForecastPoint,
    ForecastTarget,
)
from tests.unit.cli.conftest import shown


def point(budget, freshness, hinted):
    return ForecastPoint(
        budget=budget,
        delay_s=15.0 / budget,
        requests_per_day=5760 * budget,
        freshness=freshness,
        age_s=86_400.0,
        freshness_hinted=hinted,
        age_hinted_s=3_600.0,
    )


def forecast(target=None, *, learnt=True):
    return Forecast(
        what="s",
        hosts=1,
        pages=12_000,
        sampled=800,
        exact=700,
        now=point(1.0, 0.71, 0.93),
        curve=[point(0.5, 0.6, 0.8), point(1.0, 0.71, 0.93), point(1.5, 0.8, 0.97)],
        target=target,
        hints=ForecastHints(learnt=learnt, lag_s=60.0, missed_share=0.2, trust=0.9),
    )


def test_the_current_freshness_and_the_curve():
    text = shown(forecast_text(forecast()))
    assert "At one request per 15 s: 71% fresh, 93% with hints." in text
    assert "20% of changes missed, 10% of hints false" in text
    assert "measured" in text
    assert "1.5 ×" in text
    assert "10 s" in text


def test_the_budget_of_a_target():
    target = ForecastTarget(
        freshness=0.95, budget=4.0, delay_s=3.75, budget_hinted=None, delay_hinted_s=None
    )
    text = shown(forecast_text(forecast(target, learnt=False)))
    assert "95% fresh: 4 times the current budget, one request per 3.75 s" in text
    assert "with hints: out of reach" in text
    assert "assumed" in text


def test_the_plot_has_both_curves(tmp_path):
    _draw(forecast(), tmp_path / "f.svg")
    drawn = (tmp_path / "f.svg").read_text()
    assert "without hints" in drawn
    assert "with hints" in drawn
