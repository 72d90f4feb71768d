"""The catalogue of named faults fits the source; its runner tells whether a fault is found."""

import json
from pathlib import Path

import pytest

from tests.mutants import sample
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant, copy_source
from tests.mutants.score import lines, scores

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_named_fault_has_its_place_and_its_tests(mutant):
    assert (ROOT / mutant.module).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.new != mutant.old
    assert all((ROOT / path).exists() for path in mutant.tests)


def test_the_runner_tells_whether_the_tests_find_a_fault(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # these tests need no plug-in: 0.5 s
    source = tmp_path / "root"
    (source / "crawld").mkdir(parents=True)
    (source / "tests").mkdir()
    (source / "crawld" / "__init__.py").touch()
    (source / "crawld" / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    test = "from crawld.sums import add\n\n\ndef test_add():\n    assert add({}, 2) == 4\n"
    (source / "tests" / "test_good.py").write_text(test.format(2))
    (source / "tests" / "test_weak.py").write_text(test.format("0 * 2 + 2"))

    def found(new, tests):
        copy = tmp_path / f"copy{len(list(tmp_path.iterdir()))}"
        copy_source(source, copy)
        mutant = Mutant("a product for a sum", "crawld/sums.py", "a + b", new, tests)
        mutant.apply(copy)
        return mutant.is_found(copy)

    assert found("a - b", ("tests/test_good.py",))
    assert not found("a * b", ("tests/test_weak.py",))
    with pytest.raises(ValueError, match="did not run"):
        found("a - b", ("tests/none.py",))
    with pytest.raises(ValueError, match="no single place"):
        Mutant("none", "crawld/sums.py", "c", "d", ()).apply(source)


def test_the_score_is_the_share_of_found_faults_that_were_tried(tmp_path):
    folder = tmp_path / "crawld" / "core"
    folder.mkdir(parents=True)
    codes = {"a": 1, "b": 1, "c": 36, "d": 0, "e": 33, "f": None}
    (folder / "price.py.meta").write_text(json.dumps({"exit_code_by_key": codes}))
    (folder / "heap.py.meta").write_text(json.dumps({"exit_code_by_key": {"g": None}}))
    assert list(lines(scores(tmp_path))) == ["crawld.core.price\t3 found, 2 missed\t60%"]


def test_a_sample_is_drawn_from_all_faults_and_counts_those_that_no_short_test_reaches(tmp_path):
    folder = tmp_path / "crawld" / "core" / "change"
    folder.mkdir(parents=True)
    codes = {f"crawld.core.change.rate.x_{name}__mutmut_{n}": 1 for name in "ab" for n in range(9)}
    survivor = "crawld.core.change.rate.x_a__mutmut_0"
    (folder / "rate.py.meta").write_text(
        json.dumps({"exit_code_by_key": codes | {survivor: 0, "crawld.lab.plot.x_c__mutmut_1": 0}})
    )
    stats = tmp_path / "stats.json"
    reaching = {"crawld.core.change.rate.x_a": ["short", "long"], "crawld.lab.plot.x_c": ["long"]}
    reaching["crawld.core.change.rate.x_b"] = ["short"]
    seconds = {"short": 0.1, "long": 9.0}
    stats.write_text(
        json.dumps({"tests_by_mangled_function_name": reaching, "duration_by_test": seconds})
    )
    sample.keep_short_tests(stats, 2.0)
    faults = sample.all_faults(tmp_path)
    chosen = sample.draw(faults, 100, 1)
    assert (len(chosen), chosen) == (19, sorted(faults))
    assert sample.draw(faults, 5, 1) == sample.draw(faults, 5, 1) != sample.draw(faults, 5, 2)
    reached = sample.reached_functions(stats)
    tried = {name for name in chosen if sample.function_of(name) in reached}
    assert sample.lines(chosen, faults, tried) == [
        f"survived\t{survivor}",
        "no tests\tcrawld.lab.plot.x_c__mutmut_1",
        "crawld.core.change\t17 found, 1 missed",
        "crawld.lab\t0 found, 1 missed",
        "17 of 19 found: 89% ± 14%",
    ]
