"""Delivers a message to the receiver of its rule: a webhook, mail addresses, or a notifier.

Notifiers are parts of plug-ins; Apprise is one of them. They run on threads of their own.

Files of secrets are read at each try, so that a new password needs no reload. Messages get their
form on threads: one with hundreds of events takes half a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
import trio
from pydantic import SecretStr

from crawld.config.derive import user_agent
from crawld.config.headers import read_headers
from crawld.config.model import Config
from crawld.config.notify import MailConfig, NotifyConfig
from crawld.config.secret_file import read_secret
from crawld.config.values import web_url
from crawld.core.politeness import parse_retry_after
from crawld.daemon.clock import Clock
from crawld.daemon.notify.apprise_service import NAME as APPRISE_NAME
from crawld.daemon.notify.mail import mail_content
from crawld.daemon.notify.message import NotifyMessage, ReportedEvent
from crawld.daemon.notify.webhook import webhook_body, webhook_headers
from crawld.daemon.notify.wording import plain_text, subject
from crawld.errors import ConfigError
from crawld.net.exchange import HeaderValue
from crawld.net.network import Network
from crawld.net.post import Poster, PostRequest
from crawld.net.resolver import Resolver
from crawld.net.smtp import Mailer, MailServer
from crawld.plugin_host.plugin import Hook
from crawld.plugins import Message, MessageEvent, Notifier
from crawld.workers import Workers

log = structlog.get_logger(__name__)

NOTIFIER_S: Final = 60.0
"""Time for a message by a notifier; its thread may go on."""

NOTIFIER_THREADS: Final = 4
"""Most threads of notifiers, those that hang included."""

MAX_CHARACTERS: Final = 3_000
"""Most services of Apprise take 4,000 and more."""

Notifiers = Mapping[str, tuple[Hook, Notifier]]
"""Notifiers by name, each with the figures of its calls."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a message.

    Attributes:
        delivered: whether the receiver has it.
        trouble: why not, or who does not have it; empty: nothing is wrong.
        retry_after_s: how long the receiver asks to be left alone.
    """

    delivered: bool
    trouble: str
    retry_after_s: float = 0.0


class Courier:
    """Delivers messages; holds nothing between them."""

    def __init__(
        self,
        resolver: Resolver,
        network: Network,
        workers: Workers,
        clock: Clock,
        notifiers: Notifiers,
    ) -> None:
        self._poster = Poster(resolver=resolver, network=network)
        self._mailer = Mailer(resolver=resolver, network=network)
        self._workers = workers
        self._clock = clock
        self._notifiers = notifiers
        self._limiter = trio.CapacityLimiter(NOTIFIER_THREADS)

    async def deliver(self, config: Config, rule: NotifyConfig, message: NotifyMessage) -> Delivery:
        """Try once to deliver a message; neither a receiver nor a bad file of secrets raises."""
        try:
            if rule.mail_to:
                return await self._mail(config.mail, rule, message)
            if rule.apprise_file is not None:
                return await self._by_notifier(APPRISE_NAME, rule.apprise_file, rule, message)
            if rule.notifier is not None:
                return await self._by_notifier(rule.notifier, rule.notifier_file, rule, message)
            return await self._post(config, rule, message)
        except ConfigError as error:
            return Delivery(False, error.message)

    async def _secret(self, path: Path | None, key: str) -> SecretStr | None:
        if path is None:
            return None
        found, _ = await self._workers.run(read_secret, path, key)
        return found

    async def _post(self, config: Config, rule: NotifyConfig, message: NotifyMessage) -> Delivery:
        url = rule.webhook
        if url is None:
            secret = await self._secret(rule.webhook_file, "webhook_file")
            url = _checked_url(secret)
        body = await self._workers.run(webhook_body, message)
        signature = await self._secret(rule.secret_file, "secret_file")
        headers: tuple[tuple[str, HeaderValue], ...] = webhook_headers(message.key, body, signature)
        if rule.headers_file is not None:
            own = await self._workers.run(read_headers, rule.headers_file)
            headers = (*headers, *own.pairs)
        request = PostRequest(
            url=url,
            body=body,
            headers=(("User-Agent", user_agent(config)), *headers),
            permits_private=lambda _: rule.allow_private,
            hides_url=rule.webhook is None,
        )
        result = await self._poster.post(request)
        wait_s = parse_retry_after(result.retry_after or "", self._clock.now())
        return Delivery(not result.trouble, result.trouble, wait_s or 0.0)

    async def _mail(self, mail: MailConfig, rule: NotifyConfig, message: NotifyMessage) -> Delivery:
        if mail.host is None or mail.sender is None:
            return Delivery(False, "[mail] has no host")
        password = await self._secret(mail.password_file, "password_file")
        server = MailServer(
            host=mail.host,
            port=mail.port,
            security=mail.security,
            user=mail.user,
            password=password or SecretStr(""),
        )
        content = await self._workers.run(
            mail_content, message, mail.sender, rule.mail_to, self._clock.now()
        )
        result = await self._mailer.send(server, mail.sender, rule.mail_to, content)
        return Delivery(result.sent, result.trouble)

    async def _by_notifier(
        self, name: str, file: Path | None, rule: NotifyConfig, message: NotifyMessage
    ) -> Delivery:
        found = self._notifiers.get(name)
        if found is None:
            return Delivery(False, f'there is no notifier "{name}"')
        hook, notify = found
        if hook.plugin.disabled:
            return Delivery(False, f"its plug-in is disabled: {hook.plugin.disabled}")
        target = await self._secret(file, "apprise_file" if rule.apprise_file else "notifier_file")
        with trio.move_on_after(NOTIFIER_S):
            given = await self._workers.run(_for_notifier, message, target)
            try:
                trouble = await self._workers.run(
                    notify, given, limiter=self._limiter, abandon_on_cancel=True
                )
            except Exception as error:  # of a service's own code; its text may have secrets
                log.warning("notifier_failed", rule=rule.name, error=type(error).__name__)
                hook.reject(rule.name, f"failed: {type(error).__name__}")
                return Delivery(False, f"{name} failed: {type(error).__name__}")
            if not isinstance(trouble, str):
                hook.reject(rule.name, f"returned {type(trouble).__name__}, not a text")
                return Delivery(False, f"{name} did not say whether it delivered")
            return Delivery(not trouble, trouble)
        return Delivery(False, f"not complete after {NOTIFIER_S:g} s")


def _for_notifier(message: NotifyMessage, target: SecretStr | None) -> Message:
    """Return a message as notifiers get it."""
    return Message(
        key=message.key,
        rule=message.rule,
        subject=subject(message),
        text=plain_text(message, MAX_CHARACTERS),
        events=tuple(map(_told, message.events)),
        target="" if target is None else target.get_secret_value(),
    )


def _told(reported: ReportedEvent) -> MessageEvent:
    event, change = reported.event, reported.change
    return MessageEvent(
        urn=reported.urn,
        kind=event.kind.value,
        at=event.at,
        site=event.site,
        url=event.url,
        title=event.title,
        target_url=event.target_url,
        difference=event.difference,
        words_added=None if change is None else change.words_added,
        words_removed=None if change is None else change.words_removed,
    )


def _checked_url(secret: SecretStr | None) -> str:
    try:
        return web_url("" if secret is None else secret.get_secret_value())
    except ValueError:
        raise ConfigError("webhook_file has no http(s) URL without a password") from None
