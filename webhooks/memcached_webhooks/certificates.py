"""The serving certificate: read from a directory, and read again whenever somebody renews it there."""

import asyncio
import logging
import os
import ssl
from pathlib import Path
from typing import Final

from memcached_webhooks.expiry import expiry
from memcached_webhooks.metrics import Metrics

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0  # a few stat calls; the kubelet itself brings a renewed Secret only after a minute or so

# For TLS 1.2; TLS 1.3 has only good ones. Forward secrecy and authenticated encryption, as the API server offers them.
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"

_Fingerprint = tuple[str | int, ...]
_MISSING: Final[_Fingerprint] = ()


class Certificates:
    """A TLS context that always serves the newest good pair of `certificate` and `key` (files in PEM).

    A pair is tried before it is used: one that is gone, cannot be read, or whose halves do not match, leaves the old
    one in place and counts in the metrics. Connections that are open keep what they began with.
    """

    def __init__(self, certificate: Path, key: Path, metrics: Metrics) -> None:
        self._files = (certificate, key)
        self._metrics = metrics
        self._seen = _MISSING
        self._current: ssl.SSLContext | None = None
        # Handshakes begin here and are handed over: the current pair is replaced whole, never half.
        self.context = _context()
        self.context.sni_callback = self._hand_over

    @property
    def ready(self) -> bool:
        """Whether there is a pair to serve with."""
        return self._current is not None

    def refresh(self) -> None:
        """Read the pair if its files are other ones than last time. Never raises for what is in them."""
        seen = _fingerprint(*self._files)
        if seen == self._seen:
            return
        self._seen = seen
        self._metrics.certificate_reads.inc()
        try:
            self._current, until = _load(*self._files)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            if not isinstance(error, ssl.SSLError):
                self._seen = _MISSING  # the files may be read the next time, and be the same
            self._metrics.certificate_errors.inc()
            kept = "the one in use is kept" if self.ready else "waiting for another"
            log.error("certificate %s and its key cannot be used: %s; %s", self._files[0], error, kept)
            return
        self._metrics.certificate_expiry.set(until)
        log.info("certificate %s read", self._files[0])

    async def watch(self) -> None:
        """Refresh for ever."""
        while True:
            self.refresh()
            await asyncio.sleep(POLL_SECONDS)

    async def wait(self) -> None:
        """Refresh until there is a pair: at the very first start its Secret may not be filled yet."""
        self.refresh()
        if not self.ready:
            log.info("waiting for certificate %s and key %s", *self._files)
        while not self.ready:
            await asyncio.sleep(POLL_SECONDS)
            self.refresh()

    def _hand_over(self, handshake: ssl.SSLObject | ssl.SSLSocket, _: str | None, __: ssl.SSLContext) -> int | None:
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        handshake.context = self._current
        return None


def _load(certificate: Path, key: Path) -> tuple[ssl.SSLContext, float]:
    """A context of the pair, and when it expires (Unix time). Raises OSError or ValueError for a bad one."""
    context = _context()
    # An empty passphrase: for a locked key, OpenSSL would ask whoever sits at the terminal, and wait.
    context.load_cert_chain(certificate, key, password="")
    return context, expiry(certificate.read_bytes())


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _fingerprint(*files: Path) -> _Fingerprint:
    """What changes when files change, symbolic links on the way to them (a Secret's `..data`) included.

    The time of change is one that copying does not set back. _MISSING while one of the files is missing.
    """
    try:
        stats = [(os.path.realpath(file), file.stat()) for file in files]
    except OSError:
        return _MISSING
    return tuple(part for path, stat in stats for part in (path, stat.st_ctime_ns, stat.st_ino, stat.st_size))
