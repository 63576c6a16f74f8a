"""Credentials that change while the process runs: the token file of a pod, and the logins of a kubeconfig."""

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import kopf

log = logging.getLogger(__name__)

TOKEN_RELOAD_PERIOD = 60.0
"""Seconds between reads of the token file. The kubelet renews a token well before it expires after one hour."""

LOGIN_PERIOD = 10.0
"""Minimum seconds between two logins after responses with status 401."""

MAX_MESSAGE = 500
"""Maximum characters of a credential plug-in's error output in a message."""


class ConfigError(Exception):
    """No API server is configured, or its credentials cannot be read; the message contains the remedy."""


class TokenFile:
    """Middleware that sends the current content of a token file as the bearer token. Raises ConfigError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = ""
        self._read_at = float("-inf")

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        request.headers["Authorization"] = f"Bearer {self._current(TOKEN_RELOAD_PERIOD)}"
        response = await handler(request)
        if response.status == 401:
            self._current(0)
        return response

    def _current(self, max_age: float) -> str:
        if time.monotonic() - self._read_at >= max_age:
            # Blocking is acceptable: the file has a few hundred bytes in tmpfs and is read once a minute.
            try:
                self._token = self._path.read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"cannot read the service account token: {error}") from error
            self._read_at = time.monotonic()
        return self._token


class Login:
    """Middleware that sends the credentials of a login, which expire.

    After a response with status 401, it logs in again in a thread, and repeats the request once. Raises ConfigError.
    """

    def __init__(
        self, login: Callable[[], kopf.ConnectionInfo | None], info: kopf.ConnectionInfo, tls: ssl.SSLContext
    ) -> None:
        self._login = login
        self._tls = tls
        self._headers = _headers(info)
        self._lock = asyncio.Lock()
        self._logged_in_at = time.monotonic()

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        sent = self._headers
        request.headers.update(sent)
        response = await handler(request)
        if response.status != 401 or not await self._replace(sent):
            return response
        request.headers.update(self._headers)
        return await handler(request)

    async def _replace(self, rejected: dict[str, str]) -> bool:
        """Log in again, unless another request did since these headers were sent. Returns False if it is too soon."""
        async with self._lock:
            if self._headers is not rejected:
                return True
            if time.monotonic() - self._logged_in_at < LOGIN_PERIOD:
                return False
            self._logged_in_at = time.monotonic()
            log.info("the API server rejected the credentials; logging in again")
            info = await asyncio.to_thread(self._login)
            if info is None:
                return False
            if info.certificate_path and info.private_key_path:
                self._tls.load_cert_chain(os.fsdecode(info.certificate_path), os.fsdecode(info.private_key_path))
            self._headers = _headers(info)
            return True


def _headers(info: kopf.ConnectionInfo) -> dict[str, str]:
    # A client certificate belongs to its connection, which must not be reused with the next certificate.
    return info.as_http_headers() | ({"Connection": "close"} if info.certificate_path else {})


def login_with_client() -> kopf.ConnectionInfo | None:
    """The credentials of a kubeconfig that the `kubernetes` package obtains: from a plug-in, a file, or OpenID Connect.

    Returns None if the package is not installed, as in the image. Raises ConfigError.
    """
    # Without the variable, the package does not prefer a service account to the kubeconfig.
    with _errors() as errors, _hidden("KUBERNETES_SERVICE_HOST"):
        try:
            info = kopf.login_via_client(logger=log, settings=kopf.OperatorSettings())
        except kopf.LoginError as error:
            raise ConfigError(f"cannot log in with the kubeconfig: {_line(error.__context__ or error)}") from error
        except Exception as error:
            # The plug-ins of the package raise errors of any type.
            raise ConfigError(f"cannot log in with the kubeconfig: {_line(error)}") from error
    if errors:
        raise ConfigError(f"the credential plug-in of the kubeconfig failed: {_line(errors[0])}")
    return info


@contextmanager
def _errors() -> Generator[list[str]]:
    """The errors that the package logs instead of raising them: all are logged by the root logger."""
    errors: list[str] = []

    def collect(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            errors.append(record.getMessage())
        return record.levelno < logging.ERROR

    logging.getLogger().addFilter(collect)
    try:
        yield errors
    finally:
        logging.getLogger().removeFilter(collect)


@contextmanager
def _hidden(name: str) -> Generator[None]:
    """Hide an environment variable from the libraries that are called in this block, and restore it."""
    value = os.environ.pop(name, None)
    try:
        yield
    finally:
        if value is not None:
            os.environ[name] = value


def _line(error: object) -> str:
    return " ".join(str(error).split())[:MAX_MESSAGE]
