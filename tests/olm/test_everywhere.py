"""Installed for all namespaces: from the Subscription to a cache, and what OLM's certificates do to admission."""

import base64
import json
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from memcached_operator.certificates import pki
from support import installed, kube, olm
from support.kube import Object, eventually, kubectl
from support.memcached import IMAGE, SMALL, memcached, pods_of, settled, talk
from support.olm import INSTALL_SECONDS, WEBHOOK, Installation, Releases
from support.watching import Answers, Record, asking

VERSION = "0.1.0"
SECRET = "memcached-operator-webhook-service-cert"
ROTATION = 90
"""Seconds until all pods serve a new certificate: OLM replaces them, some at a time."""
RELOAD = 30
"""Seconds until a pod serves what is in its Secret: the kubelet takes its time with a volume."""
WINDOW = 30
"""Seconds for which OLM's new CA and the pods' old certificate may not fit: until a new pod is ready."""
STEADY = 5
"""Seconds of answers in a row after which a rotation counts as over."""


@pytest.fixture(scope="module")
def took() -> dict[str, float]:
    """How long the installation took, in seconds."""
    return {}


@pytest.fixture(scope="module")
def everywhere(releases: Releases, first: Path, took: dict[str, float]) -> Iterator[Installation]:
    """Release 0.1.0, installed for all namespaces."""
    releases.serve(first)
    begun = time.monotonic()
    with olm.subscribed() as installation:
        installation.succeeded(VERSION)
        took["install"] = time.monotonic() - begun
        yield installation


def test_installed_within_a_minute(everywhere: Installation, took: dict[str, float], record_property: Record) -> None:
    record_property("from the Subscription to Succeeded, in seconds", round(took["install"], 1))
    assert took["install"] < INSTALL_SECONDS
    for deployment in (olm.CONTROLLER, WEBHOOK):
        found = kube.must_get("deployments", everywhere.namespace, deployment)
        assert found["status"]["availableReplicas"] == found["spec"]["replicas"] == 2


def test_admission_trusts_the_certificate_of_olm(everywhere: Installation) -> None:
    authority = files(everywhere)["olmCAKey"]
    found = olm.configurations(VERSION)
    assert len(found) == 4
    for each in found:
        (webhook,) = each["webhooks"]
        client = webhook["clientConfig"]
        assert base64.b64decode(client["caBundle"]) == authority
        service = {"name": "memcached-operator-webhook-service", "namespace": everywhere.namespace, "port": 443}
        assert {key: client["service"][key] for key in service} == service
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["namespaceSelector"] == {}


def test_no_object_of_an_absent_kind(everywhere: Installation, first: Path) -> None:
    assert kube.read("/apis/monitoring.coreos.com/v1") is None, "this cluster has no Prometheus operator"
    kinds = [line for file in (first / "bundle/manifests").iterdir() for line in file.read_text().splitlines()]
    assert "kind: ServiceMonitor" not in kinds
    assert "kind: ServiceMonitor" not in kubectl("kustomize", str(olm.ROOT / "config/default")).stdout


def test_size_0_is_refused(everywhere: Installation, namespace: str) -> None:
    assert "spec.size" in kube.refused(memcached(namespace, size=0), verb="create")


def test_admission_answers(everywhere: Installation, namespace: str) -> None:
    """Its warnings come from nobody else, nor does an image."""
    done = kubectl("create", "-f", "-", stdin=memcached(namespace, image="memcached:latest", resources=SMALL))
    assert "names no fixed version" in done.stderr


def test_from_nothing_to_a_cache(everywhere: Installation, namespace: str) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    found = settled(namespace)
    assert (found["spec"]["size"], found["spec"]["containerPort"], found["spec"]["image"]) == (1, 11211, IMAGE)
    (pod,) = pods_of(namespace)
    assert talk(pod["status"]["podIP"], 11211, b"set k 0 0 1", b"v", b"get k").startswith(b"STORED\r\nVALUE k 0 1")


def files(installation: Installation) -> dict[str, bytes]:
    """What is in the Secret; nothing while there is none."""
    found = kube.get("secrets", installation.namespace, SECRET) or {}
    return {name: base64.b64decode(data) for name, data in found.get("data", {}).items()}


def serial(certificate: bytes | str) -> int:
    """The serial number of a certificate in PEM."""
    text = certificate.encode() if isinstance(certificate, str) else certificate
    return x509.load_pem_x509_certificate(text).serial_number


def served(pods: list[Object]) -> set[int]:
    """The serial numbers of what pods show to whoever calls."""
    return {shown(pod) for pod in pods}


def shown(pod: Object) -> int:
    """The serial number of what one pod shows; 0 while it shows nothing."""
    try:
        return serial(ssl.get_server_certificate((pod["status"].get("podIP", ""), 9443), timeout=5))
    except OSError:
        return 0


def rotated(installation: Installation, before: bytes, answers: Answers) -> bytes:
    """Wait until every pod serves another certificate than before and admission answers steadily; the new one."""

    def look() -> bytes | None:
        found = files(installation).get("tls.crt", before)
        assert found != before, "no new certificate"
        assert served(installation.pods(WEBHOOK)) == {serial(found)}
        assert trusted() == {files(installation)["olmCAKey"]}, "the API server is told whom to trust"
        return found if answers.steady() > STEADY else None

    found = eventually(look, ROTATION, "the certificate is rotated")
    assert found
    return found


def missing(installation: Installation) -> bytes:
    """Delete the Secret; returns what was in it."""
    before = files(installation)["tls.crt"]
    kubectl("delete", "secret", SECRET, "-n", installation.namespace)
    return before


def running_out(installation: Installation) -> bytes:
    """Put a certificate into the Secret that has less than a day left; returns it."""
    return put(installation, timedelta(hours=12)).certificate


@pytest.mark.parametrize("spoil", [missing, running_out])
def test_a_certificate_made_anew_by_olm(
    everywhere: Installation, namespace: str, record_property: Record, spoil: Callable[[Installation], bytes]
) -> None:
    """OLM trusts the new one at once, and pods serve it as soon as they have it: in between, writes are refused."""
    with asking(lambda: installed.complaint(namespace)) as answers:
        before = spoil(everywhere)
        rotated(everywhere, before, answers)
        longest = answers.longest_silence()
    record_property("longest silence of admission, in seconds", round(longest, 1))
    assert longest < WINDOW
    everywhere.succeeded(VERSION)


def test_a_certificate_replaced_in_place(everywhere: Installation, namespace: str, record_property: Record) -> None:
    """As by somebody with an own CA: pods that were there before serve it without a restart, and OLM keeps to it.

    To trust a CA that is not its own, OLM has to be told: it looks at the one in the webhooks' configurations.
    """
    before, pods = files(everywhere)["tls.crt"], everywhere.pods(WEBHOOK)
    with asking(lambda: installed.complaint(namespace)) as answers:
        pair = put(everywhere, timedelta(days=90))
        eventually(lambda: served(pods) == {serial(pair.certificate)}, RELOAD, "the pods from before serve the new one")
        assert all(each["restartCount"] == 0 for pod in pods for each in pod["status"]["containerStatuses"])
        trust(pair.ca)
        rotated(everywhere, before, answers)
        longest = answers.longest_silence()
    record_property("longest silence of admission, in seconds", round(longest, 1))
    assert longest < RELOAD + WINDOW
    everywhere.succeeded(VERSION)
    assert trusted() == {pair.ca}
    assert files(everywhere)["tls.crt"] == pair.certificate


def put(installation: Installation, lifetime: timedelta) -> pki.Pair:
    """Put a certificate of another CA into the Secret."""
    names = [f"{WEBHOOK}-service.{installation.namespace}{end}" for end in ("", ".svc", ".svc.cluster.local")]
    pair = pki.issue(names, lifetime, datetime.now(UTC))
    content = {"tls.crt": pair.certificate, "tls.key": pair.key, "olmCAKey": pair.ca}
    data = {name: base64.b64encode(each).decode() for name, each in content.items()}
    patch = json.dumps({"data": data})
    kubectl("patch", "secret", SECRET, "-n", installation.namespace, "--type=merge", "-p", patch)
    return pair


def trust(authority: bytes) -> None:
    """Have the API server trust a CA where it calls one of our webhooks."""
    where = {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle"}
    patch = json.dumps([where | {"value": base64.b64encode(authority).decode()}])
    owner = f"olm.owner={olm.csv_name(VERSION)}"
    for name in kubectl("get", ",".join(olm.CONFIGURATIONS), "-l", owner, "-o", "name").stdout.split():
        kubectl("patch", name, "--type=json", "-p", patch)


def trusted() -> set[bytes]:
    """Whom the API server trusts to be one of our webhooks."""
    found = (each["webhooks"][0]["clientConfig"]["caBundle"] for each in olm.configurations(VERSION))
    return {base64.b64decode(each) for each in found}
