"""A plan as a file: JSON that a failing seed leaves, and that a later run repeats."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from crawld.errors import OperatorError
from crawld.universe.plan import UniversePlan

FORMAT: Final = 1
_PLAN: Final = TypeAdapter(UniversePlan)


def scenario_text(plan: UniversePlan) -> str:
    """Return a plan as JSON on one line."""
    return json.dumps({"format": FORMAT, "plan": asdict(plan)})


def plan_sha256(plan: UniversePlan) -> str:
    """Return a digest of a plan: equal ones describe the same universe."""
    return hashlib.sha256(scenario_text(plan).encode()).hexdigest()


def read_scenario(path: Path) -> UniversePlan:
    """Return the plan of a file.

    Raises:
        OperatorError: it cannot be read, is no scenario, or one of another version.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        found = document["format"]
        if found != FORMAT:
            raise OperatorError(
                f"{path} is a scenario of another version ({found}, this program reads {FORMAT})",
                hint="draw it again by its seed: crawld lab universe --seed N --days D",
            )
        return _PLAN.validate_python(document["plan"])
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, RecursionError, ValidationError) as error:
        raise OperatorError(
            f"{path} is no scenario", hint="one is printed by a failing crawld lab universe"
        ) from error
