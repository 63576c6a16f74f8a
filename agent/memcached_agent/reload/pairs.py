"""Check certificates before memcached loads them: what it cannot use would replace what it serves.

All checks use OpenSSL, as memcached does, on the content that was read: the files may change meanwhile.
"""

import os
import ssl
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from memcached_agent.errors import InvalidError
from memcached_agent.reload.files import File, TlsFiles

ROUNDS: Final = 6
"""Messages of a handshake in memory; TLS 1.3 needs three."""
REASON_LENGTH: Final = 80
"""Characters of OpenSSL's reason that become part of a message."""
DATES: Final = ("notBefore", "notAfter")

BEGIN_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
END_CERTIFICATE: Final = b"-----END CERTIFICATE-----"
KEYS: Final = (b"PRIVATE KEY", b"RSA PRIVATE KEY", b"EC PRIVATE KEY", b"DSA PRIVATE KEY")
"""The names of keys in PEM format that OpenSSL reads without a password."""


class Pair(NamedTuple):
    """A certificate that is valid. `expires`: seconds since 1970. `context`: serves it."""

    der: bytes
    expires: float
    context: ssl.SSLContext


def check(files: TlsFiles, now: float) -> Pair:
    """The pair in these files. Raises InvalidError unless it is valid at `now`, in seconds since 1970.

    The key matches, the chain can be parsed, and `ca.crt` verifies it; without `ca.crt`, only its dates are verified.
    `client-ca.crt`, if it exists, has a certificate that is valid now.
    """
    chain = _certificates(files.certificate)
    context = server_context(files)
    if files.client_ca.content is not None:
        _check_client_ca(files.client_ca, now)
    if files.ca.content:  # some issuers write an empty one
        return _verify(context, _trusting(files.ca, _certificates(files.ca)), files, f", for {files.ca.path}")
    return _verify(context, _trusting(files.certificate, chain[:1]), files, "")


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """A context for servers with this pair: TLS 1.2 or later, no certificates of clients. Raises InvalidError."""
    _check_key(files.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0  # no session is resumed: scrapes keep their connection
    with _memory_file(files.certificate) as certificate, _memory_file(files.key) as key:
        try:
            context.load_cert_chain(certificate, key, password=lambda: _encrypted(files.key))
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise InvalidError(
                    f"{files.key.path} is not the key of {files.certificate.path}; store a certificate with its own key"
                ) from None
            paths = f"{files.certificate.path} or {files.key.path}"
            raise InvalidError(f"{paths} cannot be loaded: {_reason(error)}; issue the certificate again") from None
    return context


def _certificates(file: File) -> list[bytes]:
    """The certificates in a PEM file, each as PEM. Raises InvalidError if there is none, or an incomplete one."""
    pieces = [part.partition(END_CERTIFICATE) for part in _content(file).split(BEGIN_CERTIFICATE)[1:]]
    if not pieces or not all(end for _, end, _ in pieces):
        raise InvalidError(
            f"{file.path} contains no complete certificate in PEM format; store the whole certificate as PEM"
        )
    return [b"".join((BEGIN_CERTIFICATE, body, end)) for body, end, _ in pieces]


def _check_key(file: File) -> None:
    if b"ENCRYPTED" in _content(file):
        _encrypted(file)
    if not any(_has_key(_content(file), name) for name in KEYS):
        raise InvalidError(f"{file.path} contains no complete private key in PEM format; store the whole key as PEM")


def _has_key(content: bytes, name: bytes) -> bool:
    _, begin, rest = content.partition(b"-----BEGIN %b-----" % name)
    return bool(begin) and b"-----END %b-----" % name in rest


def _encrypted(file: File) -> str:
    raise InvalidError(f"{file.path} is encrypted; store the key without a password")


def _content(file: File) -> bytes:
    if file.content:
        return file.content
    raise InvalidError(f"{file.path} is {'missing' if file.content is None else 'empty'}; add it to the Secret")


def _trusting(file: File, certificates: list[bytes]) -> ssl.SSLContext:
    """A context for clients that trust these certificates, whether they are roots or not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # pods have several names; clients check the one that they use
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=b"\n".join(certificates).decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        reason = _reason(error) if isinstance(error, ssl.SSLError) else "it is not ASCII"
        raise InvalidError(f"{file.path} cannot be parsed: {reason}; store certificates in PEM format") from None
    return context


def _check_client_ca(file: File, now: float) -> None:
    """Raise InvalidError unless a certificate is valid at `now`. Only those of authorities tell their dates."""
    context = _trusting(file, _certificates(file))
    try:
        dates = [[ssl.cert_time_to_seconds(str(a[date])) for date in DATES] for a in context.get_ca_certs()]
    except ValueError:
        raise _malformed(file) from None
    only_authorities = len(dates) == context.cert_store_stats()["x509"]
    if only_authorities and not any(first <= now <= last for first, last in dates):
        raise InvalidError(f"{file.path} contains no certificate that is valid now; store a valid one")


def _verify(server: ssl.SSLContext, client: ssl.SSLContext, files: TlsFiles, authority: str) -> Pair:
    """Verify the certificate of `server` as a client does, by a handshake in memory."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True))
    try:
        for _ in range(ROUNDS):
            for side in sides:
                with suppress(ssl.SSLWantReadError):
                    side.do_handshake()
    except ssl.SSLCertVerificationError as error:
        reason = error.verify_message[:REASON_LENGTH]
        raise InvalidError(f"{files.certificate.path} is not valid{authority}: {reason}; issue it again") from None
    except ssl.SSLError as error:
        raise InvalidError(f"{files.certificate.path} cannot be used: {_reason(error)}; issue it again") from None
    try:
        return _pair(sides[0], server)
    except ValueError:
        raise _malformed(files.certificate) from None


def _pair(client: ssl.SSLObject, server: ssl.SSLContext) -> Pair:
    """The certificate that a client got. Raises ValueError if its names are not UTF-8."""
    der, fields = client.getpeercert(binary_form=True), client.getpeercert()
    if not der or not fields:
        raise InvalidError("the certificate cannot be used in a handshake; issue it again")
    return Pair(der, ssl.cert_time_to_seconds(str(fields["notAfter"])), server)


def _malformed(file: File) -> InvalidError:
    return InvalidError(f"{file.path} contains a certificate whose names or dates cannot be decoded; issue it again")


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "OpenSSL reports no reason").lower().replace("_", " ")[:REASON_LENGTH]


@contextmanager
def _memory_file(file: File) -> Generator[str]:
    """A path of the content in memory: OpenSSL reads keys only from paths, and the file itself may change."""
    descriptor = os.memfd_create("pem")
    try:
        with open(descriptor, "wb", closefd=False) as memory:
            memory.write(_content(file))
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
