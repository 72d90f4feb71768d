"""What `crawlctl forecast` prints."""

from crawld.cli.forecast import _draw, forecast_text
from crawld.daemon.api.schemas.forecast import (
    Forecast,
    ForecastAssumptions,
    ForecastHints,
    ForecastPoint,
    ForecastPresent,
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


ASSUMED = ForecastAssumptions(
    changes_per_day=1_200.0,
    history_changes_per_day=1_200.0,
    reported_changes_per_day=800.0,
    hints=True,
    poll_share=0.2,
    hosts_backing_off=0,
)


def forecast(target=None, *, learnt=True, **more):
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
        **{"assumptions": ASSUMED, **more},
    )


def test_the_current_freshness_and_the_curve():
    text = shown(forecast_text(forecast()))
    assert "At one request per 15 s, in the long run: 71% fresh, 93% with hints." in text
    assert "Assumed: 1,200 changes a day, by their histories and models." in text
    assert "Hints are on; polls take up to 20% of the requests." in text
    assert "back-off" not in text
    assert "At present" not in text
    assert "20% of changes missed, 10% of hints false" in text
    assert "measured" in text
    assert "1.5 ×" in text
    assert "10 s" in text


def test_other_assumptions_are_said():
    unhinted = ASSUMED.model_copy(
        update={"hints": False, "changes_per_day": 9e4, "hosts_backing_off": 1}
    )
    text = shown(forecast_text(forecast(assumptions=unhinted)))
    assert "90,000 changes a day, as sources report at present; 1,200 by their hist" in text
    assert "No source reports changes" in text
    assert "1 host in back-off" in text


def test_pages_known_to_be_stale_stand_beside_a_rosy_mean():
    rosy = point(1.0, 0.999999, 0.999999)
    rosy = rosy.model_copy(update={"stale_age_s": 0.002, "stale_age_hinted_s": None})
    present = ForecastPresent(freshness=0.6, low=0.55, high=0.65, known_stale=98.0, catch_up_s=98.0)
    text = shown(forecast_text(forecast(present=present).model_copy(update={"now": rosy})))
    assert "over 99% fresh" in text
    assert "100%" not in text
    assert " ms" not in text
    assert "At present: 60% fresh (55% to 65%); 98 copies are known to be stale" in text
    assert "which takes 1 min 38 s" in text


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
