"""AppService objects that must be rejected by admission and by the CRD alone, with the expected parts of each error."""

from typing import Any, Final

from support.invalid import Table, at, row
from support.invalid_shared import INVALID as INVALID_SHARED
from support.invalid_shared import VALID as VALID_SHARED

SIZE = "must be at least 1; to stop the service, delete the AppService object instead"
IMAGE = "must be an image reference such as docker.io/library/nginx:1.28"
PORT = "must be between 1 and 65535"
NODE_PORT = "must be between 1 and 65535; remove the field to let Kubernetes choose one"
PORT_NAME = "must consist of lower-case letters, digits and '-'"
TWICE = "must be unique among the ports with the same protocol"
TARGET = "or the name of another entry of ports with the same protocol and a numeric targetPort"
ENV_NAME = "must consist of letters, digits, '_', '-' and '.', and must not start with a digit"
SOURCES = "must set exactly one of configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef"

SECRET = {"secretKeyRef": {"name": "credentials", "key": "password"}}
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}


def ports(*entries: dict[str, Any]) -> dict[str, Any]:
    """A spec with ports."""
    return {"ports": list(entries)}


def envs(*entries: dict[str, Any]) -> dict[str, Any]:
    """A spec with environment variables."""
    return {"envs": list(entries)}


RULES: Final[Table] = (
    *INVALID_SHARED,
    at("size", 0, SIZE),
    at("image", "no such image", IMAGE),
    at("image", "", IMAGE),
    at("ports[0].port", 0, PORT),
    at("ports[1].port", 65536, PORT, given={"ports": [{"port": 80}]}),
    row(ports({"name": "a", "port": 80}, {"name": "b", "port": 80}), "spec.ports", "80", TWICE, "another number"),
    at("ports[0].nodePort", 0, NODE_PORT, port=80),
    at("ports[0].nodePort", 65536, NODE_PORT, port=80),
    row(ports({"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 80}), "spec.ports", "80", TWICE),
    row(
        ports({"port": 80, "nodePort": 32001}, {"port": 81, "nodePort": 32001}),
        *("spec.ports", "32001", TWICE, "or remove it"),
    ),
    at("ports[0].name", "HTTP", PORT_NAME, "such as http", port=80),
    row(
        ports({"name": "web", "port": 80}, {"name": "web", "port": 81}),
        *("spec.ports", "web", "must be unique in ports", "rename one"),
    ),
    at("ports[0].targetPort", 0, PORT, port=80),
    at("ports[0].targetPort", 65536, PORT, port=80),
    row(ports({"port": 80, "targetPort": "8080"}), "spec.ports", "without quotes", TARGET),
    row(ports({"name": "http", "port": 80, "targetPort": "web"}), "spec.ports", TARGET),
    row(ports({"name": "http", "port": 80, "targetPort": "http"}), "spec.ports", TARGET),
    row(
        ports({"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53, "targetPort": "dns"}),
        *("spec.ports", TARGET),
    ),
    row(ports({"port": 80}, {"port": 81, "targetPort": "tcp-80"}), "spec.ports", TARGET),
    row(ports({"name": "a--b", "port": 80}, {"name": "c", "port": 81, "targetPort": "a--b"}), "spec.ports", TARGET),
    at("ports[0].appProtocol", "a b", "must be a protocol such as http", port=80),
    at("envs[0].name", "1ST", ENV_NAME, "LOG_LEVEL"),
    at("envs[0].name", "A=B", ENV_NAME),
    at("envs[0].name", "..", ENV_NAME),
    at("envs[0].name", "..a", ENV_NAME),
    row(envs({"name": "A", "value": "1"}, {"name": "A", "value": "2"}), "spec.envs", "A", "must be unique in envs"),
    *(
        at(f"envs[0].valueFrom.{path}", value, *message, given=envs({"name": "A"}), **beside)
        for path, value, beside, *message in (
            ("secretKeyRef.name", "BAD NAME", {"key": "k"}, "must be an object name"),
            ("secretKeyRef.key", "a/b", {"name": "a"}, "must be a key of the object's data"),
            ("configMapKeyRef.name", "-", {"key": "k"}, "must be an object name"),
            ("configMapKeyRef.key", "a b", {"name": "a"}, "must be a key of the object's data"),
            ("fieldRef.fieldPath", "spec.x", {}, "must be a supported field"),
            ("fieldRef.fieldPath", "metadata.annotations['a b']", {}, "with a key such as example.com/team"),
            ("resourceFieldRef.resource", "foo", {}, "must be limits. or requests. followed by cpu"),
        )
    ),
    row(
        envs({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{'a' * 254}/b']"}}}),
        *("spec.envs[0].valueFrom.fieldRef.fieldPath", "with a key such as example.com/team"),
    ),
    row(envs({"name": "A", "value": "1", "valueFrom": FIELD}), "spec.envs[0].valueFrom", "remove one of the two"),
    at("envs[0].valueFrom", {}, SOURCES, name="A"),
    row(envs({"name": "A", "valueFrom": FIELD | SECRET}), "spec.envs[0].valueFrom", SOURCES),
    row(
        {"size": 0, "image": "A b", **ports({"port": 0, "nodePort": 65536}), **envs({"name": "="})},
        *("spec.size", SIZE, "spec.image", IMAGE, "spec.ports[0]", PORT, NODE_PORT, "spec.envs[0].name", ENV_NAME),
    ),
)
"""Violations of our own rules."""

TYPES: Final[Table] = (
    at("image", None, "Required value"),
    row(ports({"port": "80"}), "spec.ports[0].port", "must be of type integer"),
    row(ports({"name": "http"}), "spec.ports[0].port", "Required value"),
    at("ports[0].protocol", "tcp", "TCP", port=80),
    at("ports[0].targetPort", [], port=80),
    row(ports(*({"port": 1 + number} for number in range(65))), "spec.ports", "64"),
    row(
        envs({"name": "A", "valueFrom": {"secretKeyRef": {"name": "a"}}}),
        *("spec.envs[0].valueFrom.secretKeyRef.key", "Required value"),
    ),
    row(
        envs({"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b", "optional": "yes"}}}),
        *("spec.envs[0].valueFrom.secretKeyRef.optional", "boolean"),
    ),
    row({"replicas": 3}, 'unknown field "spec.replicas"'),
    row(ports({"port": 80, "hostPort": 1}), 'unknown field "spec.ports[0].hostPort"'),
)
"""Violations of the schema, with the API server's own messages."""

VALID: dict[str, dict[str, Any]] = {
    **VALID_SHARED,
    "one number with two protocols": ports({"port": 53}, {"port": 53, "protocol": "UDP"}),
    "one node port with two protocols": ports(
        {"port": 53, "nodePort": 30053}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}
    ),
    "node ports outside the default range": ports({"port": 80, "nodePort": 1}, {"port": 81, "nodePort": 65535}),
    "a target of the default protocol": ports(
        {"name": "http", "port": 80, "protocol": "TCP"}, {"port": 81, "targetPort": "http"}
    ),
    "one target for two ports": ports({"port": 80, "targetPort": 8080}, {"port": 81, "targetPort": 8080}),
    "the lowest and the highest target": ports(
        {"name": "a", "port": 80, "targetPort": 1}, {"name": "b", "port": 81, "targetPort": 65535}
    ),
    "a target by name": ports({"name": "http", "port": 80}, {"port": 81, "targetPort": "http"}),
    "the longest target by name": ports({"name": "a" * 15, "port": 80}, {"port": 81, "targetPort": "a" * 15}),
    "names that ports without one would get": ports(
        {"port": 80}, {"port": 81, "name": "tcp-80"}, {"port": 82, "name": "tcp-80-2"}
    ),
    "a target by name, before the named port": ports({"port": 81, "targetPort": "http"}, {"name": "http", "port": 80}),
    "an empty value beside a source": envs(
        {"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    ),
    "names of environment variables": {"envs": [{"name": name} for name in ("A", "_", "a.b-c", ".x", "-x")]},
    "the longest names": ports({"port": 80, "name": "a" * 63}, {"port": 81, "name": "9" * 63}),
    "application protocols": ports(
        {"port": 80, "appProtocol": "http"}, {"port": 81, "appProtocol": "kubernetes.io/h2c"}
    ),
}
"""Valid specs that are close to a rule."""
