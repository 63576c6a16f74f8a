"""The kind AppService of app.example.com: its spec, status and defaults. The rules are in rules.py."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from memcached_api.appservice.ports import DEFAULT_PROTOCOL, generated_name, listening_ports
from memcached_api.appservice.rules import RULES
from memcached_api.conditions import Condition
from memcached_api.effects import KEEPS, REPLACES
from memcached_api.image import MAX_LENGTH as MAX_IMAGE_LENGTH
from memcached_api.kind import PROBLEM_COLUMNS, STATE_COLUMNS, Checked, Column, Kind
from memcached_api.kubernetes import LIST_BY_NAME, LIST_BY_TYPE, EnvVar, Resources, ServicePort, canonical_env
from memcached_api.shared.metadata import InheritedMetadata
from memcached_api.validation.common_rules import MAX_SIZE, MIN_SIZE
from memcached_api.values import is_array, is_integer, is_object, nested_field

GROUP: Final = "app.example.com"
VERSION: Final = "v1"
KIND: Final = "AppService"
PLURAL: Final = "appservices"
SHORT_NAMES: Final = ("appsvc",)  # `apps` is an API group, and `svc` and `sa` are short names

DEFAULT_SIZE: Final = 1
MAX_PORTS: Final = 64

_COUNT: Final = Meta(extra_json_schema={"format": "int32"})


class AppServiceSpec(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The desired state of the service."""

    size: Annotated[int, Meta(ge=MIN_SIZE, le=MAX_SIZE), KEEPS] = DEFAULT_SIZE
    """Number of pods."""

    image: Annotated[str, Meta(min_length=1, max_length=MAX_IMAGE_LENGTH), REPLACES]
    """Container image to run, with the command and the user that the image sets. The pull policy is IfNotPresent."""

    resources: Resources | None = None
    """Compute resources of each container. If absent, the containers have no requests and no limits."""

    envs: Annotated[
        list[EnvVar],
        Meta(max_length=128, extra_json_schema=LIST_BY_NAME),
        REPLACES.by(lambda envs: list(map(canonical_env, envs))),
    ] = []
    """Environment variables of the container."""

    ports: Annotated[
        list[ServicePort], Meta(max_length=MAX_PORTS), REPLACES.by(listening_ports)._replace(described=True)
    ] = []
    """Ports of the Service, each open on every node. The target ports become the ports of the container, so changing a
    target port replaces the pods. Without ports, there is no Service. An update replaces the whole list."""

    inherited_metadata: InheritedMetadata | None = None
    """Labels and annotations of the Deployment and the Service. They are not added to the pods or to selectors, so a
    change does not replace the pods."""


class NodePort(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """One node port of the Service."""

    name: str | None = None
    """Name of the Service's port, if it is named."""

    protocol: Literal["TCP", "UDP", "SCTP"]
    """`TCP`, `UDP` or `SCTP`."""

    port: Annotated[int, _COUNT]
    """Port of the Service."""

    node_port: Annotated[int, _COUNT]
    """Port on every node."""


class AppServiceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The last observed state. The counts are copied from the Deployment."""

    observed_generation: int = 0
    """The `metadata.generation` of the spec that this status refers to."""

    replicas: Annotated[int, _COUNT] = 0
    """Number of pods that exist, without those of a Deployment that are being deleted."""

    updated_replicas: Annotated[int, _COUNT] = 0
    """Number of pods that run the current pod template."""

    ready_replicas: Annotated[int, _COUNT] = 0
    """Number of pods that are ready."""

    available_replicas: Annotated[int, _COUNT] = 0
    """Number of pods that are available."""

    unavailable_replicas: Annotated[int, _COUNT] = 0
    """Number of pods that are missing or not available."""

    selector: str = ""
    """Label selector of the pods as text, for `kubectl scale` and autoscalers."""

    nodes: Annotated[list[str], Meta(extra_json_schema={"x-kubernetes-list-type": "set"})] = []
    """Sorted names of the running pods."""

    node_ports: Annotated[list[NodePort], Meta(extra_json_schema={"x-kubernetes-list-type": "atomic"})] = []
    """Node ports in use, both from the spec and allocated by Kubernetes."""

    conditions: Annotated[list[Condition], Meta(extra_json_schema=LIST_BY_TYPE)] = []
    """The conditions Available, Progressing, Degraded and Ready, in this order, then Stalled while it is true."""


APPSERVICE: Final = Kind(
    group=GROUP,
    versions=(VERSION,),
    name=KIND,
    plural=PLURAL,
    short_names=SHORT_NAMES,
    description="Runs a container image as a number of identical pods, with a Service of type NodePort. Anyone who "
    "can create an AppService can run any image in the namespace, and read its Secrets and ConfigMaps through "
    "`envs`.",
    spec=AppServiceSpec,
    status=AppServiceStatus,
    rules=RULES,
    columns=(
        *STATE_COLUMNS,
        Column("Node Port", "integer", ".status.nodePorts[0].nodePort", "The first node port"),
        Column("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column("Image", "string", ".spec.image", "Container image", 1),
        *PROBLEM_COLUMNS,
    ),
)


def with_defaults(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with every missing default. A null counts as missing; values of a wrong type are not changed.

    A list of more than MAX_PORTS ports is not changed either. A port gets its protocol, its targetPort and, if there
    are several ports, a name, which Kubernetes then requires.
    """
    size = DEFAULT_SIZE if spec.get("size") is None else spec["size"]
    ports = spec.get("ports")
    defaulted = {**spec, "size": size}
    if not is_array(ports) or len(ports) > MAX_PORTS:
        return defaulted  # the time to generate names is quadratic in the number of ports
    return {**defaulted, "ports": _with_names([_port(port) for port in ports])}


def _port(port: Any) -> Any:
    if not is_object(port):
        return port
    fields = {field: value for field, value in port.items() if value is not None}
    number, protocol = fields.get("port"), fields.get("protocol", DEFAULT_PROTOCOL)
    target = {"targetPort": int(number)} if is_integer(number) else {}
    return {"protocol": protocol, **target, **fields}


def _with_names(ports: list[Any]) -> list[Any]:
    if len(ports) < 2:
        return ports
    used_names = {port["name"] for port in ports if is_object(port) and isinstance(port.get("name"), str)}
    return [_named(port, used_names) if is_object(port) else port for port in ports]


def _named(port: Mapping[str, Any], used_names: Collection[str]) -> Mapping[str, Any]:
    number, protocol = port.get("port"), port["protocol"]
    if "name" in port or not is_integer(number) or not isinstance(protocol, str):
        return port
    return {"name": generated_name(protocol, int(number), used_names), **port}


def decode_spec(obj: Mapping[str, Any]) -> AppServiceSpec:
    """The spec of an AppService object, with defaults and without unknown fields.

    Raises SpecDecodeError with all structural errors if it cannot be decoded. A decoded spec can still violate a
    rule: see `Kind.validate`.
    """
    spec = nested_field(obj, "spec")
    return APPSERVICE.decode({**obj, "spec": with_defaults(spec)} if is_object(spec) else obj)


def check(obj: Any) -> Checked[AppServiceSpec]:
    """The spec from which the children of a stored AppService are built, or None, and all errors. Never raises."""
    spec = nested_field(obj, "spec") if is_object(obj) else None
    return APPSERVICE.check({**obj, "spec": with_defaults(spec)} if is_object(spec) else obj)
