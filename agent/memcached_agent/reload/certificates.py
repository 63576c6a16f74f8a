"""The source of certificates: memcached loads them upon its command `refresh_certs`."""

import ssl
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from memcached_agent.errors import InvalidError
from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.reload import pairs
from memcached_agent.reload.files import TlsFiles, read_tls
from memcached_agent.reload.pairs import Pair
from memcached_agent.reload.served import served_certificate, served_expiry

MAX_SESSIONS: Final = 256
"""Sessions that a context may store, 1.2 KiB each. OpenSSL stores those of TLS 1.2 clients without tickets, up to
20,480, and Python cannot switch this off."""


class Content(NamedTuple):
    """The files, and whether the certificate in use has expired since: then it is checked again."""

    files: TlsFiles
    expired: bool


class Certificates:
    """The certificates in a directory. `expires`: of what memcached serves, in seconds since 1970; None if unknown."""

    name: str = "certificate"

    def __init__(
        self, directory: str, port: int, client: MemcachedClient, clock: Callable[[], float] = time.time
    ) -> None:
        self.expires: float | None = None
        self._directory = directory
        self._port = port
        self._client = client
        self._clock = clock
        self._checked: TlsFiles | None = None
        self._context: ssl.SSLContext | None = None

    def read(self) -> Content:
        """The files now. Raises InvalidError."""
        return Content(read_tls(self._directory), self.expires is not None and self.expires < self._clock())

    def check(self, content: Content) -> Pair:
        """The pair, which `context` serves from now on. Raises InvalidError, and keeps the last valid one then."""
        pair = pairs.check(content.files, self._clock())
        self._checked, self._context = content.files, pair.context
        return pair

    def target(self) -> int | None:
        """The number of the connection to memcached; None while there is none."""
        return self._client.connected

    async def apply(self, pair: Pair) -> None:
        """Load the files in memcached, and compare what it serves. Raises InvalidError and UnverifiedError."""
        if error := await self._client.refresh_certificates():
            raise InvalidError(f"memcached cannot load the files in {self._directory}: {error}")
        if await served_certificate(self._port) != pair.der:
            raise InvalidError(
                f"memcached serves another certificate than {self._directory}/tls.crt; the agent loads it again. If "
                "the algorithm of the key has changed, set spec.rollout.restartedAt, which replaces the pods, whose "
                "items are lost"
            )
        self.expires = pair.expires

    async def inspect(self) -> None:
        """Find out when the certificate that memcached serves expires. Raises UnverifiedError."""
        if self.expires is None and self.target() is not None:
            self.expires = await served_expiry(self._port)

    def context(self) -> ssl.SSLContext | None:
        """The context of the last valid pair, for the agent's own port. None before the first one."""
        if self._context and self._checked and self._context.session_stats()["number"] > MAX_SESSIONS:
            self._context = pairs.server_context(self._checked)
        return self._context
