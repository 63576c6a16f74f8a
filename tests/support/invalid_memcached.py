"""Memcached objects that must be rejected, with the expected parts of each error message."""

from typing import Any, NamedTuple

from cluster.versions import OLDEST_KUBERNETES

Spec = dict[str, Any]


class InvalidObject(NamedTuple):
    """A spec that violates rules, and what the error must contain: field, value and remedy of each violation."""

    spec: Spec
    expected: tuple[str, ...]


TYPES_FOR_VALUES = ('Invalid value: "string":', 'Invalid value: "":')
"""How the API server before Kubernetes 1.34 reports a string or quantity that violates a CEL rule."""


def missing_parts(invalid: InvalidObject, message: str, version: str) -> list[str]:
    """The expected parts missing from an error message; the oldest version may report the type instead of the value."""
    missing = [part for part in invalid.expected if part not in message]
    typed = version == OLDEST_KUBERNETES and any(text in message for text in TYPES_FOR_VALUES)
    return [part for part in missing if not (typed and part in invalid.expected[1:-1])]


SIZE = "must be at least 1; to stop the cache, delete the Memcached object instead"
PORT = "must be between 1024 and 65535; memcached does not run as root"
IMAGE = "must be an image reference such as docker.io/library/memcached:1.6.38"
MEMORY = "must be a quantity from 2Mi (memcached does not start with less) to 1Pi; the default is 64Mi"
LIMIT = "must be at least 95Mi to hold spec.cache.memory of 64Mi"
RAISE = "raise this limit or lower spec.cache.memory"
RESOURCE = "must name one of cpu, memory, ephemeral-storage"
REQUEST = "lower the request or raise the limit"

RULES = {
    "size 0": InvalidObject({"size": 0}, ("spec.size", "0", SIZE)),
    "size -1": InvalidObject({"size": -1}, ("spec.size", "-1", SIZE)),
    "size null and port 80": InvalidObject({"size": None, "containerPort": 80}, ("spec.containerPort", "80", PORT)),
    "port 80": InvalidObject({"containerPort": 80}, ("spec.containerPort", "80", PORT, "use 11211")),
    "port 65536": InvalidObject({"containerPort": 65536}, ("spec.containerPort", "65536", PORT)),
    "memory limit below the minimum": InvalidObject(
        {"resources": {"limits": {"memory": "32Mi"}}}, ("spec.resources.limits", "memory", "32Mi", LIMIT, RAISE)
    ),
    "memory limit in bytes": InvalidObject(
        {"resources": {"limits": {"memory": 32000000}}}, ("spec.resources.limits", "memory", "32000000", LIMIT, RAISE)
    ),
    "image with spaces": InvalidObject(
        {"image": "no such image"}, ("spec.image", "no such image", IMAGE, "omit the field on create")
    ),
    "image with two tags": InvalidObject({"image": "a:b:c"}, ("spec.image", "a:b:c", IMAGE)),
    "cache memory too small": InvalidObject({"cache": {"memory": "1Mi"}}, ("spec.cache.memory", "1Mi", MEMORY)),
    "cache memory that is not a quantity": InvalidObject(
        {"cache": {"memory": "lots"}}, ("spec.cache.memory", "lots", MEMORY)
    ),
    "unknown resource": InvalidObject(
        {"resources": {"limits": {"memroy": "1Gi"}}}, ("spec.resources.limits", "memroy", RESOURCE)
    ),
    "request above its limit": InvalidObject(
        {"resources": {"limits": {"cpu": "250m"}, "requests": {"cpu": "750m"}}},
        ("spec.resources.requests", "cpu", "750m", "250m", REQUEST),
    ),
    "negative amount": InvalidObject(
        {"resources": {"requests": {"cpu": "-1"}}}, ("spec.resources.requests", "cpu", "-1", "must be at least 0")
    ),
    "invalid secret name": InvalidObject(
        {"imagePullSecrets": [{"name": "Not_A_Name"}]},
        ("spec.imagePullSecrets[0].name", "Not_A_Name", "must be the name of a Secret in this namespace"),
    ),
    "several violations": InvalidObject(
        {"size": 0, "containerPort": 80, "image": "no such image", "cache": {"memory": "1Mi"}},
        ("spec.size", SIZE, "spec.containerPort", PORT, "spec.image", IMAGE, "spec.cache.memory", MEMORY),
    ),
}
"""Violations of our own rules."""

TYPES = {
    "size three": InvalidObject({"size": "three"}, ("spec.size", "must be of type integer")),
    "size 1.5": InvalidObject({"size": 1.5}, ("spec.size", "must be of type integer")),
    "number as image": InvalidObject({"image": 1}, ("spec.image", "must be of type string")),
    "list as resources": InvalidObject({"resources": []}, ("spec.resources", "must be of type object")),
    "unknown pull policy": InvalidObject(
        {"imagePullPolicy": "Sometimes"}, ("spec.imagePullPolicy", "Sometimes", "Always")
    ),
    "unknown field": InvalidObject({"replicas": 3}, ('unknown field "spec.replicas"',)),
    "unknown nested field": InvalidObject({"cache": {"size": "1Gi"}}, ('unknown field "spec.cache.size"',)),
}
"""Violations of the schema, with the API server's own messages."""

NAME = "must be a DNS-1035 label of at most 52 characters"
NAMES = {"too long": "a" * 53, "leading digit": "1cache", "with a dot": "my.cache"}
"""Names that are invalid for a Service, or too long for the names of pods."""
