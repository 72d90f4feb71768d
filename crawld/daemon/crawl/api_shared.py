"""Questions to wikis that wait for a poll of the recent changes, which takes them along.

While copies are known to be stale, each turn of the host counts. A poll comes every few seconds,
and its request may name the titles of questions too, the category that is listed, or the page
whose history is read.
"""

from __future__ import annotations

from collections import defaultdict
from enum import IntEnum
from urllib.parse import urlencode

import trio

from crawld.sources.mediawiki_api import MAX_QUERY_LENGTH, ApiResponse, Parameters
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


class JoinedQuery:
    """A query with the questions that it takes along.

    Attributes:
        parameters: of all of them together.
        questions: those that it takes along.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._own = self.parameters = parameters
        self.questions: list[WaitingQuestion] = []

    def take(self, question: WaitingQuestion) -> bool:
        """Take a question along if it may be asked with the others; return whether it is."""
        joined = join_queries(self.parameters, question.parameters)
        if joined is None or (self.questions and len(urlencode(joined)) > MAX_QUERY_LENGTH):
            return False
        self.parameters = joined
        self.questions.append(question)
        return True

    def answer(self, response: ApiResponse) -> ApiResponse:
        """Give each question its part of a response, if they are told apart; return the rest."""
        taken = [each.parameters for each in self.questions]
        if is_whole(response, self._own, *taken):
            for question in self.questions:
                question.response = part_of(response, question.parameters)
        return part_of(response, self._own)

    def end(self) -> None:
        """End the wait of the questions; those without a response have to be asked alone."""
        for question in self.questions:
            question.ended.set()


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

    def join(self, url: str, parameters: Parameters) -> JoinedQuery:
        """Return a query joined with the questions that may be asked with it, the first first."""
        joined = JoinedQuery(parameters)
        self._waiting[url] = [each for each in self._waiting[url] if not joined.take(each)]
        return joined
