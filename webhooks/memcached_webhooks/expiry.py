"""Reads the expiry of a certificate without the cryptography package, which takes 8 MiB of memory."""

import re
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

_PEM: Final = re.compile(rb"-----BEGIN (X509 )?CERTIFICATE-----(.+?)-----END (X509 )?CERTIFICATE-----", re.DOTALL)
_FORMS: Final = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}  # UTCTime up to 2049, GeneralizedTime from 2050 on
_VERSION: Final = 0xA0
_VALIDITY: Final = 3  # after the serial number, the algorithm and the issuer


def expiry(pem: bytes) -> float:
    """`notAfter` of the first certificate in a PEM text, in Unix time. Raises ValueError if there is none."""
    block = _PEM.search(pem)
    if block is None:
        raise ValueError("the file contains no PEM certificate")
    try:
        return _not_after(b64decode(block[2])).timestamp()
    except (LookupError, StopIteration, ValueError) as error:
        raise ValueError("the certificate has no valid expiry date") from error


def _not_after(der: bytes) -> datetime:
    """The `notAfter` of a certificate in DER (RFC 5280, section 4.1)."""
    _, certificate = next(_elements(der))
    _, to_be_signed = next(_elements(certificate))
    fields = [content for tag, content in _elements(to_be_signed) if tag != _VERSION]
    _, (tag, moment) = _elements(fields[_VALIDITY])
    return datetime.strptime(moment.decode(), _FORMS[tag]).replace(tzinfo=UTC)


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each DER element. A length of 128 or more is preceded by the number of its bytes."""
    while der:
        tag, length, start = der[0], der[1], 2
        if length & 0x80:
            start += length & 0x7F
            length = int.from_bytes(der[2:start])
        yield tag, der[start : start + length]
        der = der[start + length :]
