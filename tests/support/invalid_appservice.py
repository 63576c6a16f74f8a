"""AppService objects that must be rejected by admission and by the CRD alone, with the expected parts of each error."""

from typing import Any

from support.invalid_memcached import RESOURCE, Table, invalid_objects
from support.invalid_metadata import INVALID as INVALID_METADATA
from support.invalid_metadata import VALID as VALID_METADATA

SIZE = "must be at least 1; to stop the service, delete the AppService object instead"
IMAGE = "must be an image reference such as docker.io/library/nginx:1.28"
PORT = "must be between 1 and 65535"
NODE_PORT = "must be between 1 and 65535; remove the field to let Kubernetes choose one"
PORT_NAME = "must consist of lower-case letters, digits and '-'"
TWICE = "must be unique among the ports with the same protocol"
TARGET = "or the name of another entry of ports with the same protocol and a numeric targetPort"
NEGATIVE = "must be at least 0"
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


_RULES: Table = {
    **INVALID_METADATA,
    "size 0": ({"size": 0}, ("spec.size", "0", SIZE)),
    "image with spaces": ({"image": "no such image"}, ("spec.image", "no such image", IMAGE)),
    "empty image": ({"image": ""}, ("spec.image", IMAGE)),
    "port 0": (ports({"port": 0}), ("spec.ports[0].port", "0", PORT)),
    "port 65536": (ports({"port": 80}, {"port": 65536}), ("spec.ports[1].port", "65536", PORT)),
    "duplicate port": (
        ports({"name": "a", "port": 80}, {"name": "b", "port": 80}),
        ("spec.ports", "80", TWICE, "another number"),
    ),
    "node port 0": (ports({"port": 80, "nodePort": 0}), ("spec.ports[0].nodePort", "0", NODE_PORT)),
    "node port 65536": (ports({"port": 80, "nodePort": 65536}), ("spec.ports[0].nodePort", "65536", NODE_PORT)),
    "duplicate port of the default protocol": (
        ports({"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 80}),
        ("spec.ports", "80", TWICE),
    ),
    "duplicate node port": (
        ports({"port": 80, "nodePort": 32001}, {"port": 81, "nodePort": 32001}),
        ("spec.ports", "32001", TWICE, "or remove it"),
    ),
    "upper-case port name": (
        ports({"name": "HTTP", "port": 80}),
        ("spec.ports[0].name", "HTTP", PORT_NAME, "such as http"),
    ),
    "duplicate port name": (
        ports({"name": "web", "port": 80}, {"name": "web", "port": 81}),
        ("spec.ports", "web", "must be unique in ports", "rename one"),
    ),
    "target port 0": (ports({"port": 80, "targetPort": 0}), ("spec.ports[0].targetPort", "0", PORT)),
    "target port 65536": (ports({"port": 80, "targetPort": 65536}), ("spec.ports[0].targetPort", "65536", PORT)),
    "target port in quotes": (ports({"port": 80, "targetPort": "8080"}), ("spec.ports", "without quotes", TARGET)),
    "unknown target port": (ports({"name": "http", "port": 80, "targetPort": "web"}), ("spec.ports", TARGET)),
    "target port that is its own name": (
        ports({"name": "http", "port": 80, "targetPort": "http"}),
        ("spec.ports", TARGET),
    ),
    "target port of another protocol": (
        ports({"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53, "targetPort": "dns"}),
        ("spec.ports", TARGET),
    ),
    "target port that is a default name": (
        ports({"port": 80}, {"port": 81, "targetPort": "tcp-80"}),
        ("spec.ports", TARGET),
    ),
    "target port that is invalid for a container": (
        ports({"name": "a--b", "port": 80}, {"name": "c", "port": 81, "targetPort": "a--b"}),
        ("spec.ports", TARGET),
    ),
    "application protocol with a space": (
        ports({"port": 80, "appProtocol": "a b"}),
        ("spec.ports[0].appProtocol", "a b", "must be a protocol such as http"),
    ),
    "variable with a leading digit": (envs({"name": "1ST"}), ("spec.envs[0].name", "1ST", ENV_NAME, "LOG_LEVEL")),
    "variable with an equals sign": (envs({"name": "A=B"}), ("spec.envs[0].name", "A=B", ENV_NAME)),
    "variable of dots": (envs({"name": ".."}), ("spec.envs[0].name", "..", ENV_NAME)),
    "duplicate variable": (
        envs({"name": "A", "value": "1"}, {"name": "A", "value": "2"}),
        ("spec.envs", "A", "must be unique in envs"),
    ),
    "variable with an invalid Secret name": (
        envs({"name": "A", "valueFrom": {"secretKeyRef": {"name": "BAD NAME", "key": "k"}}}),
        ("spec.envs[0].valueFrom.secretKeyRef.name", "BAD NAME", "must be an object name"),
    ),
    "variable with an invalid Secret key": (
        envs({"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "a/b"}}}),
        ("spec.envs[0].valueFrom.secretKeyRef.key", "a/b", "must be a key of the object's data"),
    ),
    "variable with an invalid ConfigMap name": (
        envs({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "-", "key": "k"}}}),
        ("spec.envs[0].valueFrom.configMapKeyRef.name", "-", "must be an object name"),
    ),
    "variable with an invalid ConfigMap key": (
        envs({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "a b"}}}),
        ("spec.envs[0].valueFrom.configMapKeyRef.key", "a b", "must be a key of the object's data"),
    ),
    "variable with an unsupported field": (
        envs({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}),
        ("spec.envs[0].valueFrom.fieldRef.fieldPath", "spec.x", "must be a supported field"),
    ),
    "variable with a malformed annotation": (
        envs({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a b']"}}}),
        ("spec.envs[0].valueFrom.fieldRef.fieldPath", "a b", "with a key such as example.com/team"),
    ),
    "variable with a label whose domain is too long": (
        envs({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{'a' * 254}/b']"}}}),
        ("spec.envs[0].valueFrom.fieldRef.fieldPath", "with a key such as example.com/team"),
    ),
    "variable with an unknown resource": (
        envs({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "foo"}}}),
        ("spec.envs[0].valueFrom.resourceFieldRef.resource", "foo", "must be limits. or requests. followed by cpu"),
    ),
    "variable with two values": (
        envs({"name": "A", "value": "1", "valueFrom": FIELD}),
        ("spec.envs[0].valueFrom", "remove one of the two"),
    ),
    "variable without a source": (envs({"name": "A", "valueFrom": {}}), ("spec.envs[0].valueFrom", SOURCES)),
    "variable with two sources": (
        envs({"name": "A", "valueFrom": FIELD | SECRET}),
        ("spec.envs[0].valueFrom", SOURCES),
    ),
    "unknown resource": ({"resources": {"limits": {"memroy": "1Gi"}}}, ("spec.resources.limits", "memroy", RESOURCE)),
    "unknown requested resource": (
        {"resources": {"requests": {"memroy": "1Gi"}}},
        ("spec.resources.requests", "memroy", RESOURCE),
    ),
    "negative limit": ({"resources": {"limits": {"cpu": "-1"}}}, ("spec.resources.limits", "cpu", "-1", NEGATIVE)),
    "negative request": (
        {"resources": {"requests": {"cpu": "-1"}}},
        ("spec.resources.requests", "cpu", "-1", NEGATIVE),
    ),
    "request above its limit": (
        {"resources": {"limits": {"cpu": "250m"}, "requests": {"cpu": "750m"}}},
        ("spec.resources.requests", "750m", "250m", "request or raise the limit"),
    ),
    "several violations": (
        {"size": 0, "image": "A b", **ports({"port": 0, "nodePort": 65536}), **envs({"name": "="})},
        ("spec.size", SIZE, "spec.image", IMAGE, "spec.ports[0]", PORT, NODE_PORT, "spec.envs[0].name", ENV_NAME),
    ),
}
"""Violations of our own rules."""

_TYPES: Table = {
    "no image": ({"image": None}, ("spec.image", "Required value")),
    "string as port": (ports({"port": "80"}), ("spec.ports[0].port", "must be of type integer")),
    "missing port": (ports({"name": "http"}), ("spec.ports[0].port", "Required value")),
    "unknown protocol": (ports({"port": 80, "protocol": "tcp"}), ("spec.ports[0].protocol", "tcp", "TCP")),
    "list as target port": (ports({"port": 80, "targetPort": []}), ("spec.ports[0].targetPort",)),
    "too many ports": (ports(*({"port": 1 + number} for number in range(65))), ("spec.ports", "64")),
    "secret without a key": (
        envs({"name": "A", "valueFrom": {"secretKeyRef": {"name": "a"}}}),
        ("spec.envs[0].valueFrom.secretKeyRef.key", "Required value"),
    ),
    "string as optional": (
        envs({"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b", "optional": "yes"}}}),
        ("spec.envs[0].valueFrom.secretKeyRef.optional", "boolean"),
    ),
    "unknown field": ({"replicas": 3}, ('unknown field "spec.replicas"',)),
    "unknown field of a port": (ports({"port": 80, "hostPort": 1}), ('unknown field "spec.ports[0].hostPort"',)),
}
"""Violations of the schema, with the API server's own messages."""

RULES = invalid_objects(_RULES)
TYPES = invalid_objects(_TYPES)

VALID: dict[str, dict[str, Any]] = {
    **VALID_METADATA,
    "one number with two protocols": {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]},
    "one node port with two protocols": {
        "ports": [{"port": 53, "nodePort": 30053}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}]
    },
    "node ports outside the default range": {"ports": [{"port": 80, "nodePort": 1}, {"port": 81, "nodePort": 65535}]},
    "a target of the default protocol": {
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}, {"port": 81, "targetPort": "http"}]
    },
    "one target for two ports": {"ports": [{"port": 80, "targetPort": 8080}, {"port": 81, "targetPort": 8080}]},
    "the lowest and the highest target": {
        "ports": [{"name": "a", "port": 80, "targetPort": 1}, {"name": "b", "port": 81, "targetPort": 65535}]
    },
    "a target by name": {"ports": [{"name": "http", "port": 80}, {"port": 81, "targetPort": "http"}]},
    "a target by name, before the named port": {
        "ports": [{"port": 81, "targetPort": "http"}, {"name": "http", "port": 80}]
    },
    "an empty value beside a source": {
        "envs": [{"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    },
    "names of environment variables": {"envs": [{"name": name} for name in ("A", "_", "a.b-c", ".x", "-x")]},
    "the longest names": {"ports": [{"port": 80, "name": "a" * 63}, {"port": 81, "name": "9" * 63}]},
    "application protocols": {
        "ports": [{"port": 80, "appProtocol": "http"}, {"port": 81, "appProtocol": "kubernetes.io/h2c"}]
    },
}
"""Valid specs that are close to a rule."""
