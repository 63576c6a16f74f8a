from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.memcached.ports import ports
from memcached_api.memcached.types import decode_spec
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.deployment import deployment
from memcached_operator.memcached.desired.pods import command
from memcached_operator.memcached.desired.service import services
from unit.builders import LABELS, memcached

IMAGE = "example.com/memcached:1"


def built(**spec: Any) -> Object:
    """The Deployment for a spec."""
    cr = memcached(**spec)
    return deployment(cr, decode_spec(cr), Images(IMAGE))


def pod_of(**spec: Any) -> Object:
    """The pod spec for a spec."""
    return built(**spec)["spec"]["template"]["spec"]


def container_of(**spec: Any) -> Object:
    """The only container."""
    (container,) = pod_of(**spec)["containers"]
    return container


def served(**spec: Any) -> Object:
    """The only Service for a spec."""
    cr = memcached(**spec)
    decoded = decode_spec(cr)
    (found,) = services(cr, decoded, ports(decoded))
    return found


COMMANDS: dict[str, tuple[dict[str, Any], str]] = {
    "defaults": ({}, "memcached -m 64 -p 11211 -U 0 -o modern -v"),
    "port": ({"containerPort": 12345}, "memcached -m 64 -p 12345 -U 0 -o modern -v"),
    "memory": ({"cache": {"memory": "1Gi"}}, "memcached -m 1024 -p 11211 -U 0 -o modern -v"),
    "memory from the limit": (
        {"resources": {"limits": {"memory": "1Gi"}}},
        "memcached -m 722 -p 11211 -U 0 -o modern -v",
    ),
    "memory before the limit": (
        {"cache": {"memory": "1Gi"}, "resources": {"limits": {"memory": "2Gi"}}},
        "memcached -m 1024 -p 11211 -U 0 -o modern -v",
    ),
    "memcached's own defaults": (
        {"cache": {"maxItemSize": "1Mi", "maxConnections": 1024, "threads": 4, "evictions": True, "verbosity": 1}},
        "memcached -m 64 -p 11211 -U 0 -o modern -v",
    ),
    "every setting": (
        {"cache": {"maxItemSize": "1.5Mi", "maxConnections": 100, "threads": 2, "evictions": False, "verbosity": 2}},
        "memcached -m 64 -p 11211 -U 0 -o modern -vv -I 1572864 -c 100 -t 2 -M",
    ),
    "no log": ({"cache": {"verbosity": 0}}, "memcached -m 64 -p 11211 -U 0 -o modern"),
    "memory is rounded down": ({"cache": {"memory": "3000Ki"}}, "memcached -m 2 -p 11211 -U 0 -o modern -v"),
    "memory in bytes": ({"cache": {"memory": 2**21}}, "memcached -m 2 -p 11211 -U 0 -o modern -v"),
}


@pytest.mark.parametrize(("spec", "line"), COMMANDS.values(), ids=COMMANDS.keys())
def test_command(spec: dict[str, Any], line: str) -> None:
    assert command(decode_spec(memcached(**spec))) == line.split()


def test_size_is_the_number_of_replicas() -> None:
    assert built()["spec"]["replicas"] == 1
    assert built(size=5)["spec"]["replicas"] == 5


def test_size_does_not_change_the_pods() -> None:
    assert pod_of(size=1) == pod_of(size=5)


def test_pods_do_not_run_as_root_and_have_a_read_only_file_system() -> None:
    container = container_of()
    assert pod_of()["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 1001,
        "runAsGroup": 1001,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_pods_have_no_token_and_no_service_links() -> None:
    pod = pod_of()
    assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)


def test_both_probes_connect_to_the_container_port() -> None:
    container = container_of(containerPort=12345)
    (port,) = container["ports"]
    assert port == {"name": "memcached", "containerPort": 12345, "protocol": "TCP"}
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["tcpSocket"] == {"port": port["name"]}


def test_pod_drains_before_it_terminates() -> None:
    assert container_of()["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}


@pytest.mark.parametrize("policy", ["Always", "IfNotPresent", "Never"])
def test_pull_policy_is_that_of_the_spec(policy: str) -> None:
    assert container_of(imagePullPolicy=policy)["imagePullPolicy"] == policy


def test_unset_pull_fields_are_omitted() -> None:
    assert "imagePullPolicy" not in container_of()
    assert "imagePullSecrets" not in pod_of()
    assert "imagePullSecrets" not in pod_of(imagePullSecrets=[])


def test_pull_secrets_are_those_of_the_spec() -> None:
    secrets = [{"name": "a"}, {"name": "b"}]
    assert pod_of(imagePullSecrets=secrets)["imagePullSecrets"] == secrets


def test_selectors_have_no_version_and_no_image() -> None:
    assert built()["spec"]["selector"] == {"matchLabels": LABELS}
    assert served()["spec"]["selector"] == LABELS


def test_pods_have_the_selector_labels() -> None:
    labels = built()["spec"]["template"]["metadata"]["labels"]
    assert labels == LABELS | {"app.kubernetes.io/component": "cache"}


def test_children_have_the_name_of_the_object() -> None:
    for child in (built(), served()):
        assert (child["metadata"]["name"], child["metadata"]["namespace"]) == ("cache", "test")
        assert child["metadata"]["labels"] == LABELS | {"app.kubernetes.io/component": "cache"}


def test_service_is_headless_and_has_the_port() -> None:
    spec = served(containerPort=12345)["spec"]
    assert spec["clusterIP"] == "None"
    assert spec["ports"] == [{"name": "memcached", "port": 12345, "protocol": "TCP", "targetPort": "memcached"}]
