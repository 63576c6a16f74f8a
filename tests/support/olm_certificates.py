"""Admission's certificate under OLM: the Secret, the certificates that pods serve, and the CA bundles."""

import base64
import json
import ssl
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from memcached_operator.certificates import pki
from support import kube
from support.kube import Object, eventually, kubectl
from support.memcached import memcached
from support.olm import WEBHOOK, Installation
from support.probing import ProbeResults, Record, probing
from support.waiting import REQUEST, ROLLOUT

SECRET = f"{WEBHOOK}-service-cert"
"""The name is the same in OLM v0 and v1."""
STABLE_SECONDS = 5.0
"""Seconds without a failed probe after which a certificate change counts as complete."""


def secret_files(installation: Installation) -> dict[str, bytes]:
    """The files in the Secret; empty if it does not exist."""
    found = kube.get("secrets", installation.namespace, SECRET) or {}
    return {name: base64.b64decode(data) for name, data in found.get("data", {}).items()}


def write_secret(installation: Installation, content: Mapping[str, bytes]) -> None:
    """Change the content of the Secret."""
    data = {name: base64.b64encode(each).decode() for name, each in content.items()}
    kubectl(
        "patch", "secret", SECRET, "-n", installation.namespace, "--type=merge", "-p", json.dumps({"data": data})
    )  # fmt: skip


def issue(installation: Installation, lifetime: timedelta) -> pki.KeyPair:
    """A certificate for the webhook's Service, signed by a new CA."""
    names = [f"{WEBHOOK}-service.{installation.namespace}{end}" for end in ("", ".svc", ".svc.cluster.local")]
    return pki.issue(names, lifetime, datetime.now(UTC))


def serial(certificate: bytes) -> int:
    """The serial number of a certificate in PEM."""
    return x509.load_pem_x509_certificate(certificate).serial_number


def served_certificate(pod: Object) -> x509.Certificate | None:
    """The certificate that a pod serves; None if it does not respond."""
    try:
        text = ssl.get_server_certificate((pod["status"].get("podIP", ""), 9443), timeout=REQUEST)
    except OSError:
        return None
    return x509.load_pem_x509_certificate(text.encode())


def served_serials(pods: Iterable[Object]) -> set[int]:
    """The serial numbers of the certificates that pods serve; 0 for a pod that does not respond."""
    return {found.serial_number if (found := served_certificate(pod)) else 0 for pod in pods}


def trust(installation: Installation, *authorities: bytes) -> None:
    """Set the CA bundle of all webhook configurations."""
    value = base64.b64encode(b"".join(authorities)).decode()
    patch = json.dumps([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": value}])
    for each in installation.configurations():
        kubectl("patch", each["kind"], each["metadata"]["name"], "--type=json", "-p", patch)


def trusted_bundles(installation: Installation) -> set[bytes]:
    """The CA bundles of the webhook configurations: one, unless they differ."""
    found = (each["webhooks"][0]["clientConfig"].get("caBundle", "") for each in installation.configurations())
    return {base64.b64decode(each) for each in found}


def trust_error(installation: Installation) -> str:
    """An error if no ready pod serves a certificate that the API server trusts; else empty."""
    bundles = [pki.load_bundle(each) for each in trusted_bundles(installation)]
    leaves = [served_certificate(pod) for pod in installation.pods(WEBHOOK) if kube.ready(pod)]
    if any(leaf and all(any(signed(leaf, ca) for ca in bundle) for bundle in bundles) for leaf in leaves):
        return ""
    return f"none of {len(leaves)} ready pods serves a trusted certificate"


def signed(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether a certificate is signed by this CA, which may be itself."""
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def wait_until_rotated(installation: Installation, before: bytes, results: ProbeResults) -> bytes:
    """Wait until every pod serves a new certificate and admission responds without failures; return the certificate."""

    def rotated() -> bytes | None:
        content = secret_files(installation)
        found = content.get("tls.crt", before)
        assert found != before, "no new certificate"
        assert served_serials(installation.pods(WEBHOOK)) == {serial(found)}
        assert trusted_bundles(installation) == {content["olmCAKey"]}, "the CA bundles do not match the Secret"
        return found if results.stable_seconds() > STABLE_SECONDS else None

    found = eventually(rotated, ROLLOUT, "the certificate is rotated")
    assert found
    return found


def admission_error(namespace: str) -> str:
    """The error of creating a Memcached with a dry run; empty if it would be accepted."""
    return kube.dry_run_error("memcacheds", memcached(namespace, "dry-run"))


@contextmanager
def recorded_availability(installation: Installation, namespace: str, record: Record) -> Generator[ProbeResults]:
    """Probe admission until the block ends, and record its outage and OLM's own.

    OLM changes the CA bundle before a ready pod serves a matching certificate; in between, writes fail.
    """
    with probing(lambda: admission_error(namespace)) as admission, probing(lambda: trust_error(installation)) as trust:
        yield admission
    record("longest outage of admission, in seconds", round(admission.longest_outage(), 1))
    record("longest mismatch of CA bundles and certificates, in seconds", round(trust.longest_outage(), 1))
