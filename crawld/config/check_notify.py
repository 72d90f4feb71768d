"""Checks the rules of notification: names, files of secrets, the mail server, Apprise."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from crawld.config.derive import is_loopback_host
from crawld.config.headers import read_headers
from crawld.config.issue import Issue
from crawld.config.model import Config
from crawld.config.notify import NotifyConfig
from crawld.config.positions import KeyPath
from crawld.config.secret_file import read_secret
from crawld.config.values import web_url
from crawld.core.url import split_url
from crawld.errors import ConfigError
from crawld.extras import install_command

EXTRA = "notify"
"""The extra that has Apprise."""


def check_notify(config: Config) -> Iterator[Issue]:
    """Yield the issues of all rules and of the mail server."""
    yield from _check_names(config)
    yield from _check_mail(config)
    for index, rule in enumerate(config.notify):
        path: KeyPath = ("notify", index)
        for key, message, fatal in _check_rule(config, rule):
            where = (*path, key) if key else path
            yield Issue(where, f'notify "{rule.name}": {message}', fatal)


def _check_names(config: Config) -> Iterator[Issue]:
    seen: set[str] = set()
    for index, rule in enumerate(config.notify):
        if rule.name in seen:
            message = f"two notifications are named {rule.name!r}; rename one"
            yield Issue(("notify", index, "name"), message)
        seen.add(rule.name)


def _check_mail(config: Config) -> Iterator[Issue]:
    mail = config.mail
    if mail.password_file is not None:
        path: KeyPath = ("mail", "password_file")
        try:
            _, warnings = read_secret(mail.password_file, "password_file")
        except ConfigError as error:
            yield Issue(path, _text(error))
        else:
            yield from (Issue(path, warning, fatal=False) for warning in warnings)
        if mail.security == "none" and mail.host and not is_loopback_host(config, mail.host):
            message = f"the password would be sent to {mail.host} unencrypted"
            yield Issue(("mail", "security"), f'{message}; use security = "starttls" or "tls"')


_Found = Iterator[tuple[str, str, bool]]
"""Keys, messages and whether they are fatal."""


def _check_rule(config: Config, rule: NotifyConfig) -> _Found:
    known = [site.name for site in config.sites]
    for name in rule.sites:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else " in this config"
            yield "sites", f'there is no site "{name}"{hint}', False
    if rule.mail_to and config.mail.host is None:
        yield "mail_to", "needs the host of a mail server in [mail]", True
    if rule.webhook_file is not None:
        yield from _check_secret("webhook_file", rule.webhook_file)
    if rule.secret_file is not None:
        yield from _check_secret("secret_file", rule.secret_file)
    yield from _check_headers(config, rule)
    if rule.apprise_file is not None:
        yield from _check_apprise(rule)


def _check_secret(key: str, path: Path) -> _Found:
    try:
        secret, warnings = read_secret(path, key)
    except ConfigError as error:
        yield key, _text(error), True
        return
    yield from ((key, warning, False) for warning in warnings)
    if key == "webhook_file" and not _is_web_url(secret.get_secret_value()):
        yield key, f"{path} has no http(s) URL without a password", True


def _is_web_url(text: str) -> bool:
    try:
        web_url(text)
    except ValueError:
        return False
    return True


def _check_headers(config: Config, rule: NotifyConfig) -> _Found:
    if rule.headers_file is None:
        return
    try:
        headers = read_headers(rule.headers_file)
    except ConfigError as error:
        yield "headers_file", _text(error), True
    else:
        yield from (("headers_file", warning, False) for warning in headers.warnings)
    url = rule.webhook or ""
    if url.startswith("http:") and not is_loopback_host(config, split_url(url).host):
        message = "headers_file would be sent unencrypted; use an https:// webhook"
        yield "headers_file", message, True


def _check_apprise(rule: NotifyConfig) -> _Found:
    assert rule.apprise_file is not None
    try:
        secret, warnings = read_secret(rule.apprise_file, "apprise_file")
    except ConfigError as error:
        yield "apprise_file", _text(error), True
        return
    yield from (("apprise_file", warning, False) for warning in warnings)
    try:
        from apprise import Apprise
    except ModuleNotFoundError:
        hint = f"install it: {install_command(EXTRA)}"
        yield "apprise_file", f"needs Apprise, which is not installed; {hint}", True
        return
    if Apprise.instantiate(secret.get_secret_value()) is None:
        message = f"{rule.apprise_file} has no URL that Apprise knows"
        yield "apprise_file", f"{message}; see: apprise --details", True


def _text(error: ConfigError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message
