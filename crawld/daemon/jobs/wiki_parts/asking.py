"""Requests about titles, 50 at once; a request that the wiki refuses is repeated with fewer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import tenacity
import trio

from crawld.core.politeness import MAX_RETRY_AFTER_S
from crawld.sources.mediawiki_api import (
    REFUSALS,
    ApiResponse,
    ApiTrouble,
    Parameters,
    TroubleKind,
    batch,
)
from crawld.sources.mediawiki_listed import (
    TitleAnswer,
    TitleOutcome,
    read_resolved,
    resolve_query,
)
from crawld.sources.mediawiki_members import MemberPage, pages_query, read_pages

TITLES_AT_ONCE: Final = 50
"""Titles per request for a client without higher limits."""

MAX_PARTS: Final = 50
"""Most responses that one question may have; a wiki that continues further is not believed."""

MAX_KEPT: Final = 100
"""Responses kept for the next site; each has up to 500 titles."""

SHARED_WAIT_S: Final = 17.0
"""How long a question waits for the next poll, which takes it along and costs no turn."""

RETRY_S: Final = 1_800.0
"""Longest time to repeat a request; then it waits for the next run."""

Ask: TypeAlias = Callable[[Parameters], Awaitable[ApiResponse | ApiTrouble]]
"""Sends a request and returns its response, or why there is none."""


class AskOnce:
    """Sends each request once, for several sites of a wiki that ask the same.

    Only a few responses are kept: those of the categories and prefixes that sites have in common.

    Attributes:
        sent: how many requests were sent.
    """

    def __init__(self, ask: Ask) -> None:
        self.sent = 0
        self._ask = ask
        self._answers: dict[str, ApiResponse] = {}

    async def __call__(self, parameters: Parameters) -> ApiResponse | ApiTrouble:
        """Return the response to a request, as it was when it was first sent."""
        key = json.dumps(parameters, sort_keys=True)
        if (known := self._answers.get(key)) is not None:
            return known
        self.sent += 1
        answer = await self._ask(parameters)
        if isinstance(answer, ApiResponse) and len(self._answers) < MAX_KEPT:
            self._answers[key] = answer
        return answer


async def ask_patiently(ask: Ask, parameters: Parameters) -> ApiResponse | ApiTrouble:
    """Ask until the wiki answers, or refuses the request, or does neither for a long time.

    Each request waits for a turn of its host, and comes no earlier than the wiki has asked for. If
    that is after `RETRY_S`, the trouble is returned at once.
    """
    last: ApiResponse | ApiTrouble = ApiTrouble(TroubleKind.HELD, "no turn of the host was free")
    until = trio.current_time() + RETRY_S
    attempts = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_result(_may_be_answered),
        wait=_pause_s,
        stop=lambda state: trio.current_time() + state.upcoming_sleep > until,
        retry_error_callback=lambda _: None,
        sleep=trio.sleep,
    )
    with trio.move_on_at(until):
        async for attempt in attempts:
            with attempt:
                last = await ask(parameters)
            attempt.retry_state.set_result(last)
    return last


def _may_be_answered(response: ApiResponse | ApiTrouble) -> bool:
    return isinstance(response, ApiTrouble) and response.trouble not in REFUSALS


def _pause_s(state: tenacity.RetryCallState) -> float:
    """Return the pause after a trouble: what the wiki asked for, or a growing one."""
    trouble = state.outcome.result() if state.outcome else None
    assert isinstance(trouble, ApiTrouble)
    return min(max(trouble.pause_s(state.attempt_number), 1.0), MAX_RETRY_AFTER_S)


async def resolve_titles(ask: Ask, titles: Sequence[str]) -> dict[str, TitleAnswer] | ApiTrouble:
    """Return what the wiki says about titles, or why it does not; a refused title is invalid."""
    found: dict[str, TitleAnswer] = {}
    left, most = list(dict.fromkeys(titles)), TITLES_AT_ONCE
    while left:
        some = batch(left, most)
        response = await ask(resolve_query(some))
        if isinstance(response, ApiTrouble):
            if response.trouble not in REFUSALS:
                return response
            if len(some) > 1:
                most = max(min(len(some) // 2, response.limit or len(some)), 1)
                continue
            answer = TitleAnswer(some[0], TitleOutcome.INVALID, response.detail)
            found[some[0]] = answer
        else:
            found |= read_resolved(response, some)
            for title in some:
                unanswered = TitleAnswer(title, TitleOutcome.MISSING, "the wiki left it out")
                found.setdefault(title, unanswered)
        left = left[len(some) :]
    return found


async def ask_pages(
    ask: Ask, categories: Sequence[str], *, titles: Sequence[str] = (), numbers: Sequence[int] = ()
) -> list[MemberPage] | ApiTrouble:
    """Return the state of pages, by their titles or by the wiki's numbers."""
    found: list[MemberPage] = []
    named: list[str] = list(dict.fromkeys([*titles, *map(str, numbers)]))
    while named:
        some = batch(named, TITLES_AT_ONCE)
        named = named[len(some) :]
        pages: list[MemberPage] = []
        cursor: Parameters | None = None
        for _ in range(MAX_PARTS):
            query = (
                pages_query(categories, numbers=map(int, some), cursor=cursor)
                if numbers
                else pages_query(categories, titles=some, cursor=cursor)
            )
            response = await ask(query)
            if isinstance(response, ApiTrouble):
                return response
            pages = read_pages(response, pages)
            cursor = response.cursor
            if cursor is None:
                break
        found += pages
    return found
