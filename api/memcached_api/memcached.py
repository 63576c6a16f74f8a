"""The kind Memcached of cache.example.com: its spec, status and defaults. Its rules are in memcached_rules."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, field

from .common_rules import MAX_PORT, MAX_SIZE, MIN_SIZE
from .conditions import Condition
from .field_errors import FieldError
from .image import LONGEST as LONGEST_IMAGE
from .kinds import Column, Kind, condition_path
from .kubernetes import LIST_BY_NAME, LIST_BY_TYPE, LocalObjectReference, Quantity, ResourceRequirements
from .memcached_rules import DEFAULT_CACHE_MEMORY, MIN_PORT, RULES

GROUP: Final = "cache.example.com"
VERSION: Final = "v1"  # the stored one
VERSIONS: Final = ("v1", "v1alpha1")  # one schema for both, so nothing is ever converted
KIND: Final = "Memcached"
PLURAL: Final = "memcacheds"
SHORT_NAMES: Final = ("mc",)

DEFAULT_SIZE: Final = 1
DEFAULT_CONTAINER_PORT: Final = 11211  # memcached's own
DEFAULT_IMAGE: Final = "docker.io/library/memcached:1.6.38"  # unless RELATED_IMAGE_MEMCACHED names another


class Cache(msgspec.Struct, frozen=True, rename="camel"):
    """What each memcached keeps in memory."""

    memory: Quantity = DEFAULT_CACHE_MEMORY
    """Memory for cached items, per pod: memcached's `-m`, in whole mebibytes, rounded down. From 2Mi to 1Pi. The
    container's memory request and limit follow from it unless `resources` names them. A change replaces the pods."""


class MemcachedSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What the cluster shall be."""

    size: Annotated[int, Meta(ge=MIN_SIZE, le=MAX_SIZE)] = DEFAULT_SIZE
    """Number of memcached pods. Clients spread their keys over them."""

    container_port: Annotated[int, Meta(ge=MIN_PORT, le=MAX_PORT)] = DEFAULT_CONTAINER_PORT
    """Port every memcached listens on, and the Service too. A change replaces the pods."""

    image: Annotated[str, Meta(min_length=1, max_length=LONGEST_IMAGE)] | None = None
    """Container image of memcached. When absent, admission writes the operator's default of that day here, so that a
    later release of the operator does not restart the cache. A change replaces the pods."""

    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the kubelet pulls the image: `Always`, `IfNotPresent` or `Never`. When absent, Kubernetes' own default:
    `Always` for the tag `latest`, else `IfNotPresent`. A change replaces the pods."""

    image_pull_secrets: Annotated[list[LocalObjectReference], Meta(max_length=16, extra_json_schema=LIST_BY_NAME)] = []
    """Secrets of this namespace with which the image is pulled. A change replaces the pods."""

    resources: ResourceRequirements | None = None
    """Compute resources of each memcached container; what is named here wins, resource by resource. Else the container
    requests `cpu: 100m`, and of memory it requests, and is limited to, the larger of 128Mi and 1.25 times the least
    limit. The least limit is 1.10 times `cache.memory` plus 24Mi. A change replaces the pods."""

    cache: Cache = field(default_factory=Cache)
    """What each memcached keeps in memory."""


class MemcachedStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What the operator last saw."""

    observed_generation: int = 0
    """The `metadata.generation` of the spec this status answers to."""

    replicas: Annotated[int, Meta(extra_json_schema={"format": "int32"})] = 0
    """Number of pods that exist."""

    ready_replicas: Annotated[int, Meta(extra_json_schema={"format": "int32"})] = 0
    """Number of pods that serve."""

    selector: str = ""
    """Label selector of the pods, in text form, for `kubectl scale` and autoscalers."""

    nodes: Annotated[list[str], Meta(extra_json_schema={"x-kubernetes-list-type": "set"})] = []
    """Names of the live pods, sorted."""

    conditions: Annotated[list[Condition], Meta(extra_json_schema=LIST_BY_TYPE)] = []
    """Available, Progressing and Degraded, always all three, in this order."""


MEMCACHED: Final = Kind(
    group=GROUP,
    versions=VERSIONS,
    name=KIND,
    plural=PLURAL,
    short_names=SHORT_NAMES,
    description="A group of memcached servers of one version and size, each a cache of its own, behind one headless "
    "Service through which clients find them all.",
    spec=MemcachedSpec,
    status=MemcachedStatus,
    rules=RULES,
    columns=(
        Column("Size", "integer", ".spec.size", "Pods asked for"),
        Column("Ready", "integer", ".status.readyReplicas", "Pods that serve"),
        Column("Available", "string", condition_path("Available", "status"), "Whether enough pods serve"),
        Column("Degraded", "string", condition_path("Degraded", "status"), "Whether something needs a look"),
        Column("Port", "integer", ".spec.containerPort", "Port of memcached"),
        Column("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column("Memory", "string", ".spec.cache.memory", "Memory for items, per pod", 1),
        Column("Image", "string", ".spec.image", "Image of memcached", 1),
        Column("Reason", "string", condition_path("Degraded", "reason"), "Reason of Degraded", 1),
        Column("Message", "string", condition_path("Degraded", "message"), "Message of Degraded, with the remedy", 1),
    ),
)


def decode_spec(obj: Mapping[str, Any]) -> MemcachedSpec:
    """The spec of a whole Memcached object, defaults filled in, unknown fields ignored.

    Raises InvalidSpec, with every error found, when it cannot be decoded. What decodes may still break a rule
    that no type expresses: `errors` knows.
    """
    return MEMCACHED.decode(obj)


def validate(obj: Any) -> list[FieldError]:
    """Every error of a whole Memcached object; an empty list says it is valid. Never raises, whatever JSON it gets."""
    return MEMCACHED.validate(obj)
