"""Creates and checks keys and certificates. No I/O."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=90)
"""Lifetime of a CA and of its leaf certificate. cert-manager's default for a Certificate."""

RENEW_AFTER = 2 / 3
"""Fraction of the lifetime after which the pair is renewed (cert-manager's default)."""

CLOCK_SKEW = timedelta(minutes=5)
"""Time by which `notBefore` precedes the creation, for API servers whose clock is behind."""


@dataclass(frozen=True)
class KeyPair:
    """A serving certificate, its key, and the CA that signed it, each in PEM. The CA's key is not stored."""

    certificate: bytes
    key: bytes
    ca: bytes


def issue(dns_names: list[str], lifetime: timedelta, now: datetime) -> KeyPair:
    """Create a CA, sign one leaf certificate and discard the CA's key, so that it cannot sign another one."""
    ca_key, leaf_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, f"memcached-operator-webhook-ca-{int(now.timestamp())}")]
    )
    ca_usage = _usage(key_cert_sign=True, crl_sign=True)
    ca = (
        _certificate(ca_name, ca_name, ca_key, lifetime, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(ca_usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    leaf_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "memcached-operator-webhook")])
    leaf = (
        _certificate(leaf_name, ca_name, leaf_key, lifetime, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in dns_names]), critical=False)
        # OpenSSL selects the CA in a bundle by the key identifier; strict clients require both identifiers.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key = leaf_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(leaf.public_bytes(pem), key, ca.public_bytes(pem))


UNUSABLE = (
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.ExtensionNotFound,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""The errors of `cryptography` for a certificate or a key that cannot be used. Anyone with write access to the Secret
can store one."""

MAX_REASON_LENGTH = 200
"""Characters of such an error, which can contain parts of the certificate."""


def renewal_reason(pair: KeyPair, dns_names: list[str], now: datetime) -> str:
    """The reason why the pair must be replaced: it is not valid, or two thirds of its lifetime have passed.

    Empty if it need not be replaced.
    """
    try:
        leaf = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, None)
        leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(pair.ca))
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        matches = key.public_key() == leaf.public_key()
    except UNUSABLE as error:
        return f"it cannot be used: {type(error).__name__} {error}".strip()[:MAX_REASON_LENGTH]
    if not matches:
        return "tls.key is not the key of tls.crt"
    if missing := sorted(set(dns_names) - set(names.get_values_for_type(x509.DNSName))):
        return f"it is not valid for {', '.join(missing)}"
    # Only differences: a sum overflows for a certificate of the year 9999.
    begins, ends = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    is_due = now - begins - CLOCK_SKEW >= (ends - begins - CLOCK_SKEW) * RENEW_AFTER
    return f"it is valid until {ends}" if is_due else ""


def ca_bundle(current: bytes, known: bytes, now: datetime) -> bytes:
    """The CA bundle: the current CA, and every known CA that has not expired, so that old leaves stay trusted."""
    own = x509.load_pem_x509_certificate(current)
    others = [ca for ca in load_bundle(known) if ca != own and ca.not_valid_after_utc > now]
    return b"".join(ca.public_bytes(serialization.Encoding.PEM) for ca in [own, *unique(others)])


def load_bundle(bundle: bytes) -> list[x509.Certificate]:
    """The certificates of a bundle; empty if it cannot be parsed (it is then replaced)."""
    try:
        return x509.load_pem_x509_certificates(bundle)
    except (ValueError, x509.InvalidVersion):
        return []


def unique(certificates: Iterable[x509.Certificate]) -> list[x509.Certificate]:
    """The certificates without duplicates, in their original order."""
    return list(dict.fromkeys(certificates))


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime: timedelta, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )
