"""Admission of the deployed operator as a user of kubectl sees it: the defaults, and one warning.

tests/unit/api and tests/unit/webhooks test all rules, defaults and warnings, tests/integration/test_rules.py those of
the CRDs. test_systems.py tests a rejection, and test_updates.py a warning about items.
"""

import json
from collections.abc import Iterator

import pytest

from support import kube
from support.admitted import admitted
from support.appservice import IMAGE as NGINX
from support.appservice import OTHER_IMAGE as OTHER_NGINX
from support.appservice import appservice
from support.kube import Object, kubectl
from support.memcached import IMAGE, memcached

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def space() -> Iterator[str]:
    """A namespace with an AppService; tests change it only with dry runs."""
    with kube.temporary_namespace() as name:
        kube.apply(appservice(name, size=2, ports=[{"port": 80}]))
        yield name


def dry_run(obj: Object, verb: str = "apply") -> tuple[Object, str]:
    """The object that would be stored, and the warnings."""
    done = kubectl(verb, "--dry-run=server", "-o", "json", "-f", "-", stdin=obj)
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
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


def test_change_of_an_appservice_is_warned_about(space: str) -> None:
    _, warnings = dry_run(appservice(space, size=2, ports=[{"port": 80}], image=OTHER_NGINX))
    assert "Warning: spec.image: this change replaces 2 pods, a few at a time" in warnings
    assert dry_run(appservice(space, size=2, ports=[{"port": 80}]))[1] == ""
