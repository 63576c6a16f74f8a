"""The serving certificate: read from a directory, and reloaded when it is renewed there."""

import asyncio
import logging
import os
import ssl
from pathlib import Path
from typing import Final, NamedTuple

from memcached_webhooks.expiry import expiry
from memcached_webhooks.metrics import Metrics

log = logging.getLogger(__name__)

POLL_PERIOD: Final = 1.0  # a few stat calls; the kubelet updates a mounted Secret after about a minute

# For TLS 1.2, only ciphers with forward secrecy and authenticated encryption, as the API server supports them. TLS 1.3
# has no others.
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"

_Fingerprint = tuple[str | int, ...]
_MISSING: Final[_Fingerprint] = ()


class CertWatcher:
    """A TLS context that serves the newest valid pair of `certificate` and `key` (files in PEM).

    A new pair is loaded before it is used. If a file is missing or unreadable, or if the key does not match the
    certificate, the previous pair stays in use and a metric counts the error. Open connections are not affected.
    """

    def __init__(self, certificate: Path, key: Path, metrics: Metrics) -> None:
        self._files = (certificate, key)
        self._metrics = metrics
        self._last_fingerprint = _MISSING
        self._current: ssl.SSLContext | None = None
        # A handshake starts with this context and switches to the current one, so that a pair is replaced atomically.
        self.context = _context()
        self.context.sni_callback = self._select_context

    @property
    def ready(self) -> bool:
        """Whether a pair has been loaded."""
        return self._current is not None

    def refresh(self) -> None:
        """Load the pair if its files have changed. Never raises for invalid content."""
        fingerprint = _fingerprint(*self._files)
        if fingerprint == self._last_fingerprint:
            return
        self._last_fingerprint = fingerprint
        self._metrics.certificate_reads.inc()
        try:
            self._current, expires_at = _load(*self._files)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            if not isinstance(error, ssl.SSLError):
                self._last_fingerprint = _MISSING  # retry, because the same files may be readable the next time
            self._metrics.certificate_errors.inc()
            self._metrics.certificate_readable.set(0)
            consequence = "the previous pair stays in use" if self.ready else "waiting for a valid pair"
            log.error("certificate %s and its key cannot be used: %s; %s", self._files[0], error, consequence)
            return
        self._metrics.certificate_expiry.set(expires_at)
        self._metrics.certificate_readable.set(1)
        log.info("certificate %s loaded", self._files[0])

    async def watch(self) -> None:
        """Refresh periodically, until cancelled."""
        while True:
            self.refresh()
            await asyncio.sleep(POLL_PERIOD)

    async def wait_until_loaded(self) -> None:
        """Refresh until a pair is loaded. At the first start, the Secret may not have a pair yet."""
        self.refresh()
        if not self.ready:
            log.info("waiting for certificate %s and key %s", *self._files)
        while not self.ready:
            await asyncio.sleep(POLL_PERIOD)
            self.refresh()

    def _select_context(self, tls: ssl.SSLObject | ssl.SSLSocket, _: str | None, __: ssl.SSLContext) -> int | None:
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        tls.context = self._current
        return None


class _Loaded(NamedTuple):
    """A context with a pair, and when that expires, in Unix time."""

    context: ssl.SSLContext
    expiry: float


def _load(certificate: Path, key: Path) -> _Loaded:
    """Load a pair. Raises OSError or ValueError if the pair is not valid."""
    context = _context()
    # With an empty passphrase, OpenSSL does not prompt for one if the key is encrypted.
    context.load_cert_chain(certificate, key, password="")
    return _Loaded(context, expiry(certificate.read_bytes()))


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _fingerprint(*files: Path) -> _Fingerprint:
    """A value that changes when the files, or symbolic links to them such as a Secret's `..data`, change.

    It contains the ctime, which a copy does not preserve. _MISSING if one of the files is missing.
    """
    try:
        stats = [(os.path.realpath(file), file.stat()) for file in files]
    except OSError:
        return _MISSING
    return tuple(part for path, stat in stats for part in (path, stat.st_ctime_ns, stat.st_ino, stat.st_size))
