import pytest

from crawld.bench import run
from crawld.errors import OperatorError


def test_most_benchmarks_have_no_number_of_known_urls():
    with pytest.raises(OperatorError, match="benchmark fetch has no --known"):
        run.run("fetch", quick=True, progress=print, known=5)


def test_an_unknown_benchmark_is_rejected_with_a_list_of_names():
    with pytest.raises(OperatorError, match="no benchmark 'fecth'") as caught:
        run.run("fecth", quick=True, progress=print)
    assert all(name in caught.value.hint for name in run.BENCHMARKS)
