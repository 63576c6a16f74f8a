"""The checks of certificates before memcached loads them."""

import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from memcached_agent.errors import InvalidError
from memcached_agent.reload import files
from memcached_agent.reload.files import MAX_SIZE, read_tls
from memcached_agent.reload.pairs import Pair, check
from support.pki import CA

NOW = datetime.now(UTC)
GOOD, OTHER = CA("good"), CA("other")
INTERMEDIATE = CA("intermediate", parent=GOOD)
FIRST, SECOND, CHAINED = GOOD.issue(), GOOD.issue(), INTERMEDIATE.issue()
CHAIN = {"tls.crt": CHAINED.cert, "tls.key": CHAINED.key, "ca.crt": GOOD.pem}
PLAIN = {"tls.crt": FIRST.cert, "tls.key": FIRST.key}
Files = dict[str, bytes]
UNTIL = load_pem_x509_certificate(OTHER.pem).not_valid_after_utc.strftime("%y%m%d%H%M%SZ").encode()
"""The end of the validity of a CA, as in its DER."""


def checked(directory: Path, content: Files) -> Pair:
    """Check these files."""
    for name, data in content.items():
        (directory / name).write_bytes(data)
    return check(read_tls(str(directory)), time.time())


def encrypted(key: bytes, form: pem.PrivateFormat) -> bytes:
    """A key with a password."""
    cipher = pem.BestAvailableEncryption(b"password")
    return load_pem_private_key(key, None).private_bytes(pem.Encoding.PEM, form, cipher)


VALID: dict[str, tuple[Files, bytes]] = {
    "no CA": (PLAIN, FIRST.der),
    "CA": (PLAIN | {"ca.crt": GOOD.pem}, FIRST.der),
    "empty CA": (PLAIN | {"ca.crt": b""}, FIRST.der),
    "one of two CAs": (PLAIN | {"ca.crt": OTHER.pem + GOOD.pem}, FIRST.der),
    "chain": (CHAIN, CHAINED.der),
    "chain to an intermediate CA": (CHAIN | {"ca.crt": INTERMEDIATE.pem}, CHAINED.der),
    "text before the certificate": (PLAIN | {"tls.crt": "Größe\n".encode() + FIRST.cert}, FIRST.der),
    "client CA": (PLAIN | {"client-ca.crt": OTHER.pem}, FIRST.der),
    "one valid client CA": (PLAIN | {"client-ca.crt": CA(days=0.5).pem + OTHER.pem}, FIRST.der),
    "self-signed certificate of a client": (PLAIN | {"client-ca.crt": FIRST.cert}, FIRST.der),
}


@pytest.mark.parametrize(("content", "der"), VALID.values(), ids=VALID.keys())
def test_valid_pair(tmp_path: Path, content: Files, der: bytes) -> None:
    found = checked(tmp_path, content)
    assert found.der == der
    assert found.expires == (CHAINED if der == CHAINED.der else FIRST).not_after.timestamp()


def pair(**options: datetime) -> Files:
    """The files of a certificate with these dates."""
    found = GOOD.issue(**options)  # pyright: ignore[reportArgumentType]
    return {"tls.crt": found.cert, "tls.key": found.key}


def patched(certificate: bytes, old: bytes, new: bytes) -> bytes:
    """A certificate in which the last `old` is `new`. A trusted one is used whatever its signature."""
    before, found, after = ssl.PEM_cert_to_DER_cert(certificate.decode()).rpartition(old)
    assert found
    return ssl.DER_cert_to_PEM_cert(before + new + after).encode()


DER = FIRST.der
NO_CERTIFICATE = "/tls.crt contains no complete certificate in PEM format"
NO_KEY = "/tls.key contains no complete private key in PEM format"
ENCRYPTED = "/tls.key is encrypted; store the key without a password"
CLIENT = GOOD.issue(client=True)
INVALID: dict[str, tuple[Files, str]] = {
    "wrong key": (PLAIN | {"tls.key": SECOND.key}, "/tls.key is not the key of "),
    "expired": (pair(not_after=NOW - timedelta(seconds=5)), "/tls.crt is not valid: certificate has expired; "),
    "expired, with a CA": (pair(not_after=NOW) | {"ca.crt": GOOD.pem}, "ca.crt: certificate has expired; "),
    "expired CA": (PLAIN | {"ca.crt": CA(days=0.5).pem}, "/tls.crt is not valid, for "),
    "not yet valid": (pair(not_before=NOW + timedelta(hours=1)), "/tls.crt is not valid: certificate is not yet valid"),
    "wrong CA": (PLAIN | {"ca.crt": OTHER.pem}, "unable to get local issuer certificate; issue it again"),
    "incomplete chain": (CHAIN | {"tls.crt": CHAINED.cert[: -len(INTERMEDIATE.pem)]}, "unable to get local issuer"),
    "for clients": ({"tls.crt": CLIENT.cert, "tls.key": CLIENT.key}, "suitable certificate purpose"),
    "truncated": (PLAIN | {"tls.crt": FIRST.cert[:-30]}, NO_CERTIFICATE),
    "truncated chain": (PLAIN | {"tls.crt": CHAINED.cert[:-30]}, NO_CERTIFICATE),
    "truncated key": (PLAIN | {"tls.key": FIRST.key[:-30]}, NO_KEY),
    "missing certificate": ({"tls.key": FIRST.key}, "/tls.crt is missing; add it to the Secret"),
    "missing key": ({"tls.crt": FIRST.cert}, "/tls.key is missing; add it to the Secret"),
    "nothing": ({}, "/tls.crt is missing; add it to the Secret"),
    "empty certificate": (PLAIN | {"tls.crt": b""}, "/tls.crt is empty; add it to the Secret"),
    "empty key": (PLAIN | {"tls.key": b""}, "/tls.key is empty; add it to the Secret"),
    "empty client CA": (PLAIN | {"client-ca.crt": b""}, "/client-ca.crt is empty; add it to the Secret"),
    "huge": (PLAIN | {"tls.crt": FIRST.cert * 1000}, f"/tls.crt is larger than {MAX_SIZE} bytes; use a smaller file"),
    "DER": (PLAIN | {"tls.crt": DER}, NO_CERTIFICATE),
    "key in the certificate": (PLAIN | {"tls.crt": FIRST.key}, NO_CERTIFICATE),
    "certificate in the key": (PLAIN | {"tls.key": FIRST.cert}, NO_KEY),
    "encrypted key": (PLAIN | {"tls.key": encrypted(FIRST.key, pem.PrivateFormat.PKCS8)}, ENCRYPTED),
    "old encrypted key": (
        PLAIN | {"tls.key": encrypted(FIRST.key, pem.PrivateFormat.TraditionalOpenSSL)}, ENCRYPTED),
    "damaged certificate": (PLAIN | {"tls.crt": FIRST.cert.replace(b"MII", b"AII", 1)}, " cannot be loaded: "),
    "damaged key": (PLAIN | {"tls.key": FIRST.key.replace(b"MIG", b"AIG", 1)}, " cannot be loaded: "),
    "damaged CA": (PLAIN | {"ca.crt": GOOD.pem.replace(b"MII", b"AII", 1)}, "/ca.crt cannot be parsed: "),
    "binary CA": (PLAIN | {"ca.crt": GOOD.pem.replace(b"MII", b"\xff\xff\xff", 1)}, "parsed: it is not ASCII"),
    "truncated CA": (PLAIN | {"ca.crt": GOOD.pem[:-30]}, "/ca.crt contains no complete certificate in PEM format"),
    "expired client CA": (PLAIN | {"client-ca.crt": CA(days=0.5).pem}, "ca.crt contains no certificate that is valid"),
    "name in Latin-1": (PLAIN | {"tls.crt": patched(FIRST.cert, b"localhost", b"caf\xe9.host")}, "cannot be decoded"),
    "client CA without a date": (PLAIN | {"client-ca.crt": patched(OTHER.pem, UNTIL, b"XX" + UNTIL[2:])}, "decoded"),
    "damaged client CA": (PLAIN | {"client-ca.crt": GOOD.pem.replace(b"MII", b"AII", 1)}, "ca.crt cannot be parsed"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), INVALID.values(), ids=INVALID.keys())
def test_invalid_pair_is_reported(tmp_path: Path, content: Files, message: str) -> None:
    with pytest.raises(InvalidError) as raised:
        checked(tmp_path, content)
    assert str(raised.value).startswith(str(tmp_path))
    assert message in str(raised.value)
    assert len(str(raised.value).replace(str(tmp_path), "")) < 200


def test_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tls.crt").mkdir()
    with pytest.raises(InvalidError, match=r"tls\.crt cannot be read: Is a directory"):
        read_tls(str(tmp_path))


def test_files_of_two_versions_are_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet replaces the files while the agent reads them."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        for each in ("tls.crt", "tls.key"):
            (tmp_path / name / each).write_text(name)
    for each in ("tls.crt", "tls.key"):
        (tmp_path / each).symlink_to(Path("..data") / each)
    (tmp_path / "..data").symlink_to("old")
    read: Callable[[str], files.File] = files.read

    def replacing(path: str) -> files.File:
        found = read(path)
        (tmp_path / "link").symlink_to("new")
        (tmp_path / "link").rename(tmp_path / "..data")
        return found

    monkeypatch.setattr(files, "read", replacing)
    found = read_tls(str(tmp_path))
    assert (found.certificate.content, found.key.content) == (b"new", b"new")


BEGIN, KEY = b"-----BEGIN CERTIFICATE-----", b"-----BEGIN RSA PRIVATE KEY-----"
HOSTILE: list[Files] = [
    PLAIN | {name: text * (MAX_SIZE // len(text))}
    for name in ("tls.crt", "tls.key", "ca.crt", "client-ca.crt")
    for text in (BEGIN, KEY, b"-----BEGIN ", b"-----BEGIN " + b"A" * 200)
]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_time_is_linear(tmp_path: Path, content: Files) -> None:
    """Half of this size took 7 s with expressions that start again at each beginning."""
    began = time.process_time()
    with pytest.raises(InvalidError, match="contains no complete"):
        checked(tmp_path, content)
    assert time.process_time() - began < 2
