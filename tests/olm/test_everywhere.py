"""Installed for all namespaces: from the Subscription to a cache, and what OLM's certificates do to admission."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memcached_operator.certificates import pki
from support import appservice, kube, olm, rights, serving
from support.audit import Audit
from support.kube import eventually, identities, kubectl
from support.memcached import IMAGE, SMALL, memcached, pods_of, settled, talk
from support.olm import INSTALL_SECONDS, VERSION, WEBHOOK, Installation, Releases
from support.rights import denied, token_of
from support.serving import RELOAD, SECRET, STEADY, WINDOW
from support.watching import Answers, Record


@pytest.fixture(scope="module")
def whole(cluster: dict[str, Any]) -> Audit:
    """The API server's audit log from before the installation."""
    return Audit(Path(cluster["audit_log"]))


@pytest.fixture(scope="module")
def took() -> dict[str, float]:
    """How long the installation took, in seconds."""
    return {}


@pytest.fixture(scope="module")
def everywhere(releases: Releases, first: Path, whole: Audit, took: dict[str, float]) -> Iterator[Installation]:
    """The release of this tree, installed for all namespaces."""
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
    authority = serving.files(everywhere)["olmCAKey"]
    found = everywhere.configurations()
    assert {each["metadata"]["labels"]["olm.owner"] for each in found} == {olm.csv_name(VERSION)}
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
    assert "has no fixed version" in done.stderr


def test_from_nothing_to_a_cache(everywhere: Installation, namespace: str) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    found = settled(namespace)
    assert (found["spec"]["size"], found["spec"]["containerPort"], found["spec"]["image"]) == (1, 11211, IMAGE)
    (pod,) = pods_of(namespace)
    assert talk(pod["status"]["podIP"], 11211, b"set k 0 0 1", b"v", b"get k").startswith(b"STORED\r\nVALUE k 0 1")


def test_every_example_of_the_bundle_is_admitted(everywhere: Installation, namespace: str) -> None:
    release = everywhere.service_version(VERSION)
    assert release is not None
    examples = json.loads(release["metadata"]["annotations"]["alm-examples"])
    owned = release["spec"]["customresourcedefinitions"]["owned"]
    assert {each["kind"] for each in examples} == {each["kind"] for each in owned}
    for each in examples:
        kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=each)


@pytest.fixture
def policies(everywhere: Installation) -> Iterator[None]:
    """The admission policies, which are not in the bundle, applied as docs/install.md says."""
    text = kubectl("kustomize", str(olm.ROOT / "config/overlays/olm-policies")).stdout
    text = text.replace("namespace: memcached-operator-system", f"namespace: {everywhere.namespace}")
    kubectl("apply", "--server-side", "-f", "-", stdin=text)
    yield
    kubectl("delete", "-f", "-", stdin=text)


@pytest.mark.usefixtures("policies")
def test_the_policies_confine_the_account_that_olm_made(everywhere: Installation, namespace: str) -> None:
    token = token_of(olm.CONTROLLER, everywhere.namespace)
    kubectl("create", "deployment", "foreign", "-n", namespace, "--image=localhost/foreign:1", "--replicas=0")
    delete = ("delete", "deployment", "foreign", "-n", namespace, "--dry-run=server")
    eventually(lambda: denied(token, *delete), 30, "the policies are in effect")
    kube.apply(memcached(namespace, resources=SMALL))
    settled(namespace)
    kube.apply(memcached(namespace, size=2, resources=SMALL))
    settled(namespace)
    assert denied(token, *delete)


def missing(installation: Installation, _: Answers) -> bytes:
    """Delete the Secret; returns what was in it."""
    before = serving.files(installation)["tls.crt"]
    kubectl("delete", "secret", SECRET, "-n", installation.namespace)
    return before


def running_out(installation: Installation, answers: Answers) -> bytes:
    """Have a certificate with less than a day left in use, with which nothing else is wrong; returns it.

    OLM looks away until it is served and trusted everywhere, as if it had grown old there.
    """
    with olm.away():
        pair = serving.issue(installation, timedelta(hours=12))
        serving.trust(installation, serving.files(installation)["olmCAKey"], pair.ca)
        replaced(installation, pair)
        serving.trust(installation, pair.ca)
        eventually(lambda: answers.steady() > STEADY, RELOAD, "admission answers with it")
        assert answers.bad == [], "while trust goes from one CA to both and to the other, nothing is lost"
    return pair.certificate


def replaced(installation: Installation, pair: pki.KeyPair) -> None:
    """Put a pair into the Secret, and wait until the pods from before serve it, without a restart."""
    before = installation.pods(WEBHOOK)
    serving.write(installation, {"tls.crt": pair.certificate, "tls.key": pair.key, "olmCAKey": pair.ca})
    wanted = {serving.serial(pair.certificate)}
    eventually(lambda: serving.served(before) == wanted, RELOAD, "the pods from before serve the new one")
    now = identities(installation.pods(WEBHOOK))
    assert {uid: now.get(uid) for uid in identities(before)} == identities(before)


@pytest.mark.parametrize("spoil", [missing, running_out])
def test_a_certificate_made_anew_by_olm(
    everywhere: Installation,
    namespace: str,
    record_property: Record,
    spoil: Callable[[Installation, Answers], bytes],
) -> None:
    """OLM trusts the new one at once, and pods serve it as soon as they have it: in between, writes are refused."""
    with serving.asked(everywhere, namespace, WINDOW, record_property) as answers:
        serving.rotated(everywhere, spoil(everywhere, answers), answers)
    everywhere.succeeded(VERSION)


def test_a_certificate_replaced_in_place(everywhere: Installation, namespace: str, record_property: Record) -> None:
    """As by somebody with an own CA: pods that were there before serve it without a restart, and OLM keeps to it.

    To trust a CA that is not its own, OLM has to be told: it looks at the one in the webhooks' configurations.
    """
    before = serving.files(everywhere)["tls.crt"]
    with serving.asked(everywhere, namespace, RELOAD + WINDOW, record_property) as answers:
        pair = serving.issue(everywhere, timedelta(days=90))
        replaced(everywhere, pair)
        serving.trust(everywhere, pair.ca)
        serving.rotated(everywhere, before, answers)
    everywhere.succeeded(VERSION)
    assert serving.trusted(everywhere) == {pair.ca}
    assert serving.files(everywhere)["tls.crt"] == pair.certificate


def test_its_rights_are_those_of_the_bundle(everywhere: Installation) -> None:
    """OLM makes a ClusterRole of them, and adds looking at namespaces."""
    rules = olm.permissions(everywhere)
    wanted = {*rights.grants_of(rules), *rights.grants_of(rules, everywhere.namespace)}
    wanted |= {rights.Grant(verb, "", "namespaces") for verb in ("get", "list", "watch")}
    assert rights.held_by(olm.CONTROLLER, everywhere.namespace) == wanted | olm.condition_rights(everywhere)


def test_its_rights_are_those_it_uses(everywhere: Installation, namespace: str, whole: Audit) -> None:
    kube.apply(appservice.appservice(namespace, resources=SMALL))
    for port in (11211, 12000):
        kube.apply(memcached(namespace, containerPort=port, resources=SMALL))
        settled(namespace)
    appservice.settled(namespace)
    rights.use_seldom_used()
    selector = "app.kubernetes.io/component=controller-manager"
    kubectl("delete", "pods", "-n", everywhere.namespace, "-l", selector)  # a watch is logged when it ends
    run = rights.told_by(whole, everywhere.account())
    granted = list(rights.grants_of(olm.permissions(everywhere)))
    assert run.denied == set()
    assert run.not_granted(granted) == set()
    assert run.never_asked(granted) - rights.FOR_FAULTS == rights.UNASKED
