import base64
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from memcached_operator.certificates import pki
from memcached_operator.certificates.pki import KeyPair
from unit.builders import NOW

NAMES = ["webhook.test.svc", "webhook.test.svc.cluster.local"]
PAIR = pki.issue(NAMES, pki.LIFETIME, NOW)
OTHER = pki.issue(NAMES, pki.LIFETIME, NOW)
PEM = serialization.Encoding.PEM


def leaf_of(pair: KeyPair) -> x509.Certificate:
    """The parsed leaf certificate."""
    return x509.load_pem_x509_certificate(pair.certificate)


def ca_of(pair: KeyPair) -> x509.Certificate:
    """The parsed CA certificate."""
    return x509.load_pem_x509_certificate(pair.ca)


def test_leaf_is_valid_for_its_names_and_for_servers_only() -> None:
    extensions = leaf_of(PAIR).extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == NAMES
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_ca_may_sign_leaves_but_no_other_ca() -> None:
    constraints = ca_of(PAIR).extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (constraints.ca, constraints.path_length) == (True, 0)
    leaf_of(PAIR).verify_directly_issued_by(ca_of(PAIR))


def test_ca_and_leaf_have_the_same_validity_with_clock_skew() -> None:
    for certificate in (ca_of(PAIR), leaf_of(PAIR)):
        assert certificate.not_valid_before_utc == NOW - pki.CLOCK_SKEW
        assert certificate.not_valid_after_utc == NOW + pki.LIFETIME


def test_pairs_are_unique() -> None:
    assert PAIR.key != OTHER.key
    assert leaf_of(PAIR).serial_number != leaf_of(OTHER).serial_number


def encrypted(pair: KeyPair) -> bytes:
    """The key, encrypted with a password."""
    key = serialization.load_pem_private_key(pair.key, None)
    password = serialization.BestAvailableEncryption(b"secret")
    return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, password)


KEY = ec.generate_private_key(ec.SECP256R1())


def self_signed(*extensions: x509.ExtensionType, begins: datetime = NOW, lifetime: timedelta = pki.LIFETIME) -> KeyPair:
    """A pair whose leaf, which has no other extensions than these, is its own CA."""
    name = x509.Name([])
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 1, begins, begins + lifetime)
    for extension in (x509.BasicConstraints(ca=False, path_length=None), *extensions):
        builder = builder.add_extension(extension, critical=False)
    certificate = builder.sign(KEY, hashes.SHA256()).public_bytes(PEM)
    encoding = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return KeyPair(certificate, KEY.private_bytes(PEM, *encoding), certificate)


def changed(pem: bytes, old: str, new: str) -> bytes:
    """A certificate or key with other bytes (in hexadecimal digits), which must occur once."""
    begin, *lines, end = pem.splitlines()
    der = base64.b64decode(b"".join(lines))
    assert der.count(bytes.fromhex(old)) == 1
    return b"\n".join([begin, base64.b64encode(der.replace(bytes.fromhex(old), bytes.fromhex(new))), end, b""])


def forged(old: str, new: str) -> KeyPair:
    """A pair whose CA has signed a leaf with other bytes, of which the last length has one byte."""
    pair = self_signed(x509.SubjectAlternativeName([x509.DNSName(name) for name in NAMES]))
    original = leaf_of(pair).tbs_certificate_bytes
    assert original.count(bytes.fromhex(old)) == 1
    content = original.replace(bytes.fromhex(old), bytes.fromhex(new))
    signature = KEY.sign(content, ec.ECDSA(hashes.SHA256()))
    ecdsa_with_sha256 = bytes.fromhex("300a06082a8648ce3d040302")
    body = content + ecdsa_with_sha256 + bytes([3, len(signature) + 1, 0]) + signature
    der = bytes.fromhex("3082") + len(body).to_bytes(2) + body
    leaf = b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"
    return replace(pair, certificate=leaf)


VERSION, NEW_VERSION = "a003020102", "a003020107"
ALGORITHM, NEW_ALGORITHM = "06072a8648ce3d0201", "06072a8648ce3d0209"
CURVE, NEW_CURVE = "06082a8648ce3d030107", "06082a8648ce3d030177"
CONSTRAINTS, ALTERNATIVE_NAME = "0603551d13", "0603551d11"
FIRST_NAME = (bytes([0x82, len(NAMES[0])]) + NAMES[0].encode()).hex()
X400_ADDRESS = (bytes([0xA3, len(NAMES[0])]) + NAMES[0].encode()).hex()


DUE = {
    "no certificate": (KeyPair(b"", PAIR.key, PAIR.ca), NAMES),
    "invalid certificate": (KeyPair(b"garbage", PAIR.key, PAIR.ca), NAMES),
    "no key": (KeyPair(PAIR.certificate, b"", PAIR.ca), NAMES),
    "invalid key": (KeyPair(PAIR.certificate, b"garbage", PAIR.ca), NAMES),
    "encrypted key": (KeyPair(PAIR.certificate, encrypted(PAIR), PAIR.ca), NAMES),
    "key of another pair": (KeyPair(PAIR.certificate, OTHER.key, PAIR.ca), NAMES),
    "no CA": (KeyPair(PAIR.certificate, PAIR.key, b""), NAMES),
    "CA of another pair": (KeyPair(PAIR.certificate, PAIR.key, OTHER.ca), NAMES),
    "other names": (PAIR, ["webhook.other.svc"]),
    "missing name": (PAIR, [*NAMES, "webhook.other.svc"]),
    "no names": (self_signed(), NAMES),
    "unknown version": (forged(VERSION, NEW_VERSION), NAMES),
    "unknown algorithm": (forged(ALGORITHM, NEW_ALGORITHM), NAMES),
    "unknown curve": (forged(CURVE, NEW_CURVE), NAMES),
    "two extensions of one type": (forged(CONSTRAINTS, ALTERNATIVE_NAME), NAMES),
    "name of an unknown type": (forged(FIRST_NAME, X400_ADDRESS), NAMES),
    "unknown version of the CA": (replace(PAIR, ca=changed(PAIR.ca, VERSION, NEW_VERSION)), NAMES),
    "unknown algorithm of the CA": (replace(PAIR, ca=changed(PAIR.ca, ALGORITHM, NEW_ALGORITHM)), NAMES),
    "unknown algorithm of the key": (replace(PAIR, key=changed(PAIR.key, ALGORITHM, NEW_ALGORITHM)), NAMES),
}


@pytest.mark.parametrize(("pair", "names"), DUE.values(), ids=DUE.keys())
def test_invalid_pair_is_due(pair: KeyPair, names: list[str]) -> None:
    assert pki.renewal_reason(pair, names, NOW)


def test_forged_pair_without_a_change_is_valid() -> None:
    assert pki.renewal_reason(forged(VERSION, VERSION), NAMES, NOW) == ""


REASONS = {
    "it cannot be used: UnsupportedAlgorithm Unknown key type: 1.2.840.10045.2.9": forged(ALGORITHM, NEW_ALGORITHM),
    "it cannot be used: InvalidVersion 7 is not a valid X509 version": forged(VERSION, NEW_VERSION),
    "it cannot be used: InvalidSignature": replace(PAIR, ca=OTHER.ca),
    "tls.key is not the key of tls.crt": replace(PAIR, key=OTHER.key),
    "it is not valid for webhook.test.svc.cluster.local": pki.issue(NAMES[:1], pki.LIFETIME, NOW),
    "it is valid until 2030-01-01 12:00:00+00:00": pki.issue(NAMES, timedelta(seconds=30), NOW - timedelta(seconds=30)),
}


@pytest.mark.parametrize(("reason", "pair"), REASONS.items())
def test_reason_of_a_renewal(reason: str, pair: KeyPair) -> None:
    assert pki.renewal_reason(pair, NAMES, NOW) == reason


AGES = {
    "new": (pki.LIFETIME, timedelta(0), False),
    "just before two thirds of its lifetime": (pki.LIFETIME, timedelta(days=60, seconds=-1), False),
    "after two thirds of its lifetime": (pki.LIFETIME, timedelta(days=60), True),
    "expired": (pki.LIFETIME, timedelta(days=91), True),
    "short-lived and new": (timedelta(seconds=90), timedelta(0), False),
    "short-lived, after two thirds of its lifetime": (timedelta(seconds=90), timedelta(seconds=60), True),
}


@pytest.mark.parametrize(("lifetime", "age", "due"), AGES.values(), ids=AGES.keys())
def test_pair_is_due_after_two_thirds_of_its_lifetime(lifetime: timedelta, age: timedelta, due: bool) -> None:
    assert bool(pki.renewal_reason(pki.issue(NAMES, lifetime, NOW), NAMES, NOW + age)) is due


def test_pair_of_the_last_minute_is_not_due() -> None:
    """Nothing is added to its times, which would be an error."""
    names = x509.SubjectAlternativeName([x509.DNSName(name) for name in NAMES])
    last = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    assert pki.renewal_reason(self_signed(names, begins=last, lifetime=timedelta(seconds=59)), NAMES, NOW) == ""


def test_pair_with_more_names_than_needed_is_not_due() -> None:
    assert pki.renewal_reason(PAIR, NAMES[:1], NOW) == ""


BUNDLES = {
    "empty": (b"", [PAIR]),
    "the same CA": (PAIR.ca, [PAIR]),
    "another CA": (OTHER.ca, [PAIR, OTHER]),
    "another CA and the same": (OTHER.ca + PAIR.ca, [PAIR, OTHER]),
    "another CA twice": (OTHER.ca + OTHER.ca, [PAIR, OTHER]),
    "garbage": (b"garbage", [PAIR]),
    "unknown version": (changed(OTHER.ca, VERSION, NEW_VERSION), [PAIR]),
}


@pytest.mark.parametrize(("known", "pairs"), BUNDLES.values(), ids=BUNDLES.keys())
def test_bundle_has_the_current_ca_and_each_other_one_once(known: bytes, pairs: list[KeyPair]) -> None:
    assert pki.ca_bundle(PAIR.ca, known, NOW) == b"".join(pair.ca for pair in pairs)


def test_expired_ca_is_not_trusted() -> None:
    short = pki.issue(NAMES, timedelta(hours=1), NOW)
    assert pki.load_bundle(pki.ca_bundle(PAIR.ca, short.ca, NOW)) == [ca_of(PAIR), ca_of(short)]
    assert pki.load_bundle(pki.ca_bundle(PAIR.ca, short.ca, NOW + timedelta(hours=1))) == [ca_of(PAIR)]


def test_bundle_is_idempotent() -> None:
    once = pki.ca_bundle(PAIR.ca, OTHER.ca, NOW)
    assert pki.ca_bundle(PAIR.ca, once, NOW) == once


def handshake(pair: KeyPair, bundle: bytes, name: str, folder: Path) -> None:
    """Run an in-memory TLS handshake, as between the API server and a webhook pod."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cadata=bundle.decode())
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server, server_hostname=name)
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(2):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.version() == server.version() == "TLSv1.3"


@pytest.fixture
def current() -> KeyPair:
    """A pair that is valid now."""
    return pki.issue(NAMES, pki.LIFETIME, datetime.now(NOW.tzinfo))


@pytest.mark.parametrize("name", NAMES)
def test_handshake_succeeds_with_each_name(name: str, current: KeyPair, tmp_path: Path) -> None:
    handshake(current, current.ca, name, tmp_path)


def test_old_and_new_leaf_are_trusted_during_a_rotation(current: KeyPair, tmp_path: Path) -> None:
    now = datetime.now(NOW.tzinfo)
    fresh = pki.issue(NAMES, pki.LIFETIME, now)
    bundle = pki.ca_bundle(fresh.ca, current.ca, now)
    for pair in (current, fresh):
        handshake(pair, bundle, NAMES[0], tmp_path)


UNTRUSTED = {"another CA": (NAMES[0], OTHER.ca), "another name": ("webhook.other.svc", b"")}


@pytest.mark.parametrize(("name", "ca"), UNTRUSTED.values(), ids=UNTRUSTED.keys())
def test_handshake_fails_with(name: str, ca: bytes, current: KeyPair, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(current, ca or current.ca, name, tmp_path)
