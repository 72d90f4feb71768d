"""The config of `crawld mirror URL...`, which has no config file.

All URLs form one site, named after the host of the first, so that a repeated command finds the site
in the database. A loopback or private address typed as a literal is allowed, for that host
only: links to other private addresses are refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from crawld.config.checks import check_config
from crawld.config.derive import is_public_host
from crawld.config.model import Config
from crawld.core.url import canonicalize_given, hide_credentials, split_url
from crawld.errors import ConfigError


def from_command_line(
    urls: Sequence[str],
    *,
    db: Path = Path("crawld.db"),
    contact: str | None = None,
    delay_s: float = 15.0,
    depth: int = 1,
    max_pages: int | None = 1_000,
    allow_private: bool = False,
    requisites: bool = True,
    requisite_hosts: Sequence[str] = (),
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    no_parent: bool = False,
    socket: Path | None = None,
    analyse: bool = True,
    search: bool = True,
) -> Config:
    """Return the config of a mirror.

    Args:
        urls: where to start; the host of each belongs to the scope.
        db: the database.
        contact: the operator's e-mail or web address; required for public hosts.
        delay_s: delay between two requests to one host, seconds.
        depth: links followed from the URLs.
        max_pages: most pages admitted; None: no limit.
        allow_private: whether every private address may be fetched.
        requisites: whether images, styles, scripts and fonts are mirrored too.
        requisite_hosts: further hosts to load requisites from.
        include: patterns of which a page must match one, as in the config; empty: all pages.
        exclude: patterns of which a page must match none.
        no_parent: whether only pages in the directories of the URLs belong to the scope.
        socket: the control socket; None: beside the database.
        analyse: whether first copies are analysed.
        search: whether copies are indexed for the search.

    Raises:
        InvalidUrlError: one of the URLs is not valid.
        ConfigError: an argument is out of range, or a public host has no contact.
    """
    if not urls:
        raise ConfigError("no URL to mirror", hint="crawld mirror https://example.org/")
    if no_parent and include:
        raise ConfigError(
            "--no-parent and --include both say which pages belong to the mirror",
            hint='without --no-parent: --include "prefix:https://example.org/docs/"',
        )
    seeds = list(dict.fromkeys(canonicalize_given(url) for url in urls))
    hosts = list(dict.fromkeys(split_url(seed).host for seed in seeds))
    if no_parent:
        include = [f"prefix:{_directory(seed)}" for seed in seeds]
    site = {
        "name": default_site_name(hosts[0]),
        "seeds": seeds,
        "max_depth": depth,
        "max_pages": max_pages,
        "allow_private": allow_private,
        "requisites": requisites,
        "requisite_hosts": list(requisite_hosts),
        "include": list(include),
        "exclude": list(exclude),
        "allow_private_hosts": [host for host in hosts if not is_public_host(Config(), host)],
    }
    daemon = {"db": db, "contact": contact, "socket": socket}
    try:
        config = Config.model_validate(
            {
                "daemon": daemon,
                "politeness": {"host_delay_s": delay_s},
                "content": {"analyse": analyse, "search": search},
                "site": [site],
            }
        )
    except ValidationError as error:
        raise ConfigError(_message(error), hint="see crawld mirror --help") from None
    issues, _ = check_config(config)
    if fatal := [issue.message for issue in issues if issue.fatal]:
        raise ConfigError("\n".join(fatal))
    return config


def _directory(url: str) -> str:
    """Return the directory of a canonical URL.

    >>> _directory("https://a.org/docs/guide?x=/y"), _directory("https://a.org/")
    ('https://a.org/docs/', 'https://a.org/')
    """
    return url.partition("?")[0].rpartition("/")[0] + "/"


def default_site_name(host: str) -> str:
    """Return the name of the site of a host that has no name in a config."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", host).strip("-.")[:64] or "site"


_OPTIONS = {
    "host_delay_s": "--delay",
    "max_depth": "--depth",
    "max_pages": "--max-pages",
    "requisite_hosts": "--requisite-host",
    "include": "--include",
    "exclude": "--exclude",
    "contact": "--contact",
    "db": "--db",
    "socket": "--socket",
}


def _message(error: ValidationError) -> str:
    texts = []
    for details in error.errors(include_url=False):
        named = [str(part) for part in details["loc"] if isinstance(part, str)]
        option = _OPTIONS.get(named[-1], named[-1])
        given = hide_credentials(str(details["input"]))
        meaning = details["msg"].removeprefix("Value error, ")
        texts.append(f"{option} {given}: {meaning[:1].lower()}{meaning[1:]}")
    return "\n".join(texts)
