"""Setting, changing and removing every optional field updates the children."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from support import kube
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import IMAGE, memcached, wait_until_ready

OTHER_IMAGE = "docker.io/library/memcached:1.6.39"

pytestmark = pytest.mark.usefixtures("cluster")


@dataclass(frozen=True)
class Children:
    """The children of a Memcached."""

    deployment: Object
    service: Object

    @property
    def pod(self) -> Object:
        """The pod template's spec."""
        return self.deployment["spec"]["template"]["spec"]

    @property
    def container(self) -> Object:
        """The only container of the pod template."""
        return self.pod["containers"][0]

    def resources(self, part: str) -> Object:
        """The requests or limits of the container."""
        return self.container["resources"][part]

    @property
    def command(self) -> list[str]:
        """The command of the container."""
        return self.container["command"]

    def flag(self, name: str) -> str | None:
        """The value of a flag of the container's command; None without the flag."""
        return self.command[self.command.index(name) + 1] if name in self.command else None

    def ports(self) -> list[Any]:
        """The ports of the container, of its command and of the Service."""
        container, service = self.container["ports"], self.service["spec"]["ports"]
        assert (len(container), len(service)) == (1, 1)
        return [container[0]["containerPort"], int(self.flag("-p") or 0), service[0]["port"]]


@dataclass(frozen=True)
class Case:
    """Two specs with different values of a field, how to read the result, and the results with each and without."""

    read: Callable[[Children], Any]
    first: Object
    second: Object
    expected: tuple[Any, Any, Any]


def limits(**amounts: Any) -> Object:
    """A spec with resource limits."""
    return {"resources": {"limits": amounts}}


def requests(**amounts: Any) -> Object:
    """A spec with resource requests."""
    return {"resources": {"requests": amounts}}


def secrets(*names: str) -> Object:
    """A spec with image pull secrets."""
    return {"imagePullSecrets": [{"name": name} for name in names]}


CASES: dict[str, Case] = {
    "size": Case(lambda children: children.deployment["spec"]["replicas"], {"size": 2}, {"size": 3}, (2, 3, 1)),
    "containerPort": Case(
        Children.ports, {"containerPort": 11311}, {"containerPort": 11411}, ([11311] * 3, [11411] * 3, [11211] * 3)
    ),
    "imagePullPolicy": Case(
        lambda children: children.container["imagePullPolicy"],
        {"imagePullPolicy": "Never"},
        {"imagePullPolicy": "Always"},
        ("Never", "Always", "IfNotPresent"),
    ),
    "imagePullSecrets": Case(
        lambda children: children.pod.get("imagePullSecrets"),
        secrets("one", "two"),
        secrets("two"),
        ([{"name": "one"}, {"name": "two"}], [{"name": "two"}], None),
    ),
    "cache.memory": Case(
        lambda children: (children.flag("-m"), children.resources("limits")["memory"]),
        {"cache": {"memory": "32Mi"}},
        {"cache": {"memory": "100Mi"}},
        (("32", "128Mi"), ("100", "168Mi"), ("64", "128Mi")),
    ),
    "cache.maxItemSize": Case(
        lambda children: children.flag("-I"),
        {"cache": {"maxItemSize": "2Mi"}},
        {"cache": {"maxItemSize": "512Ki"}},
        ("2097152", "524288", None),
    ),
    "cache.maxConnections": Case(
        lambda children: (children.flag("-c"), children.resources("limits")["memory"]),
        {"cache": {"maxConnections": 100}},
        {"cache": {"maxConnections": 5000}},
        (("100", "128Mi"), ("5000", "157Mi"), (None, "128Mi")),
    ),
    "cache.threads": Case(
        lambda children: children.flag("-t"), {"cache": {"threads": 2}}, {"cache": {"threads": 8}}, ("2", "8", None)
    ),
    "cache.evictions": Case(
        lambda children: "-M" in children.command,
        {"cache": {"evictions": False}},
        {"cache": {"evictions": True}},
        (True, False, False),
    ),
    "cache.verbosity": Case(
        lambda children: [word for word in children.command if word.startswith("-v")],
        {"cache": {"verbosity": 2}},
        {"cache": {"verbosity": 0}},
        (["-vv"], [], ["-v"]),
    ),
    "cache.extraArgs": Case(
        lambda children: children.command[children.command.index("-v") + 1 :],
        {"cache": {"extraArgs": ["--disable-watch", "-o hashpower=17"]}},
        {"cache": {"extraArgs": ["--disable-watch"]}},
        (["--disable-watch", "-o", "hashpower=17"], ["--disable-watch"], []),
    ),
    "limits.memory": Case(
        lambda children: (children.resources("limits")["memory"], children.resources("requests")["memory"]),
        limits(memory="100Mi"),
        limits(memory="1024Mi"),
        (("100Mi", "100Mi"), ("1Gi", "1Gi"), ("128Mi", "128Mi")),
    ),
    "limits.cpu": Case(
        lambda children: (children.resources("limits").get("cpu"), children.resources("requests")["cpu"]),
        limits(cpu="0.5"),
        limits(cpu="50m"),
        (("500m", "100m"), ("50m", "50m"), (None, "100m")),
    ),
    "limits.ephemeral-storage": Case(
        lambda children: children.resources("limits").get("ephemeral-storage"),
        limits(**{"ephemeral-storage": "1Gi"}),
        limits(**{"ephemeral-storage": "512Mi"}),
        ("1Gi", "512Mi", None),
    ),
    "requests.cpu": Case(
        lambda children: children.resources("requests")["cpu"],
        requests(cpu="20m"),
        requests(cpu="0.03"),
        ("20m", "30m", "100m"),
    ),
    "requests.memory": Case(
        lambda children: (children.resources("requests")["memory"], children.resources("limits")["memory"]),
        requests(memory="16Mi"),
        requests(memory="200Mi"),
        (("16Mi", "128Mi"), ("200Mi", "200Mi"), ("128Mi", "128Mi")),
    ),
}


def current_children(namespace: str) -> Children:
    """The children in the cluster."""
    return Children(must_get("deployments", namespace, "cache"), must_get("services", namespace, "cache"))


def apply_and_expect(namespace: str, spec: Object, read: Callable[[Children], Any], expected: Any) -> None:
    """Apply a spec and wait until reading the children returns `expected`."""
    kube.apply(memcached(namespace, **spec))
    wait_for(namespace, read, expected)


def wait_for(namespace: str, read: Callable[[Children], Any], expected: Any) -> None:
    """Wait until reading the children returns `expected`."""

    def updated() -> bool:
        assert read(current_children(namespace)) == expected
        return True

    eventually(updated, 60, "the children match the spec")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_setting_changing_removing_and_setting_a_field_again(namespace: str, case: Case) -> None:
    first, second, without = case.expected
    for spec, expected in ((case.first, first), (case.second, second), ({}, without), (case.first, first)):
        apply_and_expect(namespace, spec, case.read, expected)
    apply_and_expect(namespace, {}, case.read, without)
    wait_until_ready(namespace)


def test_image_is_updated_and_kept_when_removed_from_the_spec(namespace: str) -> None:
    for image in (IMAGE, OTHER_IMAGE):
        apply_and_expect(namespace, {"image": image}, lambda children: children.container["image"], image)
    kube.apply(memcached(namespace))
    spec = wait_until_ready(namespace)["spec"]
    # Admission keeps the previous image; without admission it is the operator's default.
    assert current_children(namespace).container["image"] == spec.get("image", IMAGE)


def test_replace_removes_fields_set_by_a_previous_replace(namespace: str) -> None:
    kubectl("create", "-f", "-", stdin=memcached(namespace, **limits(cpu="1", memory="200Mi")))
    for amounts in ({"cpu": "1"}, {"memory": "256Mi"}, {"cpu": "500m"}):
        wait_until_ready(namespace)  # a status written between kubectl's read and its replace would be a conflict
        kubectl("replace", "-f", "-", stdin=memcached(namespace, **limits(**amounts)))
        expected = {"memory": "128Mi", **amounts}
        wait_for(namespace, lambda children: children.resources("limits"), expected)
