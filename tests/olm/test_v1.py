"""What OLM v1 makes of the bundle, with certificates as cert-manager would issue them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support import certmanager, installed, kube, olm, serving
from support.kube import eventually, identities, kubectl
from support.memcached import SMALL, memcached, settled
from support.olm import CONTROLLER, SECONDS, WEBHOOK, Installation
from support.serving import RELOAD, SECRET, SLACK, STEADY
from support.watching import Record


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
    assert "has no fixed version" in done.stderr, "which only our webhook says"
    kube.apply(memcached(namespace, "sound", resources=SMALL))
    assert settled(namespace, "sound")["spec"]["image"]


def test_the_certificate_is_renewed_without_a_restart(
    applied: Installation, namespace: str, record_property: Record
) -> None:
    """It is its own authority: trust changes at once, and pods serve the new one when the kubelet has brought it."""
    pods = applied.pods(WEBHOOK)
    before = serving.files(applied)["tls.crt"]
    with serving.asked(applied, namespace, RELOAD + SLACK, record_property) as answers:
        certmanager.renew(applied.namespace, SECRET)
        wanted = serving.files(applied)["tls.crt"]
        assert wanted != before
        eventually(lambda: serving.trusted(applied) == {wanted}, SLACK, "the API server is told whom to trust")
        eventually(lambda: serving.served(pods) == {serving.serial(wanted)}, RELOAD, "every pod serves the new one")
        eventually(lambda: answers.steady() > STEADY, RELOAD, "admission answers")
    assert identities(applied.pods(WEBHOOK)) == identities(pods)


def test_a_namespace_of_its_own(first: Path) -> None:
    """OLM v1 can narrow it too, where that is switched on."""
    found = list(yaml.safe_load_all(olm.tool("olm", "render-v1", first / "bundle", "one", "one")))
    controller = next(each for each in found if each["metadata"]["name"] == CONTROLLER and each["kind"] == "Deployment")
    assert controller["spec"]["template"]["metadata"]["annotations"]["olm.targetNamespaces"] == "one"
    narrow = {each["metadata"]["namespace"] for each in found if each["kind"] == "Role"}
    assert narrow == {"one"}
