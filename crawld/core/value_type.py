"""A decorator for immutable records that are made often.

`dataclass(frozen=True)` forbids assignments when they happen, and pays for it whenever a record is
made: each field is set by a call, which takes twice the time. The type checker finds the same
assignments before the program runs, and `test_value_type.py` tests that it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def value_type(cls: type[T], /) -> type[T]: ...
@overload
def value_type(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_type(
    cls: type[T] | None = None, /, *, kw_only: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a record of its fields: immutable to the type checker, compared by its values.

    Like `dataclass(frozen=True, slots=True)` otherwise, `replace` and `fields` included.

    Args:
        kw_only: whether all fields are given by name.
    """
    make = dataclass(slots=True, unsafe_hash=True, kw_only=kw_only)
    return make if cls is None else make(cls)
