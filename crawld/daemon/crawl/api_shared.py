"""Questions to wikis that wait for a poll of the recent changes, which takes one along.

While copies are known to be stale, each turn of the host counts. A poll comes every few seconds,
and its request may name the titles of a question too, the category that is listed, or the page
whose history is read.
"""

from __future__ import annotations

from collections import defaultdict
from enum import IntEnum

import trio

from crawld.sources.mediawiki_api import ApiResponse, Parameters
from crawld.sources.mediawiki_joint import is_whole, join_queries, part_of


class Urgency(IntEnum):
    """How soon a question should be answered, the most urgent first.

    `REPORTED`: about what the wiki reports. `CAUSED`: about what something reported may have
    changed elsewhere; what is reported may be all of it. `DOUBTED`: about what may have changed
    without a report. `UNMISSED`: no reader misses the answer.
    """

    REPORTED = 0
    CAUSED = 1
    DOUBTED = 2
    UNMISSED = 3


class WaitingQuestion:
    """A question that waits to be taken along.

    Attributes:
        response: the response; None while there is none.
        ended: set when it has one, or has to be asked alone.
        rank: those of a lower rank come before it.
        since: when (trio's clock) it was first put; of one rank, the oldest comes first.
    """

    def __init__(self, parameters: Parameters, rank: Urgency, since: float) -> None:
        self.parameters = parameters
        self.rank = rank
        self.since = since
        self.response: ApiResponse | None = None
        self.ended = trio.Event()

    def answer(self, response: ApiResponse, parameters: Parameters) -> ApiResponse:
        """Take its part of a joint response, if that is told apart; return the part of the query.

        Args:
            parameters: of the query that took it along.
        """
        if is_whole(response, parameters, self.parameters):
            self.response = part_of(response, self.parameters)
        return part_of(response, parameters)


class WaitingQuestions:
    """The questions that wait, by the URL of the API."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[WaitingQuestion]] = defaultdict(list)

    def put(self, url: str, question: WaitingQuestion) -> None:
        """Let a question wait, in its place."""
        waiting = self._waiting[url]
        waiting.append(question)
        waiting.sort(key=lambda each: (each.rank, each.since))

    def withdraw(self, url: str, question: WaitingQuestion) -> bool:
        """Let a question wait no longer; return whether it did: it may have been taken along."""
        waits = question in self._waiting[url]
        if waits:
            self._waiting[url].remove(question)
        return waits

    def join(self, url: str, parameters: Parameters) -> tuple[Parameters, WaitingQuestion | None]:
        """Return a query joined with the first question that may be asked with it."""
        for question in self._waiting[url]:
            joined = join_queries(parameters, question.parameters)
            if joined is not None:
                self._waiting[url].remove(question)
                return joined, question
        return parameters, None
