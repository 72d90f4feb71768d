"""Ask for pages in the way that brings their wanted form, and learn that way for each host.

`begin` says how a visit asks; `judge` reads the form of the answer and says whether the visit is
recorded, or the page asked for again under another profile. What was learnt is stored by site and
host (`store/frontier/request_profile.py`). The mathematics is `core/request_profiles.py`.

A copy in the wanted form is replaced by no other. That a copy of another profile is no change of
the copy held follows from the form of its request (`fetch/request_form.py`).
"""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import structlog
import trio

from crawld.core.content.analysis import read_blocks
from crawld.core.content.language import LanguageDetector
from crawld.core.content.media import sniff_text
from crawld.core.outcome import PERSISTENT_RETRY_BASE_S, Judgement
from crawld.core.page import Failure, Outcome
from crawld.core.request_profiles import (
    GOOD_HOST_RETRY_MAX_S,
    REFUSED,
    REFUSED_ROUNDS,
    AnswerForm,
    PageSearch,
    Prior,
    SectionChoice,
    WantedForm,
    trial_profile,
    usual_profile,
    wants_retest,
)
from crawld.daemon.analyser import Analyser
from crawld.daemon.crawl.learnt_profiles import LearntProfiles
from crawld.daemon.fetch.request_form import RequestForm
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.conclude import Visit
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.plugins import PageRequest
from crawld.store.engine.database import Database
from crawld.store.frontier import request_profile
from crawld.store.frontier.page import PageRecord
from crawld.store.versions import version
from crawld.store.versions.body import digest
from crawld.store.versions.version import VersionRow
from crawld.workers import Workers

log = structlog.get_logger(__name__)

MOST_HOSTS: Final = 10_000
"""Hosts whose learnt profiles are in memory, the most recently used."""

MOST_LANGUAGES: Final = 10_000
"""Bodies whose language is in memory, the last ones read."""

LAST_COPIES: Final = 6
"""Newest copies of a page among which one in the language of an answer is looked for."""

MOST_SEARCHES: Final = 10_000
"""Pages that are asked for again under another profile at a time."""

PRIOR_HOSTS: Final = 200
"""Other hosts of a site that say what to try first."""

READ_CHARACTERS: Final = 20_000
"""Characters of the visible text that are judged."""

STORE_EVERY: Final = 50
"""Visits of a host after which its counts are stored although nothing new was learnt."""


@dataclass(frozen=True, slots=True)
class ProfileUse:
    """How one visit asks for its page.

    Attributes:
        form: of the request, by the profile and plug-ins.
        number: of the profile, among those of the site.
        held: name of the profile of the copy held; None: there is none in the wanted form.
        retest: whether the visit only tries a profile, and is not recorded.
    """

    site: ActiveSite
    form: RequestForm
    number: int
    held: str | None
    retest: bool = False

    @property
    def name(self) -> str:
        """Name of the profile."""
        return self.form.profile.name


class PageProfiles:
    """What was learnt about the request profiles of all sites that have some."""

    def __init__(
        self,
        database: Database,
        analyser: Analyser,
        workers: Workers,
        rng: random.Random,
    ) -> None:
        self._database = database
        self._analyser = analyser
        self._workers = workers
        self._rng = rng
        self._hosts: OrderedDict[tuple[int, int], LearntProfiles] = OrderedDict()
        self._searches: OrderedDict[int, PageSearch] = OrderedDict()
        self._detector: LanguageDetector | None = None
        self._loading = trio.Lock()
        self._languages: OrderedDict[bytes, str] = OrderedDict()

    # --- how to ask ----------------------------------------------------------------------------

    def begin(
        self, page: PageRecord, site: ActiveSite, shape: PageRequest | None
    ) -> ProfileUse | None:
        """Return how a visit asks for a page of a site with profiles; None: as every request.

        Args:
            shape: the request as plug-ins want it; None: they change nothing.
        """
        if page.requisite:
            return None
        learnt = self._learnt(site, page.host_id)
        choice = learnt.section(page.url)
        forms = [RequestForm(profile, shape) for profile in site.profiles]
        number, retest = self._number(page, site, learnt, choice, forms)
        held = None
        if page.version_id is not None:
            held = self._database.look_up(version.profile_of, page.version_id)
        return ProfileUse(site, forms[number], number, held, retest)

    def _number(
        self,
        page: PageRecord,
        site: ActiveSite,
        learnt: LearntProfiles,
        choice: SectionChoice,
        forms: list[RequestForm],
    ) -> tuple[int, bool]:
        search = self._searches.get(page.page_id)
        if search is not None and search.tried[-1] < len(forms):
            return search.number(choice.in_use), False
        prior = self._prior(site, page.host_id, learnt, choice)
        if choice.in_use is None:
            # None is known to work: in the form of the copy held, changes of the page are seen.
            if page.version_id is not None:
                keys = [form.key(page.url) for form in forms]
                if page.form in keys:
                    return keys.index(page.form), False
        elif wants_retest(choice, learnt.budget):
            in_use = [choice.in_use]
            number = trial_profile(choice, prior, site.profiles, in_use, None, self._rng)
            if number is not None and learnt.budget.take():
                choice.visits = 0
                return number, True
        return usual_profile(choice, prior), False

    # --- what came of it -----------------------------------------------------------------------

    async def judge(self, use: ProfileUse, visit: Visit) -> Visit | None:
        """Return the visit to record; None: the page is to be asked for again."""
        wanted = use.site.config.wanted
        assert wanted is not None  # the config has both or none
        why, is_evidence = await self._shortcoming(use, visit, wanted.form())
        page_id = visit.page.page_id
        if not is_evidence:
            search = self._searches.get(page_id)
            if search is not None and search.at_once:
                del self._searches[page_id]
            return None if use.retest else visit
        learnt = self._learnt(use.site, visit.page.host_id)
        choice = learnt.section(visit.page.url)
        known, trials = choice.in_use, learnt.budget.trials
        judged = self._judged(use, visit, learnt, choice, why)
        changed = choice.in_use != known or learnt.budget.trials != trials or use.retest
        if changed or learnt.budget.visits % STORE_EVERY == 0:
            await self._store(use, visit.page.host_id, learnt)
        return judged

    def _judged(
        self,
        use: ProfileUse,
        visit: Visit,
        learnt: LearntProfiles,
        choice: SectionChoice,
        why: str | None,
    ) -> Visit | None:
        page_id, answers = visit.page.page_id, choice.answers[use.number]
        if use.retest:
            answers.add(wanted=why is None)
            return None
        search = self._searches.get(page_id)
        if search is None or not search.at_once:
            learnt.budget.earn()
            choice.visits += 1
        if why is None:
            answers.add(wanted=True)
            choice.in_use = use.number
            learnt.budget.find()
            learnt.run.end()
            self._searches.pop(page_id, None)
            return replace(visit, profile=use.name)
        learnt.run.add(page_id, use.number)
        if not learnt.walled:
            # Else it says nothing about the profile.
            answers.add(wanted=False)
        if choice.in_use == use.number:
            choice.in_use = None
        if self._next(use, visit, learnt, choice, search):
            return None
        log.info("unwanted_form", page=visit.page.url, profile=use.name, why=why)
        return _unwanted(use, visit, learnt, choice, why)

    def _next(
        self,
        use: ProfileUse,
        visit: Visit,
        learnt: LearntProfiles,
        choice: SectionChoice,
        search: PageSearch | None,
    ) -> bool:
        """Choose the profile to try next on the page; whether it is at once, for a token."""
        page_id, profiles = visit.page.page_id, use.site.profiles
        asked = [use.number] if search is None else search.asked(use.number)
        prior = self._prior(use.site, visit.page.host_id, learnt, choice)
        vary = visit.response.header("vary")
        number = trial_profile(choice, prior, profiles, asked, vary, self._rng)
        if number is None:
            self._searches.pop(page_id, None)
            return False
        at_once = not learnt.walled and learnt.budget.take()
        again = search is None or search.at_once or not search.again
        self._searches[page_id] = PageSearch([*asked, number], at_once, again)
        if len(self._searches) > MOST_SEARCHES:
            self._searches.popitem(last=False)
        return at_once

    async def _shortcoming(
        self, use: ProfileUse, visit: Visit, wanted: WantedForm
    ) -> tuple[str | None, bool]:
        """Return why the answer is not in the wanted form, and whether it is evidence at all."""
        response = visit.response
        if isinstance(response, FetchFailure):
            # Its download ended at the first bytes, since pages of this type are not stored.
            is_other = response.failure is Failure.WRONG_TYPE
            return ("of a type that is not stored", True) if is_other else (None, False)
        if visit.judgement.failure is Failure.WRONG_TYPE:
            return f"type {visit.judgement.detail}", True
        if response.status in REFUSED:
            return f"status {response.status}", True
        if visit.judgement.outcome not in (Outcome.CHANGED, Outcome.UNCHANGED):
            return None, False
        if visit.digest == visit.page.digest and use.held == use.name:
            return None, True  # the bytes that were judged before
        if not visit.readable:
            return None, False
        return wanted.shortcoming(await self._form(response, visit.page.url, wanted)), True

    async def of_same_form(
        self, use: ProfileUse, page: PageRecord, response: FetchResponse | FetchFailure
    ) -> PageRecord | None:
        """Return the page with the copy to compare an answer with: the last one in its language.

        A server may answer one request in several languages, at random or by the time of day.

        Returns:
            None: there is no such copy, so that the answer is a variant.
        """
        wanted = use.site.config.wanted
        if wanted is None or not wanted.language or page.version_id is None:
            return page
        if not isinstance(response, FetchResponse) or response.status not in (200, 203):
            return page
        body, declared = response.body, response.header("content-type")
        language = await self._language(page.url, body, declared)
        copies = await self._database.read(version.list_versions, page.page_id, limit=LAST_COPIES)
        copies.sort(key=lambda copy: copy.version_id != page.version_id)
        for copy in copies:
            is_held = copy.version_id == page.version_id
            other = await self._language_of(page, copy)
            if is_held and not (language and other):
                return page
            if other == language:
                seen = page._replace(version_id=copy.version_id, digest=copy.digest)
                return page if is_held else seen._replace(etag=None, last_modified=None)
            if is_held and use.held is None and language == wanted.language:
                return None  # it takes the place of the copy held, whatever there was before
        return None

    async def _language_of(self, page: PageRecord, copy: VersionRow) -> str:
        known = self._languages.get(copy.digest)
        if known is not None:
            return known
        stored = await self._database.read(version.readable_copy, copy.version_id)
        return await self._language(page.url, *stored) if stored is not None else ""

    async def _text(self, url: str, body: bytes, declared: str | None) -> str:
        return await self._analyser.read(_shown_text, body, declared, url=url, bodies=(body,))

    async def _language(self, url: str, body: bytes, declared: str | None) -> str:
        """Return the language of a body; empty: it cannot be told."""
        key = await self._analyser.pack(digest, body, url=url, body=body)
        found = self._languages.get(key)
        if found is None:
            text = await self._text(url, body, declared)
            found = self._languages[key] = await self._detected(text)
            if len(self._languages) > MOST_LANGUAGES:
                self._languages.popitem(last=False)
        return found

    async def _detected(self, text: str) -> str:
        async with self._loading:  # many first visits at a time would load as many
            if self._detector is None:
                self._detector = await self._workers.run(LanguageDetector)
        return self._detector.language_of(text)

    async def _form(self, response: FetchResponse, url: str, wanted: WantedForm) -> AnswerForm:
        declared, body = response.header("content-type"), response.body
        content_type = sniff_text(declared, body)
        language = text = ""
        if wanted.language:
            language = await self._language(url, body, declared)
        if wanted.text:
            text = await self._text(url, body, declared)
        return AnswerForm(content_type, len(body), language, text)

    # --- what was learnt -----------------------------------------------------------------------

    def of_host(self, site: ActiveSite, host_id: int) -> LearntProfiles | None:
        """Return what was learnt on a host; None: the site has no profiles."""
        return self._learnt(site, host_id) if site.profiles else None

    def _learnt(self, site: ActiveSite, host_id: int) -> LearntProfiles:
        names = tuple(each.name for each in site.profiles)
        key = site.site_id, host_id
        found = self._hosts.get(key)
        if found is None or found.names != names:
            stored = self._database.look_up(request_profile.get, *key)
            found = self._hosts[key] = LearntProfiles.from_json(stored, names)
            if len(self._hosts) > MOST_HOSTS:
                self._hosts.popitem(last=False)
        self._hosts.move_to_end(key)
        return found

    def _prior(
        self, site: ActiveSite, host_id: int, learnt: LearntProfiles, choice: SectionChoice
    ) -> Prior:
        others = (
            section
            for (site_id, other_id), each in reversed(self._hosts.items())
            if site_id == site.site_id and other_id != host_id and each.names == learnt.names
            for section in each.sections.values()
        )
        own = (section for section in learnt.sections.values() if section is not choice)
        return Prior.of(len(learnt.names), own, islice(others, PRIOR_HOSTS))

    async def _store(self, use: ProfileUse, host_id: int, learnt: LearntProfiles) -> None:
        await self._database.write(request_profile.put, use.site.site_id, host_id, learnt.to_json())


def _unwanted(
    use: ProfileUse, visit: Visit, learnt: LearntProfiles, choice: SectionChoice, why: str
) -> Visit:
    """Return the visit to record of a page that did not come in the wanted form."""
    page, profiles = visit.page, len(learnt.names)
    refused = visit.response.status in REFUSED
    cannot_be_stored = visit.judgement.failure is Failure.WRONG_TYPE
    if use.held is None:
        # There is no copy to keep: what came is stored, if it can be, unless it is likely to pass.
        is_wall = len(learnt.run.pages) > 1 and choice.was_wanted and page.version_id is None
        rounds = REFUSED_ROUNDS if refused else int(is_wall or cannot_be_stored)
        if page.failure_count >= rounds * profiles:
            return replace(visit, retry_max_s=PERSISTENT_RETRY_BASE_S) if refused else visit
    # Otherwise the copy held has the wanted form, and no other takes its place.
    detail = f"{why}, asked as {use.name}"
    failed = Judgement(Outcome.FAILED, Failure.UNWANTED_FORM, detail, of_host=learnt.walled)
    return replace(
        visit,
        judgement=failed,
        content=None,
        digest=None,
        body=None,
        needs=None,
        retry_max_s=None if learnt.walled else GOOD_HOST_RETRY_MAX_S,
    )


def _shown_text(body: bytes, content_type: str | None) -> str:
    return read_blocks(body, content_type).visible_text()[:READ_CHARACTERS]
