"""`crawld init`: write the template of a config, or the first config of a site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crawld.cli.output import printable
from crawld.config.template import template
from crawld.errors import EXIT_OK, ConfigError

NAME = "crawld.toml"


def init(places: Sequence[str], *, contact: str | None, allow_private: bool) -> int:
    """Write `crawld.toml` into a directory and return the exit code.

    Args:
        places: a URL, a directory, or both in this order. Without a URL the file is the template
            with every key; with one it is made for the site, after a look at it.
        contact: the operator's contact, for the requests and the config.
        allow_private: whether the host of the URL may resolve to a private address.

    Raises:
        ConfigError: the file exists or cannot be written, or there are other arguments.
        OperatorError: the page cannot be fetched.
    """
    url = places[0] if places and "://" in places[0] else None
    others = places[1:] if url else places
    if len(others) > 1 or any("://" in each for each in others):
        raise ConfigError("too many arguments", hint="crawld init [URL] [DIR]")
    path = Path(others[0] if others else ".") / NAME
    if path.exists():
        raise ConfigError(f"{path} exists", hint="give another DIR")
    if url is None:
        _write(path, template())
        print(f"wrote {path}; set contact and a [[site]], then run: crawld check-config {path}")
        return EXIT_OK
    from crawld.cli.site_look import look_at
    from crawld.config.starter import starter_config

    look = look_at(url, contact=contact, allow_private=allow_private)
    _write(path, starter_config(look, contact=contact))
    what = f"{look.wiki.name}, {look.wiki.software}" if look.wiki else "no MediaWiki"
    needed = "" if contact or look.is_private else "set contact in it, then "
    print(f"wrote {path} for {printable(look.url)} ({printable(what)})")
    print(f"{needed}run: crawld check-config {path} && crawld run --config {path}")
    return EXIT_OK


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} exists", hint="give another DIR") from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
