"""Installed for all namespaces: from the Subscription to a cache, and admission while OLM replaces certificates."""

import base64
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memcached_operator.certificates import pki
from support import kube, olm, olm_certificates, permissions
from support.audit import Audit
from support.kube import eventually, kubectl, restart_counts
from support.memcached import IMAGE, SMALL, memcached, pods_of, send_commands, wait_until_ready
from support.olm import VERSION, WEBHOOK, Installation, Releases
from support.olm_certificates import SECRET, STABLE_SECONDS
from support.permissions import denied, token_of
from support.probing import ProbeResults, Record
from support.waiting import RELOADED

pytestmark = pytest.mark.modes  # test_upgrade.py installs for all namespaces in each gate


@pytest.fixture(scope="module")
def audit_before(cluster: dict[str, Any]) -> Audit:
    """The API server's audit log since before the installation."""
    return Audit(Path(cluster["audit_log"]))


@pytest.fixture(scope="module")
def installation(releases: Releases, current_bundle: Path, audit_before: Audit) -> Iterator[Installation]:
    """The release of this tree, installed for all namespaces."""
    releases.serve(current_bundle)
    with olm.subscribed() as installation:
        installation.succeeded(VERSION)
        yield installation


def test_both_processes_are_available(installation: Installation) -> None:
    for deployment in (olm.CONTROLLER, WEBHOOK):
        found = kube.must_get("deployments", installation.namespace, deployment)
        assert found["status"]["availableReplicas"] == found["spec"]["replicas"] == 2


def test_admission_trusts_the_certificate_of_olm(installation: Installation) -> None:
    authority = olm_certificates.secret_files(installation)["olmCAKey"]
    found = installation.configurations()
    assert {each["metadata"]["labels"]["olm.owner"] for each in found} == {olm.csv_name(VERSION)}
    assert len(found) == 6
    for each in found:
        (webhook,) = each["webhooks"]
        client = webhook["clientConfig"]
        assert base64.b64decode(client["caBundle"]) == authority
        service = {"name": "memcached-operator-webhook-service", "namespace": installation.namespace, "port": 443}
        assert {key: client["service"][key] for key in service} == service
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["namespaceSelector"] == {}


def test_admission_responds_and_a_new_cache_serves(installation: Installation, namespace: str) -> None:
    assert "spec.size" in kube.rejection(memcached(namespace, size=0), verb="create")
    done = kubectl("create", "-f", "-", stdin=memcached(namespace, "other", image="memcached:latest", resources=SMALL))
    assert "has no fixed version" in done.stderr, "our webhook must be called"
    kube.apply(memcached(namespace, resources=SMALL))
    found = wait_until_ready(namespace)
    assert (found["spec"]["size"], found["spec"]["containerPort"], found["spec"]["image"]) == (1, 11211, IMAGE)
    (pod,) = pods_of(namespace)
    response = send_commands(pod["status"]["podIP"], 11211, b"set k 0 0 1", b"v", b"get k")
    assert response.startswith(b"STORED\r\nVALUE k 0 1")


def test_every_example_of_the_bundle_is_accepted(installation: Installation, namespace: str) -> None:
    release = installation.service_version(VERSION)
    assert release is not None
    examples = json.loads(release["metadata"]["annotations"]["alm-examples"])
    owned = release["spec"]["customresourcedefinitions"]["owned"]
    assert {each["kind"] for each in examples} == {each["kind"] for each in owned}
    for each in examples:
        kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=each)


@pytest.fixture
def policies(installation: Installation) -> Iterator[None]:
    """The admission policies, which are not in the bundle, applied as in docs/install-olm.md."""
    text = kubectl("kustomize", str(olm.ROOT / "config/overlays/olm-policies")).stdout
    text = text.replace("namespace: memcached-operator-system", f"namespace: {installation.namespace}")
    kubectl("apply", "--server-side", "-f", "-", stdin=text)
    yield
    kubectl("delete", "-f", "-", stdin=text)


@pytest.mark.usefixtures("policies")
def test_the_policies_confine_the_account_that_olm_created(installation: Installation, namespace: str) -> None:
    token = token_of(olm.CONTROLLER, installation.namespace)
    kubectl("create", "deployment", "foreign", "-n", namespace, "--image=localhost/foreign:1", "--replicas=0")
    delete = ("delete", "deployment", "foreign", "-n", namespace, "--dry-run=server")
    eventually(lambda: denied(token, *delete), description="the policies are in effect")
    kube.apply(memcached(namespace, resources=SMALL))
    wait_until_ready(namespace)
    kube.apply(memcached(namespace, size=2, resources=SMALL))
    wait_until_ready(namespace)
    assert denied(token, *delete)


def deleted_secret(installation: Installation, _: ProbeResults) -> bytes:
    """Delete the Secret; return the former certificate."""
    before = olm_certificates.secret_files(installation)["tls.crt"]
    kubectl("delete", "secret", SECRET, "-n", installation.namespace, "--wait=false")
    return before


def expiring_certificate(installation: Installation, results: ProbeResults) -> bytes:
    """Install a certificate that expires in less than a day but is valid otherwise; return it.

    OLM is stopped until all pods serve the certificate and all webhooks trust it.
    """
    with olm.olm_stopped():
        pair = olm_certificates.issue(installation, timedelta(hours=12))
        olm_certificates.trust(installation, olm_certificates.secret_files(installation)["olmCAKey"], pair.ca)
        replace_pair(installation, pair)
        olm_certificates.trust(installation, pair.ca)
        eventually(
            lambda: results.stable_seconds() > STABLE_SECONDS, RELOADED, "admission responds with the certificate"
        )
        assert results.failures == [], "admission must respond while the CA bundle is extended and then reduced"
    return pair.certificate


def replace_pair(installation: Installation, pair: pki.KeyPair) -> None:
    """Write a pair into the Secret, and wait until the existing pods serve it without a restart."""
    before = installation.pods(WEBHOOK)
    olm_certificates.write_secret(installation, {"tls.crt": pair.certificate, "tls.key": pair.key, "olmCAKey": pair.ca})
    wanted = {olm_certificates.serial(pair.certificate)}
    eventually(
        lambda: olm_certificates.served_serials(before) == wanted,
        RELOADED,
        "the existing pods serve the new certificate",
    )
    now = restart_counts(installation.pods(WEBHOOK))
    assert {uid: now.get(uid) for uid in restart_counts(before)} == restart_counts(before)


@pytest.mark.parametrize("invalidate", [deleted_secret, expiring_certificate])
def test_olm_replaces_a_certificate(
    installation: Installation,
    namespace: str,
    record_property: Record,
    invalidate: Callable[[Installation, ProbeResults], bytes],
) -> None:
    """OLM updates the CA bundle before all pods serve the new certificate; in between, writes fail."""
    with olm_certificates.recorded_availability(installation, namespace, record_property) as results:
        olm_certificates.wait_until_rotated(installation, invalidate(installation, results), results)
    installation.succeeded(VERSION)


def test_a_user_replaces_a_certificate(installation: Installation, namespace: str, record_property: Record) -> None:
    """With a CA of the user: existing pods serve the certificate without a restart, and OLM keeps it.

    OLM accepts another CA if it is in the webhook configurations.
    """
    before = olm_certificates.secret_files(installation)["tls.crt"]
    with olm_certificates.recorded_availability(installation, namespace, record_property) as results:
        pair = olm_certificates.issue(installation, timedelta(days=90))
        replace_pair(installation, pair)
        olm_certificates.trust(installation, pair.ca)
        olm_certificates.wait_until_rotated(installation, before, results)
    installation.succeeded(VERSION)
    assert olm_certificates.trusted_bundles(installation) == {pair.ca}
    assert olm_certificates.secret_files(installation)["tls.crt"] == pair.certificate


def test_permissions_equal_those_of_the_bundle(installation: Installation) -> None:
    """OLM creates a ClusterRole for them and adds read access to namespaces."""
    rules = olm.permissions(installation)
    wanted = {*permissions.grants_of(rules), *permissions.grants_of(rules, installation.namespace)}
    wanted |= {permissions.Grant(verb, "", "namespaces") for verb in ("get", "list", "watch")}
    assert permissions.granted_to(olm.CONTROLLER, installation.namespace) == wanted | olm.condition_permissions(
        installation
    )


def test_all_permissions_are_used(installation: Installation, audit_before: Audit) -> None:
    permissions.exercise(installation.namespace)
    usage = permissions.requests_by(audit_before, installation.account())
    granted = list(permissions.grants_of(olm.permissions(installation)))
    assert usage.denied == set()
    assert usage.exceeding(granted) == set()
    assert usage.unused(granted) == permissions.NEVER_REQUESTED
