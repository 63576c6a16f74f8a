"""The webhook's certificate as the operator makes it: at the first start, and anew while admission is at work."""

import base64
import json
import shlex
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from memcached_operator.certificates import pki
from support import installed, kube
from support.kube import Object, eventually, kubectl
from support.memcached import memcached

NAMES = [f"memcached-operator-webhook-service.{installed.NAMESPACE}.svc{end}" for end in ("", ".cluster.local")]
RENEWED = 120
"""Seconds until pods serve what the leader renewed: it looks every 10, and the kubelet takes its time with a volume."""
MANY = 100
WEBHOOKS = 4
"""Each of the two kinds has one that fills in and one that checks."""

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


@pytest.fixture(autouse=True)
def serving_afterwards() -> Iterator[None]:
    """Admission works, whatever a test did: without a good pair in its Secret the leader makes another."""
    yield
    installed.up()


def secret() -> dict[str, bytes]:
    """The files in the Secret; none while there is no Secret."""
    found = kube.get("secrets", installed.NAMESPACE, installed.CERTIFICATE) or {}
    return {name: base64.b64decode(data) for name, data in found.get("data", {}).items()}


def trusted() -> list[list[x509.Certificate]]:
    """What the API server trusts, per webhook."""
    return [pki.load_bundle(bundle) for bundle in installed.bundles()]


def served() -> set[int]:
    """The serial numbers of the certificates that the admission pods show to whoever calls."""
    return {serial_shown_at(pod["status"]["podIP"]) for pod in installed.pods(installed.WEBHOOK)}


def serial_shown_at(address: str) -> int:
    """The serial number of the certificate of a TLS server; whether to trust it is asked elsewhere."""
    shown = ssl.get_server_certificate((address, 9443), timeout=5)
    return x509.load_pem_x509_certificate(shown.encode()).serial_number


def serial(certificate: bytes) -> int:
    """The serial number of a certificate in PEM."""
    return x509.load_pem_x509_certificate(certificate).serial_number


def test_the_first_start_without_a_secret_works_by_itself() -> None:
    former = secret()
    with installed.stopped():
        kubectl("delete", "secret", installed.CERTIFICATE, "-n", installed.NAMESPACE)
        installed.trust(b"")
    fresh = secret()
    assert fresh["tls.crt"] != former["tls.crt"]
    assert trusted() == [pki.load_bundle(fresh["ca.crt"])] * WEBHOOKS
    assert served() == {serial(fresh["tls.crt"])}


def old_pair() -> pki.KeyPair:
    """A pair as this operator made it 61 days ago: two thirds of its life are over."""
    return pki.issue(NAMES, pki.LIFETIME, datetime.now(UTC) - timedelta(days=61))


def store(pair: pki.KeyPair) -> None:
    """Put a pair into the Secret."""
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": pair.ca}
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    patch = json.dumps({"data": data})
    kubectl("patch", "secret", installed.CERTIFICATE, "-n", installed.NAMESPACE, "--type=merge", "-p", patch)


def apply_some(namespace: str, first: int, note: str) -> None:
    """Apply five objects whose pods fit on no node: they are about admission only."""
    objects: list[Object] = []
    for number in range(first, first + 5):
        obj = memcached(namespace, f"cache-{number}", resources={"requests": {"cpu": "5000"}})
        objects.append({**obj, "metadata": {**obj["metadata"], "annotations": {"note": note}}})
    kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": objects})


def test_while_the_certificate_is_renewed_nothing_is_refused(namespace: str) -> None:
    before, old = secret(), old_pair()
    installed.trust(old.ca + before["ca.crt"])
    store(old)
    applied, deadline = 0, time.monotonic() + RENEWED
    renewed = False
    # Each apply must succeed. It goes on until every pod serves what the leader made, and for 100 objects at least.
    while not renewed or applied < MANY:
        assert time.monotonic() < deadline, f"not renewed within {RENEWED} s; {applied} objects were applied"
        apply_some(namespace, applied % MANY, f"number {applied}")
        applied += 5
        now = secret()["tls.crt"]
        renewed = now not in (before["tls.crt"], old.certificate) and served() == {serial(now)}
    apply_some(namespace, 0, "with the new certificate")
    assert len(kube.items("memcacheds", namespace)) == MANY
    wanted = {serial(each) for each in (before["ca.crt"], old.ca, secret()["ca.crt"])}
    assert [{ca.serial_number for ca in bundle} for bundle in trusted()] == [wanted] * WEBHOOKS


def test_the_admission_pods_have_no_token() -> None:
    for pod in installed.pods(installed.WEBHOOK):
        volumes = pod["spec"]["volumes"]
        assert [volume["secret"]["secretName"] for volume in volumes] == [installed.CERTIFICATE]
        name = pod["metadata"]["name"]
        done = kubectl("exec", "-n", installed.NAMESPACE, name, "--", "ls", "/var/run/secrets", check=False)
        assert "No such file or directory" in done.stderr


def test_the_admission_pods_account_may_do_nothing_that_others_may_not() -> None:
    def rights(account: str) -> str:
        user = f"--as=system:serviceaccount:{installed.NAMESPACE}:{account}"
        return kubectl("auth", "can-i", "--list", user, "-n", installed.NAMESPACE).stdout

    assert {pod["spec"]["serviceAccountName"] for pod in installed.pods(installed.WEBHOOK)} == {
        "memcached-operator-webhook"
    }
    assert rights("memcached-operator-webhook") == rights("of-nobody")
    assert rights("memcached-operator-controller-manager") != rights("of-nobody")


def commands(heading: str) -> list[str]:
    """The commands that docs/operating.md has first below a heading, each in one line."""
    (_, text) = (installed.ROOT / "docs/operating.md").read_text().split(f"### {heading}\n")
    block = text.split("```sh\n")[1].split("```")[0].replace("\\\n", "")
    return [line for line in block.splitlines() if not line.startswith("#")]


def run(command: str) -> None:
    """Type a command."""
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=RENEWED, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"


def test_a_certificate_is_revoked_and_nothing_is_refused(namespace: str) -> None:
    before = secret()
    steps = commands("Revoking a certificate")
    assert [step.split()[3] for step in steps] == ["delete", "rollout", "rollout", "annotate"]
    applying = Applying(namespace)
    with applying:
        run(steps[0])
        eventually(secret, RENEWED, "there is a new pair")
        for step in steps[1:]:
            run(step)
        fresh = secret()
        alone = [pki.load_bundle(fresh["ca.crt"])] * WEBHOOKS
        eventually(lambda: trusted() == alone, RENEWED, "the old authority is trusted no more")
        applying.some_more()
    assert fresh["ca.crt"] != before["ca.crt"]
    assert served() == {serial(fresh["tls.crt"])}
    assert not kube.must_get("secrets", installed.NAMESPACE, installed.CERTIFICATE)["metadata"].get("annotations")


class Applying:
    """Applies objects continuously in a thread until the block ends; each time must succeed."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._times = 0
        self._over = threading.Event()
        self._thread = ThreadPoolExecutor(1)

    def __enter__(self) -> None:
        self._work = self._thread.submit(self._go_on)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.shutdown()
        self._work.result()

    def some_more(self) -> None:
        """Wait until it has been done a few more times."""
        wanted = self._times + 3
        eventually(lambda: self._times >= wanted or self._work.done(), 30, "objects are applied")

    def _go_on(self) -> None:
        while not self._over.is_set():
            apply_some(self._namespace, 0, f"number {self._times}")
            self._times += 1
