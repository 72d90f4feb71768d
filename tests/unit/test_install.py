"""What `make run` says while pip installs."""

import runpy
from pathlib import Path

STEPS = runpy.run_path(str(Path(__file__).parents[2] / "contrib" / "install.py"))["steps"]


def test_the_steps_of_pip():
    lines = [
        "Obtaining file:///src",
        "Installing build dependencies: started",
        "Installing build dependencies: finished with status 'done'",
        *(f"Collecting package-{k}" for k in range(16)),
        "  Using cached package",
        "Building editable for crawld (pyproject.toml): started",
        "Installing collected packages: a, b, c",
        "Successfully installed a b c",
    ]
    found = list(STEPS(lines))
    assert [text for text, notable in found if notable] == [
        "getting what builds crawld",
        "15 packages found",
        "building crawld",
        "unpacking 3 packages",
    ]
    assert ("16 packages found", False) in found
