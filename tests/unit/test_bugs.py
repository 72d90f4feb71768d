"""The planted bugs of `make bugs` still have their places in the source."""

import shutil
from pathlib import Path

import pytest

from tests.bugs.catalogue import BUGS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.patch.name)
def test_a_bug_can_be_planted(bug, tmp_path):
    module = tmp_path / bug.patch.module
    module.parent.mkdir(parents=True)
    shutil.copy(ROOT / bug.patch.module, module)
    bug.patch.apply(tmp_path)
    compile(module.read_text(), module, "exec")
    assert module.read_text() != (ROOT / bug.patch.module).read_text()
