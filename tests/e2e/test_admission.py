"""Admission of Memcached as a user of kubectl sees it: rejections, defaults and warnings."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support import kube
from support.admitted import admitted
from support.audit import Audit
from support.invalid_memcached import NAME, NAMES, RULES, TYPES, InvalidObject
from support.kube import Object, kubectl, must_get
from support.memcached import IMAGE, SMALL, memcached, wait_until_ready

VERSIONS = ("v1", "v1alpha1")
OTHER_IMAGE = "docker.io/library/memcached:1.6"

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Each of the API versions."""
    return request.param


@pytest.fixture(scope="module")
def empty() -> Iterator[str]:
    """A namespace in which no test stores anything."""
    with kube.temporary_namespace() as name:
        yield name


def assert_rejected(invalid: InvalidObject, namespace: str, version: str, name: str = "cache") -> None:
    """Assert that `kubectl apply` fails with every expected part of the message, and that nothing is stored."""
    error = kube.rejection(memcached(namespace, name, version, **invalid.spec))
    assert [part for part in invalid.expected if part not in error] == [], error
    assert kube.get("memcacheds", namespace, name) is None


@pytest.mark.parametrize("invalid", RULES.values(), ids=RULES.keys())
def test_violation_is_rejected_with_field_value_and_remedy(empty: str, version: str, invalid: InvalidObject) -> None:
    assert_rejected(invalid, empty, version)


@pytest.mark.parametrize("invalid", TYPES.values(), ids=TYPES.keys())
def test_schema_violation_is_rejected_with_the_api_servers_message(
    empty: str, version: str, invalid: InvalidObject
) -> None:
    assert_rejected(invalid, empty, version)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_name_that_is_invalid_for_children_is_rejected(empty: str, version: str, name: str) -> None:
    assert_rejected(
        InvalidObject({}, ("metadata.name", name, NAME, "create the object with a valid name")), empty, version, name
    )


def test_the_longest_name_is_accepted(empty: str, version: str) -> None:
    kube.apply(memcached(empty, "a" * 52, version), "--dry-run=server")


def test_image_with_a_too_long_path_is_rejected(empty: str, version: str) -> None:
    path = "/".join(["a" * 63] * 5)
    error = kube.rejection(memcached(empty, version=version, image=f"example.com/{path}:1"))
    for part in ("spec.image", "omit the field on create"):
        assert part in error
    assert kube.get("memcacheds", empty, "cache") is None


def test_rejected_change_does_not_modify_the_object(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, resources=SMALL))
    before = must_get("memcacheds", namespace, "cache")
    target = (f"memcacheds.{version}.cache.example.com/cache", "-n", namespace)
    changes: list[Object] = [{"size": 0}, {"containerPort": 80}, {"image": "no such image"}]
    for spec in changes:
        kube.rejection(memcached(namespace, version=version, **spec))
        patch = json.dumps({"spec": spec})
        assert kubectl("patch", *target, "--type=merge", "-p", patch, check=False).returncode != 0
    after = must_get("memcacheds", namespace, "cache")
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])


def test_scaling_to_0_is_rejected_with_the_remedy(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, resources=SMALL))
    target = (f"memcacheds.{version}.cache.example.com/cache", "-n", namespace)
    done = kubectl("scale", *target, "--replicas=0", check=False)
    assert done.returncode != 0
    assert "spec.size: Invalid value: 0: must be at least 1; to stop the cache, delete the Memcached" in done.stderr
    assert must_get("memcacheds", namespace, "cache")["spec"]["size"] == 1


def test_object_applied_without_a_size_can_be_scaled(namespace: str, version: str) -> None:
    kube.apply(memcached(namespace, version=version, resources=SMALL))
    kubectl("scale", f"memcacheds.{version}.cache.example.com/cache", "-n", namespace, "--replicas=2")
    found = wait_until_ready(namespace)
    assert (found["spec"]["size"], found["status"]["readyReplicas"]) == (2, 2)


def stored_spec(**given: Any) -> Object:
    """A spec as it is stored: the webhook sets defaults, and the API server those of the schema."""
    spec = admitted(**given)
    return {"cache": {}, **spec, "podTemplate": {"metadata": {}, **spec["podTemplate"]}}


@pytest.mark.parametrize("spec", [{}, {"size": None, "containerPort": None, "image": None}, None], ids=str)
def test_defaults_are_set(empty: str, version: str, spec: dict[str, Any] | None) -> None:
    obj: Object = {**memcached(empty, version=version), "spec": spec}
    if spec is None:
        del obj["spec"]
    stored = dry_run("create", obj)
    assert stored["spec"] == stored_spec(image=IMAGE)


def test_given_values_are_kept(empty: str, version: str) -> None:
    given: Object = {"size": 2, "containerPort": 12000, "image": OTHER_IMAGE, "cache": {"memory": "100Mi"}}
    assert dry_run("create", memcached(empty, version=version, **given))["spec"] == stored_spec(**given)


def test_pods_run_the_default_image(namespace: str) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    stored = wait_until_ready(namespace)
    (container,) = must_get("deployments", namespace, "cache")["spec"]["template"]["spec"]["containers"]
    assert stored["spec"]["image"] == container["image"] == IMAGE


@pytest.mark.parametrize("verb", ["replace", "apply"])
def test_change_without_an_image_keeps_the_stored_one(namespace: str, version: str, verb: str) -> None:
    kubectl("create", "-f", "-", stdin=memcached(namespace, version=version, image=OTHER_IMAGE, resources=SMALL))
    wait_until_ready(namespace)  # a status written between kubectl's read and its replace would be a conflict
    kubectl(verb, "-f", "-", stdin=memcached(namespace, version=version, containerPort=12000, resources=SMALL))
    spec = must_get("memcacheds", namespace, "cache")["spec"]
    assert (spec["image"], spec["containerPort"]) == (OTHER_IMAGE, 12000)


def test_dry_run_has_no_effect(namespace: str, version: str, audit: Audit) -> None:
    dry_run("create", memcached(namespace, version=version))
    kube.apply(memcached(namespace, "other", version), "--dry-run=server")
    kube.apply(memcached(namespace, "last", version, resources=SMALL))
    # The queue would have reached the others first.
    kube.eventually(lambda: kube.get("services", namespace, "last"), 60, "the children of the last object exist")
    assert kube.names(kube.items("memcacheds", namespace)) == ["last"]
    assert kube.names(kube.items("deployments", namespace)) == ["last"]
    requested = {
        request["objectRef"]["name"]
        for request in audit.requests()
        if request["userAgent"] == "memcached-operator" and request["objectRef"].get("namespace") == namespace
    }
    assert not {"cache", "other"} & requested


def dry_run(verb: str, obj: Object) -> Object:
    """The object that would be stored."""
    return json.loads(kubectl(verb, "--dry-run=server", "-o", "json", "-f", "-", stdin=obj).stdout)


RESTART = "this change replaces 2 pods, a few at a time; their cached items are lost"
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "port": ({"containerPort": 12000}, f"Warning: spec.containerPort: {RESTART}"),
    "image": ({"image": OTHER_IMAGE}, f"Warning: spec.image: {RESTART}"),
    "cache": ({"cache": {"memory": "65Mi"}}, f"Warning: spec.cache.memory: {RESTART}"),
    "resources": ({"resources": {"requests": {"cpu": "20m"}}}, f"Warning: spec.resources: {RESTART}"),
    "several": ({"containerPort": 12000, "image": OTHER_IMAGE}, f"Warning: spec.containerPort, spec.image: {RESTART}"),
    "more pods": ({"size": 3}, "Warning: 2 → 3 pods: with consistent hashing about 33 % of the keys move"),
    "fewer pods": (
        {"size": 1},
        "Warning: 2 → 1 pods: with consistent hashing about 50 % of the keys move; the cached items of the",
    ),
    "tag without a fixed version": (
        {"image": "memcached:latest"},
        "Warning: spec.image memcached:latest has no fixed version",
    ),
}


@pytest.fixture(scope="module")
def two_pods() -> Iterator[str]:
    """A namespace with a Memcached of two pods; tests change it only with dry runs."""
    with kube.temporary_namespace() as name:
        kube.apply(memcached(name, size=2))
        yield name


@pytest.mark.parametrize(("change", "warning"), CHANGES.values(), ids=CHANGES.keys())
def test_change_that_loses_cached_data_is_warned_about(
    two_pods: str, version: str, change: Object, warning: str
) -> None:
    spec: Object = {"size": 2, **change}
    obj = memcached(two_pods, version=version, **spec)
    done = kubectl("apply", "--dry-run=server", "-f", "-", stdin=obj)
    assert warning in done.stderr


@pytest.mark.parametrize("change", [{"size": 2}, {"cache": {"memory": "65536Ki"}}], ids=str)
def test_change_without_data_loss_has_no_warning(two_pods: str, version: str, change: Object) -> None:
    spec: Object = {"size": 2, **change}
    obj = memcached(two_pods, version=version, **spec)
    assert kubectl("apply", "--dry-run=server", "-f", "-", stdin=obj).stderr == ""
