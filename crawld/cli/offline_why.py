"""`crawld why`: why a URL was, or was not, fetched, from the file alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import apsw
import trio

from crawld.cli.output import json_text, printable, require_database
from crawld.cli.why import why_text
from crawld.config.load import load
from crawld.config.model import Config
from crawld.config.places import read_places
from crawld.config.site import SiteConfig
from crawld.core.url import canonicalize_given, split_url, suggest_url
from crawld.core.why.facts import UrlFacts
from crawld.daemon.api.why_answer import answer
from crawld.daemon.api.why_facts import Question, read_facts
from crawld.daemon.frontier.site import ActiveSite, activate
from crawld.errors import EXIT_OK, InvalidUrlError
from crawld.store.engine.database import Database
from crawld.store.frontier import site as site_rows

ONLY_LIVE: Final = (
    "whether everything is paused, or the network is down",
    "when the delay of the host ends, and whether its address is known",
    "when a robots.txt that could not be read is fetched again",
    "which plug-in refuses a URL, and why",
)
"""What the file does not tell."""

DEFAULTS: Final = "the delays and limits of the config: give it with -c; these are the defaults"


def why(db: Path, url: str, config: Path | None, *, as_json: bool) -> int:
    """Print why a URL was (not) fetched; return the exit code.

    Args:
        config: the config of the daemon, for limits that the file does not hold, and for lines.

    Raises:
        InvalidUrlError: the text is no URL.
        OperatorError: the database or the config cannot be read.
    """
    require_database(db)
    try:
        wanted = canonicalize_given(url)
    except InvalidUrlError as error:
        raise InvalidUrlError(error.message, hint=suggest_url(url, error)) from None
    settings = load(config).config if config is not None else Config()
    places = read_places(config) if config is not None else None
    asked = Question(url, wanted, {}, settings, places, time.time())
    not_known = ONLY_LIVE if config is not None else (*ONLY_LIVE, DEFAULTS)
    found = answer(trio.run(_read, db, asked), not_known)
    print(json_text(found.model_dump(mode="json")) if as_json else printable(why_text(found)))
    return EXIT_OK


async def _read(db: Path, asked: Question) -> UrlFacts:
    async with await Database.open(db, read_only=True) as database:
        return await database.read(_facts, asked)


def _facts(connection: apsw.Connection, asked: Question) -> UrlFacts:
    sites = _sites(connection, asked.config, asked.now)
    return read_facts(connection, replace(asked, sites=sites))


def _sites(connection: apsw.Connection, settings: Config, now: float) -> Mapping[int, ActiveSite]:
    """Return the sites of a file; their seeds that lie in files are known by their pages."""
    sites = {}
    for row in site_rows.list_sites(connection):
        definition = SiteConfig.model_validate_json(row.definition or "")
        # Passwords are not needed to explain, and may not be readable for who asks.
        definition = definition.model_copy(update={"headers_file": None})
        named = {split_url(canonicalize_given(seed)).host for seed in definition.seeds}
        stored = site_rows.seed_hosts(connection, row.site_id)
        sites[row.site_id] = activate(
            settings,
            definition,
            named.union(stored),
            (),
            site_id=row.site_id,
            paused=row.paused,
            now=now,
        )
    return sites
