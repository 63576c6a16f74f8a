"""Certificate authorities and certificates for tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM. `cert`: the certificate, followed by the chain up to the authority."""

    cert: bytes
    key: bytes
    serial: int

    @property
    def der(self) -> bytes:
        """The certificate itself, without the chain, as DER."""
        return x509.load_pem_x509_certificate(self.cert).public_bytes(Encoding.DER)

    @property
    def not_after(self) -> datetime:
        """When it expires."""
        return x509.load_pem_x509_certificate(self.cert).not_valid_after_utc


PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def ecdsa_key() -> PrivateKey:
    """A key for ECDSA."""
    return ec.generate_private_key(ec.SECP256R1())


def rsa_key() -> PrivateKey:
    """A key for RSA with 2,048 bits."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class CA:
    """A certificate authority with its own key. `pem`: its certificate. `parent`: None for a root.

    `new_key` makes its key and those of the certificates that it issues.
    """

    def __init__(
        self,
        name: str = "root",
        *,
        days: float = 3650,
        not_before: datetime | None = None,
        parent: "CA | None" = None,
        new_key: "Callable[[], PrivateKey]" = ecdsa_key,
    ) -> None:
        self._name = _name(name)
        self._new_key = new_key
        self._key = new_key()
        self._parent = parent
        issuer, signer = (parent._name, parent._key) if parent else (self._name, self._key)
        builder = _builder(self._name, issuer, self._key, not_before, days)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.pem = builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM)

    def issue(
        self,
        names: Sequence[str] = ("localhost",),
        *,
        days: float = 90,
        not_before: datetime | None = None,
        not_after: datetime | None = None,
        client: bool = False,
    ) -> Pair:
        """Issue a certificate for DNS names or IP addresses.

        It is valid from `not_before` (default: a day ago) for `days`, or until `not_after`. `client`: for the
        authentication of clients, not of servers.
        """
        start = not_before or datetime.now(UTC) - timedelta(days=1)
        lasts = (not_after - start) / timedelta(days=1) if not_after else days
        key = self._new_key()
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        certificate = (
            _builder(_name(names[0]), self._name, key, start, lasts)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectAlternativeName([_general_name(each) for each in names]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        chain = certificate.public_bytes(Encoding.PEM) + self._intermediates()
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Pair(chain, pem, certificate.serial_number)

    def _intermediates(self) -> bytes:
        """The certificates between those that it issues and the root, which is left out."""
        return b"" if self._parent is None else self.pem + self._parent._intermediates()


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, start: datetime | None, days: float
) -> x509.CertificateBuilder:
    first = start or datetime.now(UTC) - timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(first)
        .not_valid_after(first + timedelta(days=days))
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
