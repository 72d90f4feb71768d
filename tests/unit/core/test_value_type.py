"""A value type behaves like a frozen dataclass, and the type checker refuses its assignments."""

import subprocess
import sys
from dataclasses import field, fields, replace

import pytest

from crawld.core.value_type import value_type

_MISUSE = """
from dataclasses import replace

from crawld.core.value_type import value_type


@value_type(kw_only=True)
class Point:
    x: int
    y: int = 0


point = Point(x=1)
point.x = 2  # error: read-only
Point(1)  # error: by name
replace(point, x="a")  # error: a type
replace(point, z=1)  # error: unknown
"""


@value_type
class Point:
    x: int
    tags: list[str] = field(default_factory=list)


def test_values_are_compared_and_replaced_like_a_dataclass():
    assert Point(1) == Point(1) != Point(2)
    assert replace(Point(1), x=3) == Point(3)
    assert [each.name for each in fields(Point)] == ["x", "tags"]
    assert repr(Point(1, ["a"])).endswith("Point(x=1, tags=['a'])")
    assert not hasattr(Point(1), "__dict__")


def test_a_value_can_be_a_key():
    @value_type(kw_only=True)
    class Key:
        name: str

    assert {Key(name="a"): 1}[Key(name="a")] == 1
    with pytest.raises(TypeError):
        Key("a")


def test_the_type_checker_refuses_misuse(tmp_path):
    path = tmp_path / "misuse.py"
    path.write_text(_MISUSE, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = _MISUSE.splitlines()
    wrong = [number for number, line in enumerate(lines, start=1) if "# error" in line]
    reported = {int(line.split(":")[1]) for line in found.splitlines() if ": error: " in line}
    assert sorted(reported) == wrong, found
