"""The webhook's certificate is renewed and revoked while admission serves; each deployment shows the first start."""

import base64
import json
import shlex
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from memcached_operator.certificates import pki
from support import installed, kube, programs
from support.code_blocks import page_commands
from support.kube import Object, eventually, kubectl
from support.memcached import memcached
from support.secrets import sync
from support.waiting import REQUEST, ROLLOUT

NAMES = [f"memcached-operator-webhook-service.{installed.NAMESPACE}.svc{end}" for end in ("", ".cluster.local")]
RENEWED = ROLLOUT
"""Seconds until pods serve a renewed certificate: the leader checks every 10 s."""
MANY = 100
WEBHOOKS = 6
"""Each of the two kinds has a mutating and a validating webhook."""

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Wait until admission works again after each test: the leader replaces an invalid pair in the Secret."""
    yield
    installed.wait_until_up()


def secret() -> dict[str, bytes]:
    """The files in the Secret; empty if it does not exist."""
    found = kube.get("secrets", installed.NAMESPACE, installed.CERTIFICATE) or {}
    return {name: base64.b64decode(data) for name, data in found.get("data", {}).items()}


def trusted() -> list[list[x509.Certificate]]:
    """The CA certificates of each webhook."""
    return [pki.load_bundle(bundle) for bundle in installed.bundles()]


def served() -> set[int]:
    """The serial numbers of the certificates that the admission pods serve."""
    return {served_serial(pod["status"]["podIP"]) for pod in installed.pods(installed.WEBHOOK)}


def served_serial(address: str) -> int:
    """The serial number of a TLS server's certificate, which is not verified."""
    served = ssl.get_server_certificate((address, 9443), timeout=REQUEST)
    return x509.load_pem_x509_certificate(served.encode()).serial_number


def serial(certificate: bytes) -> int:
    """The serial number of a certificate in PEM."""
    return x509.load_pem_x509_certificate(certificate).serial_number


def old_pair() -> pki.KeyPair:
    """A pair issued 61 days ago: more than two thirds of its lifetime have passed."""
    return pki.issue(NAMES, pki.LIFETIME, datetime.now(UTC) - timedelta(days=61))


def store(pair: pki.KeyPair) -> None:
    """Write a pair into the Secret."""
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": pair.ca}
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    patch = json.dumps({"data": data})
    kubectl("patch", "secret", installed.CERTIFICATE, "-n", installed.NAMESPACE, "--type=merge", "-p", patch)


def apply_objects(namespace: str, first: int, note: str) -> None:
    """Apply five objects whose pods cannot be scheduled; only their admission matters."""
    objects: list[Object] = []
    for number in range(first, first + 5):
        obj = memcached(namespace, f"cache-{number}", resources={"requests": {"cpu": "5000"}})
        objects.append({**obj, "metadata": {**obj["metadata"], "annotations": {"note": note}}})
    kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": objects})


@pytest.mark.race
def test_no_request_fails_during_renewal(namespace: str) -> None:
    before, old = secret(), old_pair()
    installed.trust(old.ca + before["ca.crt"])
    store(old)
    applied, deadline = 0, time.monotonic() + RENEWED
    renewed = False
    # Each apply must succeed, until every pod serves the new certificate, and for at least 100 objects.
    while not renewed or applied < MANY:
        assert time.monotonic() < deadline, f"not renewed within {RENEWED} s; {applied} objects were applied"
        apply_objects(namespace, applied % MANY, f"number {applied}")
        applied += 5
        now = secret()["tls.crt"]
        if now not in (before["tls.crt"], old.certificate):
            sync(installed.pods(installed.WEBHOOK))
            renewed = served() == {serial(now)}
    apply_objects(namespace, 0, "with the new certificate")
    assert len(kube.items("memcacheds", namespace)) == MANY
    wanted = {serial(each) for each in (before["ca.crt"], old.ca, secret()["ca.crt"])}
    assert [{ca.serial_number for ca in bundle} for bundle in trusted()] == [wanted] * WEBHOOKS


def test_admission_account_has_no_special_permissions() -> None:
    def permissions(account: str) -> str:
        user = f"--as=system:serviceaccount:{installed.NAMESPACE}:{account}"
        return kubectl("auth", "can-i", "--list", user, "-n", installed.NAMESPACE).stdout

    accounts = {pod["spec"]["serviceAccountName"] for pod in installed.pods(installed.WEBHOOK)}
    assert accounts == {"memcached-operator-webhook"}
    assert permissions("memcached-operator-webhook") == permissions("does-not-exist")
    assert permissions("memcached-operator-controller-manager") != permissions("does-not-exist")


def run(command: str) -> None:
    """Run a command, which must succeed."""
    done = programs.run(shlex.split(command))
    assert done.returncode == 0, f"{command}: {done.stderr}"


@pytest.mark.race
def test_no_request_fails_during_revocation(namespace: str) -> None:
    before = secret()
    block = page_commands("operating.md", "### Revoking a certificate\n").replace("\\\n", "")
    steps = [line for line in block.splitlines() if not line.startswith("#")]
    assert [step.split()[3] for step in steps] == ["delete", "rollout", "rollout", "annotate"]
    applying = Applying(namespace)
    with applying:
        run(steps[0])
        eventually(secret, RENEWED, "a new pair exists")
        for step in steps[1:]:
            run(step)
        current = secret()
        only_current = [pki.load_bundle(current["ca.crt"])] * WEBHOOKS
        eventually(lambda: trusted() == only_current, RENEWED, "the old CA is no longer trusted")
        applying.wait_for_more()
    assert current["ca.crt"] != before["ca.crt"]
    assert served() == {serial(current["tls.crt"])}
    assert not kube.must_get("secrets", installed.NAMESPACE, installed.CERTIFICATE)["metadata"].get("annotations")


class Applying:
    """Applies objects continuously in a thread until the block ends; each attempt must succeed."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._count = 0
        self._stop = threading.Event()
        self._executor = ThreadPoolExecutor(1)

    def __enter__(self) -> None:
        self._work = self._executor.submit(self._run)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._executor.shutdown()
        self._work.result()

    def wait_for_more(self) -> None:
        """Wait until objects have been applied three more times."""
        wanted = self._count + 3
        eventually(lambda: self._count >= wanted or self._work.done(), description="objects are applied")

    def _run(self) -> None:
        while not self._stop.is_set():
            apply_objects(self._namespace, 0, f"number {self._count}")
            self._count += 1
