"""What holds while admission is away, and what became of objects that were stored under laxer rules."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support import installed, kube
from support.faulty import NAME, NAMES, PORT, RULES, SIZE, TYPES, Faulty
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, conditions, degraded, memcached, pods_of, settled

VERSIONS = ("v1", "v1alpha1")
DELETED = ("background", "foreground", "orphan")

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


@pytest.fixture(scope="module")
def space() -> Iterator[str]:
    """A namespace for this module."""
    with kube.own_namespace() as name:
        yield name


@pytest.fixture(scope="class")
def stopped(space: str) -> Iterator[None]:
    """Some objects, made in time; then no admission."""
    for name in (*DELETED, "cache"):
        kube.apply(memcached(space, name, resources=SMALL))
    for name in (*DELETED, "cache"):
        settled(space, name)
    with installed.without_webhook():
        yield
    kube.apply(memcached(space, "afterwards", resources=SMALL))
    settled(space, "afterwards")


@pytest.mark.usefixtures("stopped")
class TestProcessesStopped:
    """No admission pod runs; the webhook configurations are in place."""

    @pytest.mark.parametrize("version", VERSIONS)
    def test_creating_fails_closed_and_says_why(self, space: str, version: str) -> None:
        said = kube.refused(memcached(space, "new", version))
        for part in ("failed calling webhook", "mmemcached.cache.example.com", "memcached-operator-webhook-service"):
            assert part in said
        assert kube.get("memcacheds", space, "new") is None

    def test_changing_fails_closed(self, space: str) -> None:
        assert "failed calling webhook" in kube.refused(memcached(space, containerPort=12000))
        assert must_get("memcacheds", space, "cache")["spec"]["containerPort"] == 11211

    @pytest.mark.parametrize("cascade", DELETED)
    def test_deleting_works(self, space: str, cascade: str) -> None:
        kubectl("delete", "memcached", cascade, "-n", space, f"--cascade={cascade}", "--timeout=60s")
        assert kube.get("memcacheds", space, cascade) is None
        if cascade == "orphan":
            deployment = must_get("deployments", space, cascade)
            assert "ownerReferences" not in deployment["metadata"]
            kubectl("delete", f"deployment/{cascade}", f"service/{cascade}", "-n", space, "--wait=false")
        else:
            eventually(lambda: kube.get("deployments", space, cascade) is None, 30, "the Deployment is gone")

    def test_scaling_works_and_the_status_follows(self, space: str) -> None:
        kubectl("scale", "memcached/cache", "-n", space, "--replicas=2")
        status = settled(space)["status"]
        assert status["readyReplicas"] == 2
        assert status["nodes"] == kube.names(pods_of(space))

    def test_the_bounds_hold_for_scaling(self, space: str) -> None:
        done = kubectl("scale", "memcached/cache", "-n", space, "--replicas=0", check=False)
        assert SIZE in done.stderr

    def test_a_status_written_by_hand_is_stored_and_mended(self, space: str) -> None:
        patch = json.dumps({"status": {"nodes": ["nobody"]}})
        done = kubectl("patch", "memcached/cache", "-n", space, "--subresource=status", "--type=merge", "-p", patch)
        assert "patched" in done.stdout
        eventually(lambda: must_get("memcacheds", space, "cache")["status"]["nodes"] == kube.names(pods_of(space)), 15)

    def test_other_kinds_are_untouched(self, space: str) -> None:
        for words in (
            ("configmap", "other", "--from-literal=key=value"),
            ("serviceaccount", "other"),
            ("deployment", "other", "--image=localhost/memcached-operator/pause:1", "--replicas=0"),
        ):
            kubectl("create", *words, "-n", space)
            kubectl("label", words[0], "other", "-n", space, "changed=yes")
            kubectl("delete", words[0], "other", "-n", space)


IN_CEL = {**RULES, **TYPES}
"""What the CRD alone refuses."""


@pytest.fixture(scope="class")
def removed() -> Iterator[None]:
    """No webhook configuration of ours."""
    with installed.without_configurations():
        yield


@pytest.mark.usefixtures("removed")
class TestConfigurationsRemoved:
    """The API server asks no webhook."""

    @pytest.mark.parametrize("faulty", IN_CEL.values(), ids=IN_CEL.keys())
    def test_schema_and_cel_refuse_the_same(self, space: str, faulty: Faulty) -> None:
        said = kube.refused(memcached(space, "faulty", **faulty.spec))
        assert [part for part in faulty.said if part not in said] == [], said
        assert kube.get("memcacheds", space, "faulty") is None

    @pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
    def test_cel_refuses_the_same_names(self, space: str, name: str) -> None:
        assert NAME in kube.refused(memcached(space, name))

    def test_the_old_version_is_refused_the_same(self, space: str) -> None:
        assert SIZE in kube.refused(memcached(space, "faulty", "v1alpha1", size=0))

    def test_an_object_without_an_image_gets_pods_of_the_default_one(self, space: str) -> None:
        kube.apply(memcached(space, "unpinned", resources=SMALL))
        assert "image" not in settled(space, "unpinned")["spec"]
        kubectl("delete", "memcached/unpinned", "-n", space, "--wait=false")


BAD: dict[str, dict[str, Any]] = {
    "zero": {"size": 0, "containerPort": 80, "resources": {"limits": {"memory": "1Mi"}}},
    "worded": {"size": "three", "replicas": 3},
    "unsized": {"image": "docker.io/library/memcached:1.6.38", "resources": SMALL},
}
"""Stored under the rules of long ago; the last one is valid, but for the defaults it lacks."""


@pytest.fixture(scope="class")
def crashes(space: str) -> Iterator[None]:
    """Bad objects; the controller must not have died of them."""
    before = installed.restarts(installed.CONTROLLER)
    with installed.without_rules(), installed.without_configurations():
        for name, spec in BAD.items():
            kubectl("create", "-f", "-", stdin=memcached(space, name, **spec))
    yield
    assert installed.restarts(installed.CONTROLLER) == before


@pytest.mark.usefixtures("crashes")
class TestObjectsOfLongAgo:
    """They were stored while no rule held; all rules are back."""

    def test_the_status_says_what_to_mend(self, space: str) -> None:
        message = degraded(space, "InvalidSpec", "zero")["message"]
        for part in ("spec.size: Invalid value: 0", SIZE, "spec.containerPort", PORT, "spec.resources.limits[memory]"):
            assert part in message
        assert "spec.size" in degraded(space, "InvalidSpec", "worded")["message"]
        assert kube.get("deployments", space, "zero") is None
        assert set(conditions(space, "zero")) == {"Available", "Progressing", "Degraded"}

    def test_others_are_served_as_ever(self, space: str) -> None:
        kube.apply(memcached(space, "good", resources=SMALL))
        settled(space, "good")

    def test_what_is_no_worse_than_before_may_change(self, space: str) -> None:
        kubectl("label", "memcached/zero", "-n", space, "team=a", "--overwrite")
        patch(space, "zero", imagePullPolicy="Never")
        spec = must_get("memcacheds", space, "zero")["spec"]
        assert (spec["size"], spec["imagePullPolicy"]) == (0, "Never")

    def test_another_fault_may_not_be_added(self, space: str) -> None:
        done = patch(space, "zero", check=False, image="no such image")
        assert done.returncode != 0
        assert 'spec.image: Invalid value: "no such image"' in done.stderr

    @pytest.mark.parametrize("name", ["zero", "worded"])
    def test_mending_heals(self, space: str, name: str) -> None:
        degraded(space, "InvalidSpec", name)
        mended: Object = {
            "size": 1,
            "containerPort": 11211,
            "imagePullPolicy": None,
            "resources": {**SMALL, "limits": None},
        }
        patch(space, name, **mended)
        settled(space, name)

    def test_an_object_stored_without_a_size_scales(self, space: str) -> None:
        kubectl("scale", "memcached/unsized", "-n", space, "--replicas=2")
        assert settled(space, "unsized")["status"]["readyReplicas"] == 2


def patch(namespace: str, name: str, *, check: bool = True, **spec: Any) -> Any:
    """Merge something into a Memcached's spec."""
    text = json.dumps({"spec": spec})
    return kubectl("patch", f"memcached/{name}", "-n", namespace, "--type=merge", "-p", text, check=check)


@pytest.fixture(scope="class")
def lax(space: str) -> Iterator[None]:
    """No rules in the CRD."""
    with installed.without_rules():
        yield


@pytest.mark.usefixtures("lax")
class TestRulesRemoved:
    """The CRD accepts anything; admission is in place."""

    def test_the_webhook_alone_tells_every_fault_at_once(self, space: str) -> None:
        spec: Object = {"size": 0, "containerPort": 80, "image": "no such image", "cache": {"memory": "1Mi"}}
        said = kube.refused(memcached(space, "faulty", **spec))
        for part in ("spec.size", SIZE, "spec.containerPort", PORT, "spec.image", "spec.cache.memory"):
            assert part in said

    @pytest.mark.parametrize("faulty", RULES.values(), ids=RULES.keys())
    def test_the_webhook_alone_refuses_the_same(self, space: str, faulty: Faulty) -> None:
        said = kube.refused(memcached(space, "faulty", **faulty.spec))
        assert faulty.said[0] in said
