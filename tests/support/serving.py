"""The certificate of admission under OLM: what its Secret holds, what pods show, and whom the API server trusts."""

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
from support.watching import Answers, Record, asking

SECRET = f"{WEBHOOK}-service-cert"
"""The same with both generations of OLM."""
RELOAD = 30
"""Seconds until a pod serves what is in its Secret: the kubelet takes its time with a volume."""
ROTATION = 90
"""Seconds until all pods serve a new certificate: OLM replaces them, some at a time."""
WINDOW = 30
"""Seconds for which OLM's new CA and the pods' old certificate may not fit: until a new pod is ready."""
STEADY = 5
"""Seconds of answers in a row after which a change of certificates counts as over."""
SLACK = 5
"""Seconds until admission is asked again, and answers, after a pod has become fit to: proxies learn of it, for one."""


def files(installation: Installation) -> dict[str, bytes]:
    """What is in the Secret; nothing while there is none."""
    found = kube.get("secrets", installation.namespace, SECRET) or {}
    return {name: base64.b64decode(data) for name, data in found.get("data", {}).items()}


def write(installation: Installation, content: Mapping[str, bytes]) -> None:
    """Replace what is in the Secret, in place."""
    data = {name: base64.b64encode(each).decode() for name, each in content.items()}
    kubectl(
        "patch", "secret", SECRET, "-n", installation.namespace, "--type=merge", "-p", json.dumps({"data": data})
    )  # fmt: skip


def issue(installation: Installation, lifetime: timedelta) -> pki.KeyPair:
    """A certificate for the webhook's Service of a CA that nobody knows yet."""
    names = [f"{WEBHOOK}-service.{installation.namespace}{end}" for end in ("", ".svc", ".svc.cluster.local")]
    return pki.issue(names, lifetime, datetime.now(UTC))


def serial(certificate: bytes) -> int:
    """The serial number of a certificate in PEM."""
    return x509.load_pem_x509_certificate(certificate).serial_number


def shown(pod: Object) -> x509.Certificate | None:
    """What a pod shows to whoever calls; None while it shows nothing."""
    try:
        text = ssl.get_server_certificate((pod["status"].get("podIP", ""), 9443), timeout=5)
    except OSError:
        return None
    return x509.load_pem_x509_certificate(text.encode())


def served(pods: Iterable[Object]) -> set[int]:
    """The serial numbers of what pods show; 0 for one that shows nothing."""
    return {found.serial_number if (found := shown(pod)) else 0 for pod in pods}


def trust(installation: Installation, *authorities: bytes) -> None:
    """Have the API server trust these CAs where it calls admission, and no others."""
    value = base64.b64encode(b"".join(authorities)).decode()
    patch = json.dumps([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": value}])
    for each in installation.configurations():
        kubectl("patch", each["kind"], each["metadata"]["name"], "--type=json", "-p", patch)


def trusted(installation: Installation) -> set[bytes]:
    """Whom the API server trusts where it calls admission: one bundle, unless the configurations differ."""
    found = (each["webhooks"][0]["clientConfig"].get("caBundle", "") for each in installation.configurations())
    return {base64.b64decode(each) for each in found}


def unfit(installation: Installation) -> str:
    """Why the API server cannot call admission: no ready pod shows a certificate that it trusts. Empty if it can."""
    bundles = [pki.load_bundle(each) for each in trusted(installation)]
    leaves = [shown(pod) for pod in installation.pods(WEBHOOK) if kube.ready(pod)]
    if any(leaf and all(any(signed(leaf, ca) for ca in bundle) for bundle in bundles) for leaf in leaves):
        return ""
    return f"none of {len(leaves)} ready pods shows what is trusted"


def signed(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether a certificate is of a CA, or of itself."""
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def rotated(installation: Installation, before: bytes, answers: Answers) -> bytes:
    """Wait until every pod serves another certificate than before and admission answers steadily; the new one."""

    def look() -> bytes | None:
        content = files(installation)
        found = content.get("tls.crt", before)
        assert found != before, "no new certificate"
        assert served(installation.pods(WEBHOOK)) == {serial(found)}
        assert trusted(installation) == {content["olmCAKey"]}, "the API server is told whom to trust"
        return found if answers.steady() > STEADY else None

    found = eventually(look, ROTATION, "the certificate is rotated")
    assert found
    return found


def answer(namespace: str) -> str:
    """What is said to somebody who would create a Memcached; empty if it would be accepted."""
    return kube.would_be_created("memcacheds", memcached(namespace, "would-it-be-admitted"))


@contextmanager
def asked(installation: Installation, namespace: str, bound: float, record: Record) -> Generator[Answers]:
    """Ask admission the whole time, and look for OLM's own window: trust has changed, and no pod fits yet.

    Both become figures of the report. Admission must have been silent for no longer than the window, and than `bound`
    (seconds).
    """
    with asking(lambda: answer(namespace)) as admission, asking(lambda: unfit(installation)) as fitting:
        yield admission
        silence, window = admission.longest_silence(), fitting.longest_silence()
    record("longest silence of admission, in seconds", round(silence, 1))
    record("trust and certificates do not fit for, in seconds", round(window, 1))
    assert silence < min(bound, window + SLACK), admission.bad
