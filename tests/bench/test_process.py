import signal
import sys

import pytest

from crawld.bench.process import measure_run, run_child
from crawld.errors import OperatorError

_ALLOCATE = """
import time
held = bytearray(150 * 2**20)
start = time.process_time()
while time.process_time() - start < 0.3:
    pass
"""


def test_cpu_and_memory_are_those_of_the_program(tmp_path):
    usage = measure_run([sys.executable, "-c", _ALLOCATE], tmp_path, limit_s=60)
    assert usage.exit_code == 0
    assert usage.cpu_s >= 0.3
    assert usage.wall_s >= 0.3
    assert usage.peak_rss_mb >= 150


def test_memory_of_the_measuring_process_does_not_count(tmp_path):
    held = bytearray(b"x") * (64 * 2**20)
    usage = measure_run(
        [sys.executable, "-c", "import time; time.sleep(0.2)"], tmp_path, limit_s=60
    )
    assert usage.peak_rss_mb < 60
    assert held


def test_a_failure_shows_the_end_of_the_output(tmp_path):
    with pytest.raises(OperatorError, match="ended with 3") as caught:
        measure_run(
            [sys.executable, "-c", "print('no room'); raise SystemExit(3)"], tmp_path, limit_s=60
        )
    assert "no room" in caught.value.hint


def test_a_program_that_does_not_end_is_killed(tmp_path):
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    with pytest.raises(OperatorError, match=f"ended with -{signal.SIGKILL.value}"):
        measure_run(command, tmp_path, limit_s=0.2)


def test_a_running_program_is_killed_at_the_end_of_the_block(tmp_path):
    with run_child([sys.executable, "-c", "import signal; signal.pause()"], tmp_path) as child:
        assert child.running()
    assert child.ended()


def test_the_cost_of_a_program_that_ended_by_itself_is_kept(tmp_path):
    with run_child([sys.executable, "-c", "raise SystemExit(4)"], tmp_path) as child:
        while child.running():
            pass
        assert child.stop().exit_code == 4


def test_a_measured_program_keeps_its_bytecode(tmp_path, monkeypatch):
    (tmp_path / "module.py").write_text("VALUE = 1\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    measure_run([sys.executable, "-c", "import module"], tmp_path, limit_s=60)
    assert list((tmp_path / "__pycache__").glob("module.*.pyc"))
