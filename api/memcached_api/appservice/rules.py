"""The rules of AppService, each in Python and in CEL."""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from memcached_api.appservice.ports import DEFAULT_PROTOCOL
from memcached_api.validation.common_rules import (
    MAX_PORT,
    MAX_SUBDOMAIN_LENGTH,
    MIN_PORT,
    NAME,
    RESOURCES,
    SUBDOMAIN,
    image_rule,
    is_cel_type,
    matches,
    range_rule,
    size_rule,
    unique_rule,
)
from memcached_api.validation.metadata_rules import inherited_rules
from memcached_api.validation.rules import Rule, Violation, blocking, value_rule
from memcached_api.values import is_integer

_Entry = Mapping[str, Any]

_ENV_NAME: Final = r"^[-._a-zA-Z][-._a-zA-Z0-9]*$"  # valid in every supported Kubernetes version
_SERVICE_PORT_NAME: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"  # DNS-1123 label, as Services require
_CONTAINER_PORT_NAME: Final = (
    "^[a-z0-9]+(-[a-z0-9]+)*$"  # IANA service name, as containers require; also needs a letter
)
_APP_PROTOCOL: Final = rf"^({SUBDOMAIN[1:-1]}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
_CONFIG_KEY: Final = "^[-._a-zA-Z0-9]+$"
_LABEL_DOMAIN: Final = SUBDOMAIN[1:-1]
_ANNOTATION_DOMAIN: Final = _LABEL_DOMAIN.replace("a-z", "a-zA-Z")  # Kubernetes ignores its case
_QUALIFIED_NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
# Keys are qualified names (apimachinery's IsQualifiedName): the API server rejects a Deployment with any other key.
_FIELD_PATH: Final = (
    rf"^(metadata\.(name|namespace|uid)|metadata\.labels\['({_LABEL_DOMAIN}/)?{_QUALIFIED_NAME}'\]"
    rf"|metadata\.annotations\['({_ANNOTATION_DOMAIN}/)?{_QUALIFIED_NAME}'\]"
    r"|spec\.(nodeName|serviceAccountName)|status\.(hostIP|podIP)s?)$"
)
_LONG_DOMAIN: Final = rf"^.*\['[^/]{{{MAX_SUBDOMAIN_LENGTH + 1}}}.*$"
_RESOURCE: Final = r"^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-[a-zA-Z0-9]+)$"
_ENV_SOURCES: Final = ("configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef")

SIZE: Final = size_rule("to stop the service, delete the AppService object instead")

IMAGE: Final = image_rule(
    "must be an image reference such as docker.io/library/nginx:1.28 or host:5000/name@sha256:<64 hexadecimal digits>"
)


def _is_env_name(name: str) -> bool:
    return matches(_ENV_NAME, name) and name != "." and not name.startswith("..")


ENV_NAME: Final = value_rule(
    "spec.envs[*].name",
    _is_env_name,
    f"self.matches('{_ENV_NAME}') && self != '.' && !self.startsWith('..')",
    "must consist of letters, digits, '_', '-' and '.', and must not start with a digit, such as LOG_LEVEL",
)

UNIQUE_ENV_NAMES: Final = unique_rule(
    "spec.envs",
    "name",
    "a.name == b.name",
    "must be unique in envs; remove or rename one of the two",
    lambda env: env.get("name"),
)


def _value_and_source(env: _Entry) -> Iterator[Violation]:
    if env.get("value") and env.get("valueFrom") is not None:
        yield Violation(".valueFrom", env["valueFrom"], _VALUE_AND_SOURCE)


_VALUE_AND_SOURCE: Final = "must not be set together with value; remove one of the two"

ENV_VALUE: Final = Rule(
    "spec.envs[*]",
    _value_and_source,
    "!has(self.valueFrom) || !has(self.value) || self.value == ''",
    _VALUE_AND_SOURCE,
    field_path=".valueFrom",
)

ENV_SOURCE: Final = value_rule(
    "spec.envs[*].valueFrom",
    lambda source: sum(source.get(name) is not None for name in _ENV_SOURCES) == 1,
    f"[{', '.join(f'has(self.{name})' for name in _ENV_SOURCES)}].exists_one(given, given)",
    f"must set exactly one of {', '.join(_ENV_SOURCES)}",
)


def _pattern_rule(path: str, pattern: str, message: str) -> Rule:
    return value_rule(path, lambda text: matches(pattern, text), f'self.matches(r"{pattern}")', message)


_OBJECT_NAME: Final = "must be an object name: lower-case letters, digits, '-' and '.'"
_DATA_KEY: Final = "must be a key of the object's data: letters, digits, '-', '_' and '.'"

ENV_SOURCE_FIELDS: Final = (
    _pattern_rule("spec.envs[*].valueFrom.configMapKeyRef.name", SUBDOMAIN, _OBJECT_NAME),
    _pattern_rule("spec.envs[*].valueFrom.configMapKeyRef.key", _CONFIG_KEY, _DATA_KEY),
    _pattern_rule("spec.envs[*].valueFrom.secretKeyRef.name", SUBDOMAIN, _OBJECT_NAME),
    _pattern_rule("spec.envs[*].valueFrom.secretKeyRef.key", _CONFIG_KEY, _DATA_KEY),
    value_rule(
        "spec.envs[*].valueFrom.fieldRef.fieldPath",
        lambda path: matches(_FIELD_PATH, path) and not matches(_LONG_DOMAIN, path),
        f'self.matches(r"{_FIELD_PATH}") && !self.matches(r"{_LONG_DOMAIN}")',
        "must be a supported field: metadata.name, metadata.namespace, metadata.uid, "
        "metadata.labels['key'], metadata.annotations['key'] with a key such as example.com/team, spec.nodeName, "
        "spec.serviceAccountName, status.hostIP(s) or status.podIP(s)",
    ),
    _pattern_rule(
        "spec.envs[*].valueFrom.resourceFieldRef.resource",
        _RESOURCE,
        "must be limits. or requests. followed by cpu, memory, ephemeral-storage or hugepages-<size>",
    ),
)

PORT: Final = range_rule("spec.ports[*].port", MIN_PORT, MAX_PORT, ": the port that clients of the Service use")

# The range of node ports is a setting of the API server, which only the API server can check.
NODE_PORT: Final = range_rule(
    "spec.ports[*].nodePort", MIN_PORT, MAX_PORT, "; remove the field to let Kubernetes choose one"
)

PORT_NAME: Final = value_rule(
    "spec.ports[*].name",
    lambda name: matches(_SERVICE_PORT_NAME, name),
    f"self.matches('{_SERVICE_PORT_NAME}')",
    "must consist of lower-case letters, digits and '-', and must not start or end with '-', such as http",
)

APP_PROTOCOL: Final = value_rule(
    "spec.ports[*].appProtocol",
    lambda name: matches(_APP_PROTOCOL, name),
    f"self.matches(r'{_APP_PROTOCOL}')",
    "must be a protocol such as http, or one with a domain prefix such as kubernetes.io/h2c",
)


def _protocol(port: _Entry) -> str:
    return port.get("protocol") or DEFAULT_PROTOCOL


def _with_protocol(field: str) -> Callable[[_Entry], Hashable]:
    return lambda port: None if port.get(field) is None else (port[field], _protocol(port))


# Without `?`, so that the API server can bound the cost.
_SAME_PROTOCOL: Final = (
    f"(has(a.protocol) ? a.protocol == (has(b.protocol) ? b.protocol : '{DEFAULT_PROTOCOL}')"
    f" : !has(b.protocol) || b.protocol == '{DEFAULT_PROTOCOL}')"
)

UNIQUE_PORTS: Final = unique_rule(
    "spec.ports",
    "port",
    f"a.port == b.port && {_SAME_PROTOCOL}",
    "must be unique among the ports with the same protocol; use another number for one of the two",
    _with_protocol("port"),
)

UNIQUE_NODE_PORTS: Final = unique_rule(
    "spec.ports",
    "nodePort",
    f"a.nodePort == b.nodePort && {_SAME_PROTOCOL}",
    "must be unique among the ports with the same protocol; use another number for one of the two, or remove it",
    _with_protocol("nodePort"),
)

UNIQUE_PORT_NAMES: Final = unique_rule(
    "spec.ports",
    "name",
    "a.name == b.name",
    "must be unique in ports; rename one of the two",
    lambda port: port.get("name"),
)


TARGET_PORT: Final = value_rule(
    "spec.ports[*].targetPort",
    lambda target: not is_integer(target) or MIN_PORT <= target <= MAX_PORT,
    f"!({is_cel_type('self', 'int')}) || (self >= {MIN_PORT} && self <= {MAX_PORT})",
    f"must be between {MIN_PORT} and {MAX_PORT}: the port that the container listens on",
)

_UNKNOWN_TARGET_PORT: Final = (
    "must be the number of the port that the container listens on, without quotes, or the name of another entry of "
    "ports with the same protocol and a numeric targetPort; a name contains at least one letter and at most 15 "
    "characters"
)


def _is_port_name(name: Any) -> bool:
    return isinstance(name, str) and matches(_CONTAINER_PORT_NAME, name) and re.search("[a-z]", name) is not None


def _unknown_target_ports(ports: Sequence[_Entry]) -> Iterator[Violation]:
    numeric_ports = [
        port for port in ports if not isinstance(port.get("targetPort"), str) and _is_port_name(port.get("name"))
    ]
    targets = {(port["name"], _protocol(port)) for port in numeric_ports}
    for index, port in enumerate(ports):
        target = port.get("targetPort")
        if isinstance(target, str) and (target, _protocol(port)) not in targets:
            yield Violation(f"[{index}].targetPort", target, _UNKNOWN_TARGET_PORT)


NAMED_TARGET_PORTS: Final = Rule(
    "spec.ports",
    _unknown_target_ports,
    "self.all(a, !has(a.targetPort) || type(a.targetPort) == int || self.exists(b, has(b.name)"
    f" && b.name == a.targetPort && {_SAME_PROTOCOL} && (!has(b.targetPort) || type(b.targetPort) == int)"
    # The name is matched at `b.name`, whose length is bounded: CEL has no bound for an int-or-string.
    f" && b.name.matches('{_CONTAINER_PORT_NAME}') && b.name.matches('[a-z]')))",
    _UNKNOWN_TARGET_PORT,
)

RULES: Final = blocking(
    NAME,
    SIZE,
    IMAGE,
    *RESOURCES,
    ENV_NAME,
    UNIQUE_ENV_NAMES,
    ENV_VALUE,
    ENV_SOURCE,
    *ENV_SOURCE_FIELDS,
    PORT,
    NODE_PORT,
    PORT_NAME,
    APP_PROTOCOL,
    UNIQUE_PORTS,
    UNIQUE_NODE_PORTS,
    UNIQUE_PORT_NAMES,
    TARGET_PORT,
    NAMED_TARGET_PORTS,
    *inherited_rules("spec.inheritedMetadata"),
)
