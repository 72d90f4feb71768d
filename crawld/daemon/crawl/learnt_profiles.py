"""What was learnt about the request profiles of a site on one host, and its stored form."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from crawld.core.request_profiles import Answers, HostBudget, SectionChoice, UnwantedRun
from crawld.core.url import target_of

MOST_SECTIONS: Final = 64
"""Sections of a host that are told apart; further ones count as its root."""

ROOT: Final = ""


@dataclass(slots=True)
class LearntProfiles:
    """What was learnt on one host.

    Attributes:
        names: of the profiles, in their order.
        run: its unwanted answers of late; not stored.
        sections: by the first part of the path; `ROOT` for pages without one.
    """

    names: tuple[str, ...]
    budget: HostBudget
    sections: dict[str, SectionChoice] = field(default_factory=dict)
    run: UnwantedRun = field(default_factory=UnwantedRun)

    @property
    def walled(self) -> bool:
        """Whether the host, which showed the wanted form before, has a wall."""
        return self.budget.found and self.run.is_wall(len(self.names))

    def section(self, url: str) -> SectionChoice:
        """Return what was learnt on the section of a page."""
        name = section_of(url)
        if name not in self.sections and len(self.sections) >= MOST_SECTIONS:
            name = ROOT
        return self.sections.setdefault(name, SectionChoice.new(len(self.names)))

    def to_json(self) -> str:
        """Return the stored form, by names, so that profiles may be added and removed."""
        return json.dumps(
            {
                "tokens": round(self.budget.tokens, 3),
                "visits": self.budget.visits,
                "trials": self.budget.trials,
                "found": self.budget.found,
                "sections": {
                    name: {
                        "in_use": None if choice.in_use is None else self.names[choice.in_use],
                        "visits": choice.visits,
                        "answers": {
                            profile: [round(each.wanted, 3), round(each.unwanted, 3)]
                            for profile, each in zip(self.names, choice.answers, strict=True)
                        },
                    }
                    for name, choice in self.sections.items()
                },
            }
        )

    @classmethod
    def from_json(cls, stored: str | None, names: tuple[str, ...]) -> LearntProfiles:
        """Return what is stored, of the profiles that are still there."""
        learnt = cls(names, HostBudget.new(len(names)))
        if stored is None:
            return learnt
        found = json.loads(stored)
        learnt.budget = HostBudget(
            len(names),
            float(found["tokens"]),
            int(found["visits"]),
            int(found["trials"]),
            bool(found.get("found", True)),
        )
        for name, section in found["sections"].items():
            answers = [Answers(*section["answers"].get(each, (0.0, 0.0))) for each in names]
            in_use = names.index(section["in_use"]) if section["in_use"] in names else None
            learnt.sections[name] = SectionChoice(answers, in_use, int(section["visits"]))
        return learnt


def section_of(url: str) -> str:
    """Return the section of a page: the first part of its path, if there is another.

    >>> section_of("https://a.test/wiki/Physics"), section_of("https://a.test/about")
    ('/wiki/', '')
    """
    path = target_of(url).partition("?")[0]
    first, slash, _ = path.removeprefix("/").partition("/")
    return f"/{first}/" if slash else ROOT
