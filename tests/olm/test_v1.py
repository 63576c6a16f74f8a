"""What OLM v1 makes of the bundle, with certificates as cert-manager would issue them."""

import base64
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from memcached_operator.certificates import pki
from support import certmanager, installed, kube, olm
from support.kube import Object, eventually, kubectl
from support.memcached import SMALL, memcached, settled
from support.olm import CONTROLLER, SECONDS, WEBHOOK, Installation

SECRET = f"{WEBHOOK}-service-cert"
RELOAD = 30
"""Seconds until a pod serves what is in its Secret: the kubelet takes its time with a volume."""


@pytest.fixture(scope="module")
def applied(first: Path) -> Iterator[Installation]:
    """What the renderer prints, applied; everything of it is deleted afterwards."""
    with kube.own_namespace() as namespace, certmanager.running():
        text = olm.tool("olm", "render-v1", first / "bundle", namespace)
        try:
            kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
            for name in (CONTROLLER, WEBHOOK):
                kubectl("rollout", "status", "-n", namespace, f"deployment/{name}", f"--timeout={SECONDS}s")
            eventually(lambda: installed.complaint() == "", SECONDS, "admission answers")
            yield Installation(namespace)
        finally:
            kubectl("delete", "--ignore-not-found", "--timeout=60s", "-f", "-", stdin=text)


def test_it_is_for_all_namespaces(applied: Installation) -> None:
    (pod, *_) = applied.pods(CONTROLLER)
    assert pod["metadata"]["annotations"]["olm.targetNamespaces"] == ""


def test_admission_and_a_cache(applied: Installation, namespace: str) -> None:
    assert "spec.size" in kube.refused(memcached(namespace, size=0), verb="create")
    done = kubectl("create", "-f", "-", stdin=memcached(namespace, image="memcached:latest", resources=SMALL))
    assert "names no fixed version" in done.stderr, "which only our webhook says"
    kube.apply(memcached(namespace, "sound", resources=SMALL))
    assert settled(namespace, "sound")["spec"]["image"]


def test_the_certificate_is_renewed_without_a_restart(applied: Installation) -> None:
    before = identities(applied)
    names = [f"{WEBHOOK}-service.{applied.namespace}{end}" for end in ("", ".svc", ".svc.cluster.local")]
    pair = pki.issue(names, timedelta(days=90), datetime.now(UTC))
    content = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": pair.ca}
    data = {name: base64.b64encode(each).decode() for name, each in content.items()}
    kubectl("patch", "secret", SECRET, "-n", applied.namespace, "--type=merge", "-p", json.dumps({"data": data}))
    for kind, name in configurations(applied):
        value = base64.b64encode(pair.ca).decode()
        patch = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": value}]
        kubectl("patch", kind, name, "--type=json", "-p", json.dumps(patch))
    wanted = x509.load_pem_x509_certificate(pair.certificate).serial_number
    eventually(lambda: served(applied) == {wanted}, RELOAD, "every pod serves the new certificate")
    eventually(lambda: installed.complaint() == "", RELOAD, "admission answers")
    assert identities(applied) == before


def configurations(applied: Installation) -> list[tuple[str, str]]:
    """Kind and name of the webhook configurations."""
    found: list[Object] = []
    for plural in olm.CONFIGURATIONS:
        listed = (kube.read(f"{olm.ADMISSION}/{plural}") or {})["items"]
        found += [{**each, "kind": plural} for each in listed if namespace_of(each) == applied.namespace]
    assert len(found) == 4
    return [(each["kind"], each["metadata"]["name"]) for each in found]


def namespace_of(configuration: Object) -> str:
    """Where the service of a configuration stands."""
    return configuration["webhooks"][0]["clientConfig"].get("service", {}).get("namespace", "")


def served(applied: Installation) -> set[int]:
    """The serial numbers of what the pods show."""
    shown = [ssl.get_server_certificate((pod["status"]["podIP"], 9443), timeout=5) for pod in applied.pods(WEBHOOK)]
    return {x509.load_pem_x509_certificate(each.encode()).serial_number for each in shown}


def identities(applied: Installation) -> dict[str, int]:
    """The admission pods by their uids, and how often each was restarted."""
    return {
        pod["metadata"]["uid"]: sum(each["restartCount"] for each in pod["status"]["containerStatuses"])
        for pod in applied.pods(WEBHOOK)
    }


def test_a_namespace_of_its_own(first: Path) -> None:
    """OLM v1 can narrow it too, where that is switched on."""
    found = list(yaml.safe_load_all(olm.tool("olm", "render-v1", first / "bundle", "one", "one")))
    controller = next(each for each in found if each["metadata"]["name"] == CONTROLLER and each["kind"] == "Deployment")
    assert controller["spec"]["template"]["metadata"]["annotations"]["olm.targetNamespaces"] == "one"
    narrow = {each["metadata"]["namespace"] for each in found if each["kind"] == "Role"}
    assert narrow == {"one"}
