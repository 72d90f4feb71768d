"""Delivers a message to the receiver of its rule: a webhook, mail addresses, or Apprise.

Files of secrets are read at each try, so that a new password needs no reload. Messages get their
form on threads: one with hundreds of events takes half a second.
"""

from __future__ import annotations

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
from crawld.daemon.notify.apprise_service import send_by_apprise
from crawld.daemon.notify.mail import mail_content
from crawld.daemon.notify.message import NotifyMessage
from crawld.daemon.notify.webhook import webhook_body, webhook_headers
from crawld.daemon.notify.wording import plain_text, subject
from crawld.errors import ConfigError
from crawld.net.exchange import HeaderValue
from crawld.net.network import Network
from crawld.net.post import Poster, PostRequest
from crawld.net.resolver import Resolver
from crawld.net.smtp import Mailer, MailServer
from crawld.workers import Workers

log = structlog.get_logger(__name__)

APPRISE_S: Final = 60.0
"""Time for a message by Apprise; its thread may go on."""

APPRISE_THREADS: Final = 4
"""Most threads of Apprise, those that hang included."""

MAX_APPRISE_CHARACTERS: Final = 3_000
"""Most services take 4,000 and more."""


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
        self, resolver: Resolver, network: Network, workers: Workers, clock: Clock
    ) -> None:
        self._poster = Poster(resolver=resolver, network=network)
        self._mailer = Mailer(resolver=resolver, network=network)
        self._workers = workers
        self._clock = clock
        self._apprise = trio.CapacityLimiter(APPRISE_THREADS)

    async def deliver(self, config: Config, rule: NotifyConfig, message: NotifyMessage) -> Delivery:
        """Try once to deliver a message; neither a receiver nor a bad file of secrets raises."""
        try:
            if rule.mail_to:
                return await self._mail(config.mail, rule, message)
            if rule.apprise_file is not None:
                return await self._by_apprise(rule, message)
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

    async def _by_apprise(self, rule: NotifyConfig, message: NotifyMessage) -> Delivery:
        url = await self._secret(rule.apprise_file, "apprise_file")
        assert url is not None
        text = await self._workers.run(plain_text, message, MAX_APPRISE_CHARACTERS)
        with trio.move_on_after(APPRISE_S):
            try:
                trouble = await self._workers.run(
                    send_by_apprise,
                    url.get_secret_value(),
                    subject(message),
                    text,
                    limiter=self._apprise,
                    abandon_on_cancel=True,
                )
            except Exception as error:  # of a service's own code; its text may have the URL
                log.warning("apprise_failed", rule=rule.name, error=type(error).__name__)
                return Delivery(False, f"Apprise failed: {type(error).__name__}")
            return Delivery(not trouble, trouble)
        return Delivery(False, f"not complete after {APPRISE_S:g} s")


def _checked_url(secret: SecretStr | None) -> str:
    try:
        return web_url("" if secret is None else secret.get_secret_value())
    except ValueError:
        raise ConfigError("webhook_file has no http(s) URL without a password") from None
