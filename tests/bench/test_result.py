import json

import pytest

from crawld.bench.result import (
    as_json,
    as_text,
    build_result,
    less_is_better,
    machine,
    medians,
    ratios,
)


@pytest.mark.parametrize(
    ("metric", "less"),
    [
        ("pages_per_cpu_s", False),
        ("pages_per_s", False),
        ("revalidations_per_cpu_s", False),
        ("peak_rss_mb", True),
        ("slot_jitter_p99_ms", True),
        ("start_1m_s", True),
        ("jitter_cpu_share", True),
        ("model_update_us", True),
        ("merge_pick_bulk_ns", True),
        ("kkt_residual", True),
        ("auc_pnu_standard", False),
        ("cycle_s_100m", True),
        ("bytes_per_url_10m", True),
        ("pages_per_s_1m", False),
        ("revisit_cpu_ms_10k", True),
        ("start_cpu_s_500", True),
    ],
)
def test_the_unit_defines_which_direction_is_better(metric, less):
    assert less_is_better(metric) is less


def test_medians_use_only_runs_that_measured_the_metric():
    runs = [{"a_s": 3.0, "b_s": 1.0}, {"a_s": 1.0}, {"a_s": 2.0, "b_s": 2.0}]
    assert medians(runs) == {"a_s": 2.0, "b_s": 1.5}


def test_a_ratio_above_one_means_crawld_is_better():
    ours = {"pages_per_s": 600.0, "peak_rss_mb": 100.0, "start_1m_s": 2.0}
    theirs = {"pages_per_s": 200.0, "peak_rss_mb": 150.0, "other_s": 1.0}
    found = ratios(ours, {"peer": theirs})
    assert found == {"peer.pages_per_s": 3.0, "peer.peak_rss_mb": 1.5}


def test_a_zero_divisor_has_no_ratio():
    assert ratios({"wait_s": 0.0}, {"peer": {"wait_s": 1.0}}) == {}


def test_a_result_has_the_documented_form():
    value = build_result(
        "fetch",
        [{"pages_per_s": 600.04}, {"pages_per_s": 610.0}, {"pages_per_s": 590.0}],
        {"scrapy": [{"pages_per_s": 150.0}], "absent": []},
    )
    assert list(value) == ["name", "ours", "baselines", "ratios", "machine", "runs"]
    assert value["ours"] == {"pages_per_s": 600.0}
    assert value["baselines"] == {"scrapy": {"pages_per_s": 150.0}}
    assert value["ratios"] == {"scrapy.pages_per_s": 4.0}
    assert value["runs"] == 3
    assert json.loads(as_json(value)) == value


def test_the_table_shows_each_metric_and_ratio():
    value = build_result("fetch", [{"pages_per_s": 600.0}], {"scrapy": [{"pages_per_s": 150.0}]})
    title, head, line = as_text(value).splitlines()
    assert title == "fetch, medians of 1"
    assert head.split() == ["metric", "ours", "scrapy"]
    assert line.split() == ["pages_per_s", "600", "150", "(x", "4)"]


def test_the_machine_is_described_by_its_capacity():
    found = machine()
    assert found["cores"] >= 1
    assert found["memory_mb"] > 0
    assert set(found) == {"cores", "memory_mb", "processor", "kernel", "python"}
