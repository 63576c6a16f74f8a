import ssl
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from memcached_operator.certificates.pki import (
    CLOCK_SKEW,
    LIFETIME,
    KeyPair,
    ca_bundle,
    issue,
    load_bundle,
    needs_renewal,
)
from unit.builders import NOW

NAMES = ["webhook.test.svc", "webhook.test.svc.cluster.local"]
PAIR = issue(NAMES, LIFETIME, NOW)
OTHER = issue(NAMES, LIFETIME, NOW)
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
        assert certificate.not_valid_before_utc == NOW - CLOCK_SKEW
        assert certificate.not_valid_after_utc == NOW + LIFETIME


def test_pairs_are_unique() -> None:
    assert PAIR.key != OTHER.key
    assert leaf_of(PAIR).serial_number != leaf_of(OTHER).serial_number


def encrypted(pair: KeyPair) -> bytes:
    """The key, encrypted with a password."""
    key = serialization.load_pem_private_key(pair.key, None)
    password = serialization.BestAvailableEncryption(b"secret")
    return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, password)


def without_names(pair: KeyPair) -> KeyPair:
    """A pair with a self-signed leaf without names."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    leaf = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return KeyPair(leaf.public_bytes(PEM), key.private_bytes(PEM, *encoding), leaf.public_bytes(PEM))


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
    "no names": (without_names(PAIR), NAMES),
}


@pytest.mark.parametrize(("pair", "names"), DUE.values(), ids=DUE.keys())
def test_invalid_pair_is_due(pair: KeyPair, names: list[str]) -> None:
    assert needs_renewal(pair, names, NOW)


AGES = {
    "new": (LIFETIME, timedelta(0), False),
    "just before two thirds of its lifetime": (LIFETIME, timedelta(days=60, seconds=-1), False),
    "after two thirds of its lifetime": (LIFETIME, timedelta(days=60), True),
    "expired": (LIFETIME, timedelta(days=91), True),
    "short-lived and new": (timedelta(seconds=90), timedelta(0), False),
    "short-lived, after two thirds of its lifetime": (timedelta(seconds=90), timedelta(seconds=60), True),
}


@pytest.mark.parametrize(("lifetime", "age", "due"), AGES.values(), ids=AGES.keys())
def test_pair_is_due_after_two_thirds_of_its_lifetime(lifetime: timedelta, age: timedelta, due: bool) -> None:
    assert needs_renewal(issue(NAMES, lifetime, NOW), NAMES, NOW + age) is due


def test_pair_with_more_names_than_needed_is_not_due() -> None:
    assert not needs_renewal(PAIR, NAMES[:1], NOW)


BUNDLES = {
    "empty": (b"", [PAIR]),
    "the same CA": (PAIR.ca, [PAIR]),
    "another CA": (OTHER.ca, [PAIR, OTHER]),
    "another CA and the same": (OTHER.ca + PAIR.ca, [PAIR, OTHER]),
    "another CA twice": (OTHER.ca + OTHER.ca, [PAIR, OTHER]),
    "garbage": (b"garbage", [PAIR]),
}


@pytest.mark.parametrize(("known", "pairs"), BUNDLES.values(), ids=BUNDLES.keys())
def test_bundle_has_the_current_ca_and_each_other_one_once(known: bytes, pairs: list[KeyPair]) -> None:
    assert ca_bundle(PAIR.ca, known, NOW) == b"".join(pair.ca for pair in pairs)


def test_expired_ca_is_not_trusted() -> None:
    short = issue(NAMES, timedelta(hours=1), NOW)
    assert load_bundle(ca_bundle(PAIR.ca, short.ca, NOW)) == [ca_of(PAIR), ca_of(short)]
    assert load_bundle(ca_bundle(PAIR.ca, short.ca, NOW + timedelta(hours=1))) == [ca_of(PAIR)]


def test_bundle_is_idempotent() -> None:
    once = ca_bundle(PAIR.ca, OTHER.ca, NOW)
    assert ca_bundle(PAIR.ca, once, NOW) == once


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
    return issue(NAMES, LIFETIME, datetime.now(NOW.tzinfo))


@pytest.mark.parametrize("name", NAMES)
def test_handshake_succeeds_with_each_name(name: str, current: KeyPair, tmp_path: Path) -> None:
    handshake(current, current.ca, name, tmp_path)


def test_old_and_new_leaf_are_trusted_during_a_rotation(current: KeyPair, tmp_path: Path) -> None:
    now = datetime.now(NOW.tzinfo)
    fresh = issue(NAMES, LIFETIME, now)
    bundle = ca_bundle(fresh.ca, current.ca, now)
    for pair in (current, fresh):
        handshake(pair, bundle, NAMES[0], tmp_path)


UNTRUSTED = {"another CA": (NAMES[0], OTHER.ca), "another name": ("webhook.other.svc", b"")}


@pytest.mark.parametrize(("name", "ca"), UNTRUSTED.values(), ids=UNTRUSTED.keys())
def test_handshake_fails_with(name: str, ca: bytes, current: KeyPair, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(current, ca or current.ca, name, tmp_path)
