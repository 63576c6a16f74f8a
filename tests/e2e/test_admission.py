"""Admission of the deployed operator as a user of kubectl sees it: one rejection, the defaults and one warning of each
kind and version.

tests/unit/api and tests/unit/webhooks test all rules, defaults and warnings, tests/integration/test_rules.py those of
the CRDs.
"""

import json
from collections.abc import Iterator

import pytest

from support import invalid_appservice, invalid_memcached, kube
from support.admitted import admitted
from support.appservice import IMAGE as NGINX
from support.appservice import OTHER_IMAGE as OTHER_NGINX
from support.appservice import PLURAL, appservice
from support.invalid_memcached import InvalidObject
from support.kube import Object, kubectl
from support.memcached import IMAGE, OTHER_IMAGE, memcached

VERSIONS = ("v1", "v1alpha1")
SEVERAL = "several violations"

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Each version of the API of Memcached."""
    return request.param


@pytest.fixture(scope="module")
def space() -> Iterator[str]:
    """A namespace with Memcacheds and an AppService; tests change them only with dry runs."""
    with kube.temporary_namespace() as name:
        kube.apply(memcached(name, size=2))
        kube.apply(memcached(name, "other", image=OTHER_IMAGE))
        kube.apply(appservice(name, size=2, ports=[{"port": 80}]))
        yield name


def dry_run(obj: Object, verb: str = "apply") -> tuple[Object, str]:
    """The object that would be stored, and the warnings."""
    done = kubectl(verb, "--dry-run=server", "-o", "json", "-f", "-", stdin=obj)
    return json.loads(done.stdout), done.stderr


def assert_rejected(plural: str, obj: Object, invalid: InvalidObject) -> None:
    """Assert that `kubectl apply` fails with every expected part of the message, and that nothing is stored."""
    error = kube.rejection(obj)
    assert [part for part in invalid.expected if part not in error] == [], error
    assert kube.get(plural, obj["metadata"]["namespace"], obj["metadata"]["name"]) is None


def test_violations_of_a_memcached_are_rejected_with_field_value_and_remedy(space: str, version: str) -> None:
    invalid = invalid_memcached.RULES[SEVERAL]
    assert_rejected("memcacheds", memcached(space, "invalid", version, **invalid.spec), invalid)


def test_violations_of_an_appservice_are_rejected_with_field_value_and_remedy(space: str) -> None:
    invalid = invalid_appservice.RULES[SEVERAL]
    assert_rejected(PLURAL, appservice(space, "invalid", **invalid.spec), invalid)


def test_scaling_to_0_is_rejected_with_the_remedy(space: str, version: str) -> None:
    target = f"memcacheds.{version}.cache.example.com/cache"
    done = kubectl("scale", target, "-n", space, "--replicas=0", check=False)
    assert done.returncode != 0
    assert "spec.size: Invalid value: 0: must be at least 1; to stop the cache, delete the Memcached" in done.stderr
    assert kube.must_get("memcacheds", space, "cache")["spec"]["size"] == 2


def test_defaults_of_a_memcached_are_set(space: str, version: str) -> None:
    obj = memcached(space, "new", version)
    del obj["spec"]
    spec = admitted(image=IMAGE)
    # The API server adds the defaults of the schema.
    expected: Object = {"cache": {}, **spec, "podTemplate": {"metadata": {}, **spec["podTemplate"]}}
    assert dry_run(obj, "create")[0]["spec"] == expected


def test_default_of_an_appservice_is_set(space: str) -> None:
    ports = [{"port": 8080}]
    stored, _ = dry_run(appservice(space, "new", ports=ports), "create")
    assert stored["spec"] == {"image": NGINX, "size": 1, "ports": ports}


def test_image_that_leaves_the_manifest_becomes_the_default(space: str, version: str) -> None:
    stored, warnings = dry_run(memcached(space, "other", version, containerPort=12000))
    assert (stored["spec"]["image"], stored["spec"]["containerPort"]) == (IMAGE, 12000)
    assert f"Warning: spec.image was removed, so its default is set, {IMAGE}" in warnings


def test_change_that_loses_items_is_warned_about(space: str, version: str) -> None:
    _, warnings = dry_run(memcached(space, version=version, size=2, containerPort=12000))
    restart = "this change replaces 2 pods, one at a time; their cached items are lost"
    assert f"Warning: spec.containerPort: {restart}" in warnings
    assert dry_run(memcached(space, version=version, size=2))[1] == ""


def test_change_of_an_appservice_is_warned_about(space: str) -> None:
    _, warnings = dry_run(appservice(space, size=2, ports=[{"port": 80}], image=OTHER_NGINX))
    assert "Warning: spec.image: this change replaces 2 pods, a few at a time" in warnings
    assert dry_run(appservice(space, size=2, ports=[{"port": 80}]))[1] == ""
