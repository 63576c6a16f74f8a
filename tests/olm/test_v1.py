"""The bundle as OLM v1 renders it, with certificates as cert-manager issues them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support import certmanager, installed, kube, olm, olm_certificates
from support.kube import eventually, kubectl, restart_counts
from support.memcached import SMALL, memcached, wait_until_ready
from support.olm import CONTROLLER, SECONDS, WEBHOOK, Installation
from support.olm_certificates import PROPAGATION_SECONDS, RELOAD_SECONDS, SECRET, STABLE_SECONDS
from support.probing import Record
from support.waiting import READY

pytestmark = pytest.mark.modes


@pytest.fixture(scope="module")
def applied(current_bundle: Path) -> Iterator[Installation]:
    """The rendered bundle, applied; deleted afterwards."""
    with kube.temporary_namespace() as namespace, certmanager.running():
        text = olm.tool("olm", "render-v1", current_bundle / "bundle", namespace)
        try:
            kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
            for name in (CONTROLLER, WEBHOOK):
                kubectl("rollout", "status", "-n", namespace, f"deployment/{name}", f"--timeout={SECONDS}s")
            eventually(lambda: installed.admission_error() == "", SECONDS, "admission responds")
            yield Installation(namespace)
        finally:
            kubectl("delete", "--ignore-not-found", f"--timeout={READY:g}s", "-f", "-", stdin=text)


def test_all_namespaces_by_default(applied: Installation) -> None:
    (pod, *_) = applied.pods(CONTROLLER)
    assert pod["metadata"]["annotations"]["olm.targetNamespaces"] == ""


def test_admission_and_reconciling_work(applied: Installation, namespace: str) -> None:
    assert "spec.size" in kube.rejection(memcached(namespace, size=0), verb="create")
    done = kubectl("create", "-f", "-", stdin=memcached(namespace, image="memcached:latest", resources=SMALL))
    assert "has no fixed version" in done.stderr, "our webhook must be called"
    kube.apply(memcached(namespace, "valid", resources=SMALL))
    assert wait_until_ready(namespace, "valid")["spec"]["image"]


def test_the_certificate_is_renewed_without_a_restart(
    applied: Installation, namespace: str, record_property: Record
) -> None:
    """It is self-signed: the CA bundle changes before the kubelet has updated the pods' volumes."""
    pods = applied.pods(WEBHOOK)
    before = olm_certificates.secret_files(applied)["tls.crt"]
    with olm_certificates.measured_availability(
        applied, namespace, RELOAD_SECONDS + PROPAGATION_SECONDS, record_property
    ) as results:
        certmanager.renew(applied.namespace, SECRET)
        wanted = olm_certificates.secret_files(applied)["tls.crt"]
        assert wanted != before
        eventually(
            lambda: olm_certificates.trusted_bundles(applied) == {wanted},
            PROPAGATION_SECONDS,
            "the CA bundles are updated",
        )
        eventually(
            lambda: olm_certificates.served_serials(pods) == {olm_certificates.serial(wanted)},
            RELOAD_SECONDS,
            "every pod serves the new certificate",
        )
        eventually(lambda: results.stable_seconds() > STABLE_SECONDS, RELOAD_SECONDS, "admission responds")
    assert restart_counts(applied.pods(WEBHOOK)) == restart_counts(pods)


def test_a_single_namespace_can_be_selected(current_bundle: Path) -> None:
    """OLM v1 supports this if the feature is enabled."""
    found = list(yaml.safe_load_all(olm.tool("olm", "render-v1", current_bundle / "bundle", "one", "one")))
    controller = next(each for each in found if each["metadata"]["name"] == CONTROLLER and each["kind"] == "Deployment")
    assert controller["spec"]["template"]["metadata"]["annotations"]["olm.targetNamespaces"] == "one"
    namespaces = {each["metadata"]["namespace"] for each in found if each["kind"] == "Role"}
    assert namespaces == {"one"}
