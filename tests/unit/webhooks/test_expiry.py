"""The expiry of a certificate equals the one that the package cryptography reads."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from memcached_webhooks.expiry import expiry

EC, RSA = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)
TODAY = datetime(2026, 1, 1, tzinfo=UTC)
DATES = [datetime(year, 12, 31, 23, 59, 58, tzinfo=UTC) for year in (1999, 2026, 2049, 2050, 2068, 2069, 2199, 9999)]


def certificate(until: datetime, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey = EC, serial: int = 1) -> bytes:
    """A self-signed certificate."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "common name " * 4)])
    names = x509.SubjectAlternativeName([x509.DNSName(f"host-{number}.example.com") for number in range(20)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), serial, min(TODAY, until - timedelta(1)), until)
    return builder.add_extension(names, critical=False).sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


@pytest.mark.parametrize("until", DATES, ids=str)
@pytest.mark.parametrize("key", [EC, RSA], ids=["EC", "RSA"])
@pytest.mark.parametrize("serial", [1, 2**158])
def test_expiry(until: datetime, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, serial: int):
    pem = certificate(until, key, serial)
    assert expiry(pem) == x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp() == until.timestamp()


def test_first_of_several_certificates_is_read():
    first, second = certificate(DATES[1]), certificate(DATES[2])
    assert expiry(b"Issued for a test.\n" + first.replace(b"\n", b"\r\n") + second) == DATES[1].timestamp()


INVALID = {
    "empty": b"",
    "no certificate": b"-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
    "empty certificate": b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
    "truncated": certificate(DATES[1])[:200] + b"\n-----END CERTIFICATE-----\n",
    "not base64": b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    "another ASN.1 structure": b"-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n",
}


@pytest.mark.parametrize("pem", INVALID.values(), ids=INVALID.keys())
def test_invalid_certificate_has_no_expiry(pem: bytes):
    with pytest.raises(ValueError, match="certificate"):
        expiry(pem)
