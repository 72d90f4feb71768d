"""Questions to wikis that wait for a poll of the recent changes, which takes one along.

While edited pages wait, each turn of the host counts. A poll comes every few seconds, and its
request may name the titles of a question too.
"""

from __future__ import annotations

from collections import defaultdict

import trio

from crawld.sources.mediawiki_api import ApiResponse, Parameters
from crawld.sources.mediawiki_joint import join_queries, split_response


class WaitingQuestion:
    """A question that waits to be taken along.

    Attributes:
        response: the response; None while there is none.
        ended: set when it has one, or has to be asked alone.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.response: ApiResponse | None = None
        self.ended = trio.Event()

    def answer(self, response: ApiResponse, parameters: Parameters) -> ApiResponse:
        """Take its part of a joint response, if that is complete; return the part of the query.

        Args:
            parameters: of the query that took it along.
        """
        own, is_complete = split_response(response, parameters)
        if is_complete:
            self.response = ApiResponse(response.query, served_at=response.served_at)
        return own


class WaitingQuestions:
    """The questions that wait, by the URL of the API."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[WaitingQuestion]] = defaultdict(list)

    def add(self, url: str, parameters: Parameters) -> WaitingQuestion:
        """Let a question wait."""
        question = WaitingQuestion(parameters)
        self._waiting[url].append(question)
        return question

    def remove(self, url: str, question: WaitingQuestion) -> None:
        """Let it wait no longer."""
        if question in self._waiting[url]:
            self._waiting[url].remove(question)

    def join(self, url: str, parameters: Parameters) -> tuple[Parameters, WaitingQuestion | None]:
        """Return a query joined with the first question that may be asked with it."""
        for question in self._waiting[url]:
            joined = join_queries(parameters, question.parameters)
            if joined is not None:
                self._waiting[url].remove(question)
                return joined, question
        return parameters, None
