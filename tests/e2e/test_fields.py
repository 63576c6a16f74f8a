"""Every optional field set, changed and removed again: the children follow each time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from support import kube
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import IMAGE, memcached, settled

OTHER_IMAGE = "docker.io/library/memcached:1.6.39"

pytestmark = pytest.mark.usefixtures("cluster")


@dataclass(frozen=True)
class Seen:
    """The children of a Memcached."""

    deployment: Object
    service: Object

    @property
    def pod(self) -> Object:
        """The spec of the pods."""
        return self.deployment["spec"]["template"]["spec"]

    @property
    def container(self) -> Object:
        """Their only container."""
        return self.pod["containers"][0]

    def resources(self, part: str) -> Object:
        """Its requests or limits."""
        return self.container["resources"][part]

    def flag(self, name: str) -> str:
        """The value behind a flag of the command line."""
        command: list[str] = self.container["command"]
        return command[command.index(name) + 1]

    def ports(self) -> list[Any]:
        """Every port there is: of the container, the command line, the Service."""
        container, service = self.container["ports"], self.service["spec"]["ports"]
        assert (len(container), len(service)) == (1, 1)
        return [container[0]["containerPort"], int(self.flag("-p")), service[0]["port"]]


@dataclass(frozen=True)
class Case:
    """Two specs that set a field in two ways, where to look, and what is there with each of them and without."""

    look: Callable[[Seen], Any]
    first: Object
    second: Object
    seen: tuple[Any, Any, Any]


def limits(**amounts: Any) -> Object:
    """A spec with resource limits."""
    return {"resources": {"limits": amounts}}


def requests(**amounts: Any) -> Object:
    """A spec with resource requests."""
    return {"resources": {"requests": amounts}}


def secrets(*names: str) -> Object:
    """A spec with secrets for pulling the image."""
    return {"imagePullSecrets": [{"name": name} for name in names]}


CASES: dict[str, Case] = {
    "size": Case(lambda seen: seen.deployment["spec"]["replicas"], {"size": 2}, {"size": 3}, (2, 3, 1)),
    "containerPort": Case(
        Seen.ports, {"containerPort": 11311}, {"containerPort": 11411}, ([11311] * 3, [11411] * 3, [11211] * 3)
    ),
    "imagePullPolicy": Case(
        lambda seen: seen.container["imagePullPolicy"],
        {"imagePullPolicy": "Never"},
        {"imagePullPolicy": "Always"},
        ("Never", "Always", "IfNotPresent"),
    ),
    "imagePullSecrets": Case(
        lambda seen: seen.pod.get("imagePullSecrets"),
        secrets("one", "two"),
        secrets("two"),
        ([{"name": "one"}, {"name": "two"}], [{"name": "two"}], None),
    ),
    "cache.memory": Case(
        lambda seen: (seen.flag("-m"), seen.resources("limits")["memory"]),
        {"cache": {"memory": "32Mi"}},
        {"cache": {"memory": "100Mi"}},
        (("32", "128Mi"), ("100", "168Mi"), ("64", "128Mi")),
    ),
    "limits.memory": Case(
        lambda seen: (seen.resources("limits")["memory"], seen.resources("requests")["memory"]),
        limits(memory="100Mi"),
        limits(memory="1024Mi"),
        (("100Mi", "100Mi"), ("1Gi", "128Mi"), ("128Mi", "128Mi")),
    ),
    "limits.cpu": Case(
        lambda seen: (seen.resources("limits").get("cpu"), seen.resources("requests")["cpu"]),
        limits(cpu="0.5"),
        limits(cpu="50m"),
        (("500m", "100m"), ("50m", "50m"), (None, "100m")),
    ),
    "limits.ephemeral-storage": Case(
        lambda seen: seen.resources("limits").get("ephemeral-storage"),
        limits(**{"ephemeral-storage": "1Gi"}),
        limits(**{"ephemeral-storage": "512Mi"}),
        ("1Gi", "512Mi", None),
    ),
    "requests.cpu": Case(
        lambda seen: seen.resources("requests")["cpu"],
        requests(cpu="20m"),
        requests(cpu="0.03"),
        ("20m", "30m", "100m"),
    ),
    "requests.memory": Case(
        lambda seen: (seen.resources("requests")["memory"], seen.resources("limits")["memory"]),
        requests(memory="16Mi"),
        requests(memory="200Mi"),
        (("16Mi", "128Mi"), ("200Mi", "200Mi"), ("128Mi", "128Mi")),
    ),
}


def children(namespace: str) -> Seen:
    """The children as they are now."""
    return Seen(must_get("deployments", namespace, "cache"), must_get("services", namespace, "cache"))


def apply_and_expect(namespace: str, spec: Object, look: Callable[[Seen], Any], expected: Any) -> None:
    """With this spec the children come to look so."""
    kube.apply(memcached(namespace, **spec))
    wait_for(namespace, look, expected)


def wait_for(namespace: str, look: Callable[[Seen], Any], expected: Any) -> None:
    """Wait until the children look so."""

    def follows() -> bool:
        assert look(children(namespace)) == expected
        return True

    eventually(follows, 15, "the children follow the spec")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_children_follow_a_field_set_changed_removed_and_set_again(namespace: str, case: Case) -> None:
    first, second, without = case.seen
    for spec, expected in ((case.first, first), (case.second, second), ({}, without), (case.first, first)):
        apply_and_expect(namespace, spec, case.look, expected)
    apply_and_expect(namespace, {}, case.look, without)
    settled(namespace)


def test_the_image_follows_and_stays_when_it_is_no_longer_named(namespace: str) -> None:
    for image in (IMAGE, OTHER_IMAGE):
        apply_and_expect(namespace, {"image": image}, lambda seen: seen.container["image"], image)
    kube.apply(memcached(namespace))
    spec = settled(namespace)["spec"]
    # Admission keeps the image of before; without admission it is the operator's default.
    assert children(namespace).container["image"] == spec.get("image", IMAGE)


def test_a_field_set_by_replace_goes_with_the_next_replace(namespace: str) -> None:
    kubectl("create", "-f", "-", stdin=memcached(namespace, **limits(cpu="1", memory="200Mi")))
    for amounts in ({"cpu": "1"}, {"memory": "256Mi"}, {"cpu": "500m"}):
        settled(namespace)  # kubectl refuses to replace what is being written to at that very moment
        kubectl("replace", "-f", "-", stdin=memcached(namespace, **limits(**amounts)))
        expected = {"memory": "128Mi", **amounts}
        wait_for(namespace, lambda seen: seen.resources("limits"), expected)
