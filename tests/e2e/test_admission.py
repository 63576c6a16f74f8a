"""What is let in, what is refused, what is filled in, and what is told: as a user with kubectl sees it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support import kube
from support.audit import Audit
from support.faulty import NAME, NAMES, RULES, TYPES, Faulty
from support.kube import Object, kubectl, must_get
from support.memcached import IMAGE, SMALL, memcached, settled

VERSIONS = ("v1", "v1alpha1")
OTHER_IMAGE = "docker.io/library/memcached:1.6"

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Each of the API versions."""
    return request.param


@pytest.fixture(scope="module")
def empty() -> Iterator[str]:
    """A namespace in which nothing is ever stored."""
    with kube.own_namespace() as name:
        yield name


def assert_refused(faulty: Faulty, namespace: str, version: str, name: str = "cache") -> None:
    """`kubectl apply` is refused, says all that must be said, and nothing is stored."""
    said = kube.refused(memcached(namespace, name, version, **faulty.spec))
    assert [part for part in faulty.said if part not in said] == [], said
    assert kube.get("memcacheds", namespace, name) is None


@pytest.mark.parametrize("faulty", RULES.values(), ids=RULES.keys())
def test_a_broken_rule_is_refused_with_field_value_and_remedy(empty: str, version: str, faulty: Faulty) -> None:
    assert_refused(faulty, empty, version)


@pytest.mark.parametrize("faulty", TYPES.values(), ids=TYPES.keys())
def test_what_the_schema_forbids_is_refused_in_its_own_words(empty: str, version: str, faulty: Faulty) -> None:
    assert_refused(faulty, empty, version)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_name_that_children_cannot_have_is_refused(empty: str, version: str, name: str) -> None:
    assert_refused(
        Faulty({}, ("metadata.name", name, NAME, "create the object under such a name")), empty, version, name
    )


def test_the_longest_name_is_accepted(empty: str, version: str) -> None:
    kube.apply(memcached(empty, "a" * 52, version), "--dry-run=server")


def test_an_image_whose_path_is_too_long_for_a_registry_is_refused(empty: str, version: str) -> None:
    path = "/".join(["a" * 63] * 5)
    said = kube.refused(memcached(empty, version=version, image=f"example.com/{path}:1"))
    for part in ("spec.image", "leave the field out"):
        assert part in said
    assert kube.get("memcacheds", empty, "cache") is None


def test_a_refused_change_leaves_the_object_as_it_was(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, resources=SMALL))
    before = must_get("memcacheds", namespace, "cache")
    target = (f"memcacheds.{version}.cache.example.com/cache", "-n", namespace)
    changes: list[Object] = [{"size": 0}, {"containerPort": 80}, {"image": "no such image"}]
    for spec in changes:
        kube.refused(memcached(namespace, version=version, **spec))
        patch = json.dumps({"spec": spec})
        assert kubectl("patch", *target, "--type=merge", "-p", patch, check=False).returncode != 0
    after = must_get("memcacheds", namespace, "cache")
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])


def test_scaling_to_0_is_refused_with_the_remedy(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, resources=SMALL))
    target = (f"memcacheds.{version}.cache.example.com/cache", "-n", namespace)
    done = kubectl("scale", *target, "--replicas=0", check=False)
    assert done.returncode != 0
    assert "spec.size: Invalid value: 0: must be at least 1; to stop the cache, delete the Memcached" in done.stderr
    assert must_get("memcacheds", namespace, "cache")["spec"]["size"] == 1


def test_an_object_applied_without_a_size_scales(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, resources=SMALL))
    kubectl("scale", f"memcacheds.{version}.cache.example.com/cache", "-n", namespace, "--replicas=2")
    found = settled(namespace)
    assert (found["spec"]["size"], found["status"]["readyReplicas"]) == (2, 2)


FILLED = {"size": 1, "containerPort": 11211, "image": IMAGE, "cache": {"memory": "64Mi"}}


@pytest.mark.parametrize("spec", [{}, {"size": None, "containerPort": None, "image": None}, None], ids=str)
def test_what_is_absent_is_filled_in(empty: str, version: str, spec: dict[str, Any] | None) -> None:
    asked: Object = {**memcached(empty, version=version), "spec": spec}
    if spec is None:
        del asked["spec"]
    stored = dry_run("create", asked)
    assert stored["spec"] == FILLED


def test_what_is_given_is_kept(empty: str, version: str) -> None:
    given: Object = {"size": 2, "containerPort": 12000, "image": OTHER_IMAGE, "cache": {"memory": "100Mi"}}
    assert dry_run("create", memcached(empty, version=version, **given))["spec"] == given


def test_the_image_in_force_is_the_one_filled_in(namespace: str) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    stored = settled(namespace)
    (container,) = must_get("deployments", namespace, "cache")["spec"]["template"]["spec"]["containers"]
    assert stored["spec"]["image"] == container["image"] == IMAGE


@pytest.mark.parametrize("verb", ["replace", "apply"])
def test_a_change_without_an_image_keeps_the_pinned_one(namespace: str, version: str, verb: str) -> None:
    kubectl("create", "-f", "-", stdin=memcached(namespace, version=version, image=OTHER_IMAGE, resources=SMALL))
    settled(namespace)  # kubectl reads before it replaces: a status written in between would be a conflict
    kubectl(verb, "-f", "-", stdin=memcached(namespace, version=version, containerPort=12000, resources=SMALL))
    spec = must_get("memcacheds", namespace, "cache")["spec"]
    assert (spec["image"], spec["containerPort"]) == (OTHER_IMAGE, 12000)


def test_a_dry_run_stores_nothing_and_starts_nothing(namespace: str, version: str, audit: Audit) -> None:
    dry_run("create", memcached(namespace, version=version))
    kube.apply(memcached(namespace, "other", version), "--dry-run=server")
    kube.apply(memcached(namespace, "last", version, resources=SMALL))
    # Its turn comes after theirs would have come.
    kube.eventually(lambda: kube.get("services", namespace, "last"), 15, "the children of the last one exist")
    assert kube.names(kube.items("memcacheds", namespace)) == ["last"]
    assert kube.names(kube.items("deployments", namespace)) == ["last"]
    asked = {
        request["objectRef"]["name"]
        for request in audit.requests()
        if request["userAgent"] == "memcached-operator" and request["objectRef"].get("namespace") == namespace
    }
    assert not {"cache", "other"} & asked


def dry_run(verb: str, asked: Object) -> Object:
    """What would be stored."""
    return json.loads(kubectl(verb, "--dry-run=server", "-o", "json", "-f", "-", stdin=asked).stdout)


RESTART = "this change replaces all pods in a rolling update; the cached data of these pods is lost"
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "port": ({"containerPort": 12000}, f"Warning: spec.containerPort: {RESTART}"),
    "image": ({"image": OTHER_IMAGE}, f"Warning: spec.image: {RESTART}"),
    "cache": ({"cache": {"memory": "65Mi"}}, f"Warning: spec.cache.memory: {RESTART}"),
    "resources": ({"resources": {"requests": {"cpu": "20m"}}}, f"Warning: spec.resources: {RESTART}"),
    "several": ({"containerPort": 12000, "image": OTHER_IMAGE}, f"Warning: spec.containerPort, spec.image: {RESTART}"),
    "fewer": ({"size": 1}, "Warning: 1 of 2 pods will be deleted; the cached data of these pods is lost"),
    "loose tag": ({"image": "memcached:latest"}, "Warning: spec.image memcached:latest has no fixed version"),
}


@pytest.fixture(scope="module")
def pair_of_pods() -> Iterator[str]:
    """A namespace with a Memcached of two pods, which tests only ask about."""
    with kube.own_namespace() as name:
        kube.apply(memcached(name, size=2))
        yield name


@pytest.mark.parametrize(("change", "told"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_that_costs_the_cache_is_told(pair_of_pods: str, version: str, change: Object, told: str) -> None:
    spec: Object = {"size": 2, **change}
    asked = memcached(pair_of_pods, version=version, **spec)
    done = kubectl("apply", "--dry-run=server", "-f", "-", stdin=asked)
    assert told in done.stderr


@pytest.mark.parametrize("change", [{"size": 2}, {"size": 3}, {"cache": {"memory": "65536Ki"}}], ids=str)
def test_a_change_that_costs_nothing_is_not_warned_of(pair_of_pods: str, version: str, change: Object) -> None:
    spec: Object = {"size": 2, **change}
    asked = memcached(pair_of_pods, version=version, **spec)
    assert kubectl("apply", "--dry-run=server", "-f", "-", stdin=asked).stderr == ""
