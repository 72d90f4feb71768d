"""A result beside an earlier one: only ratios, of the benchmarks that both have."""

import json

import pytest

from crawld.bench.compare import RatioChange, changes, changes_text, read_result
from crawld.bench.run_all import run_all
from crawld.errors import OperatorError


def result(name, **ratios):
    return {"name": name, "ours": {"a_s": 1.0}, "baselines": {}, "ratios": ratios}


def every(*results):
    return {"name": "all", "results": {each["name"]: each for each in results}, "failed": {}}


def test_ratios_of_the_same_benchmark_are_compared():
    found = changes(result("x", a=2.0, b=4.0), result("x", a=3.0, c=1.0))
    assert found == [
        RatioChange("x a", 2.0, 3.0),
        RatioChange("x c", None, 1.0),
        RatioChange("x b", 4.0, None),
    ]
    assert [each.quotient for each in found] == [1.5, None, None]


def test_one_benchmark_and_all_are_compared_with_each_other():
    one, others = result("x", a=1.0), every(result("y", b=1.0), result("x", a=2.0))
    assert changes(one, others) == [RatioChange("x a", 1.0, 2.0)]
    assert changes(others, one) == [RatioChange("x a", 2.0, 1.0)]
    assert changes(result("z"), others) == []


def test_a_ratio_of_nothing_has_no_quotient():
    assert RatioChange("x", 0.0, 1.0).quotient is None
    assert RatioChange("x", 2.0, 0.0).quotient == 0.0


def test_the_table_has_a_line_for_each_ratio():
    lines = changes_text(changes(result("x", a=2.0), result("x", a=3.0, b=1.0))).splitlines()
    assert [line.split() for line in lines] == [
        ["ratio", "before", "now", "change"],
        ["x", "a", "2", "3", "1.5"],
        ["x", "b", "-", "1", "-"],
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 3}'])
def test_another_file_is_refused(tmp_path, text):
    path = tmp_path / "earlier.json"
    with pytest.raises(OperatorError):
        read_result(path)
    path.write_text(text)
    with pytest.raises(OperatorError):
        read_result(path)
    path.write_text(json.dumps(result("x")))
    assert read_result(path)["name"] == "x"


def test_a_benchmark_that_fails_is_named_and_stops_no_other():
    told = []
    value = run_all(["missing", "hints"], quick=True, progress=told.append)
    assert value["failed"] == {"missing": 2}
    assert value["results"]["hints"]["name"] == "hints"
    assert told == ["== missing", "== hints"]
