"""The rules of Memcached, each in Python and in CEL side by side."""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from . import image, memory
from .quantity import parse
from .rules import Breach, Rule, value_rule
from .values import child

DEFAULT_CACHE_MEMORY: Final = "64Mi"  # memcached's own default for `-m`

SMALLEST_SIZE: Final = 1
LARGEST_SIZE: Final = 2**31 - 1  # a Deployment's replicas are an int32
LOWEST_PORT: Final = 1024  # memcached runs without root rights, and only root binds ports below
HIGHEST_PORT: Final = 65535
LONGEST_NAME: Final = 52  # characters: leaves 11 of a label's 63 for what a ReplicaSet's hash or a suffix adds

_LABEL: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"  # DNS-1035, which a Service's name must be
_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"  # DNS-1123, as a Secret's
_KNOWN_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")

_SPARE: Final = memory.HASH_TABLE + memory.PER_CONNECTION * memory.CONNECTIONS
_PERCENT: Final = 100 + memory.OVERHEAD_PERCENT


def _is_label(name: Any) -> bool:
    return isinstance(name, str) and len(name) <= LONGEST_NAME and re.fullmatch(_LABEL[1:-1], name) is not None


_NAME_MESSAGE: Final = (
    f"must be a DNS-1035 label of at most {LONGEST_NAME} characters (lower-case letters, digits and '-', a letter "
    "first), because its Service is named the same; create the object under such a name"
)

NAME: Final = Rule(
    "metadata.name",
    lambda name: () if _is_label(name) else (Breach("", name, _NAME_MESSAGE),),
    # A name never changes: an object that came in under an older rule must stay editable.
    f"oldSelf.hasValue() || (size(self.metadata.name) <= {LONGEST_NAME} && self.metadata.name.matches('{_LABEL}'))",
    _NAME_MESSAGE,
    blames=".metadata.name",
)

SIZE: Final = value_rule(
    "spec.size",
    lambda size: size >= SMALLEST_SIZE,
    f"self >= {SMALLEST_SIZE}",
    f"must be at least {SMALLEST_SIZE}; to stop the cache delete the Memcached object instead",
)

CONTAINER_PORT: Final = value_rule(
    "spec.containerPort",
    lambda port: LOWEST_PORT <= port <= HIGHEST_PORT,
    f"self >= {LOWEST_PORT} && self <= {HIGHEST_PORT}",
    f"must be between {LOWEST_PORT} and {HIGHEST_PORT}; memcached runs without root rights and cannot bind a lower "
    "port: use 11211, its usual one",
)

IMAGE: Final = value_rule(
    "spec.image",
    image.is_reference,
    f"self.matches(r'{image.PATTERN}') && !self.matches('{image.IDENTIFIER}')",
    "must be an image reference such as docker.io/library/memcached:1.6.38 or host:5000/name@sha256:<64 hexadecimal "
    "digits>; leave the field out when creating to get the operator's default",
)

IMAGE_PULL_SECRET: Final = value_rule(
    "spec.imagePullSecrets[*].name",
    lambda name: len(name) <= 253 and re.fullmatch(_SUBDOMAIN[1:-1], name) is not None,
    f"self.matches(r'{_SUBDOMAIN}')",
    "must be the name of a Secret of this namespace: lower-case letters, digits, '-' and '.', at most 253 characters",
)

CACHE_MEMORY: Final = value_rule(
    "spec.cache.memory",
    lambda amount: memory.SMALLEST_CACHE <= parse(amount) <= memory.LARGEST_CACHE,
    "isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('2Mi')) >= 0"
    " && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",
    f"must be a quantity from 2Mi, below which memcached does not start, to 1Pi; its default is {DEFAULT_CACHE_MEMORY}",
)


def _resource_rules(part: str) -> tuple[Rule, Rule]:
    names = "[" + ", ".join(f"'{name}'" for name in _KNOWN_RESOURCES) + "]"
    message = (
        f"must name one of {', '.join(_KNOWN_RESOURCES)}, hugepages-<size>, or an extended resource such as "
        "example.com/device; correct the resource's name"
    )

    known = f"name in {names} || name.startsWith('hugepages-') || name.contains('/')"

    def misnamed(resources: Mapping[str, Any]) -> Iterator[Breach]:
        return (Breach(f"[{name}]", name, message) for name in resources if not _is_resource(name))

    return (
        Rule(
            f"spec.resources.{part}",
            misnamed,
            f"self.all(name, {known})",
            message,
            message_cel=_quoted("%s " + message) + f".format([self.filter(name, !({known}))])",
        ),
        value_rule(
            f"spec.resources.{part}[*]",
            lambda amount: not str(amount).startswith("-"),
            "!string(self).startsWith('-')",
            "must be at least 0, such as 500m or 128Mi",
        ),
    )


def _quoted(text: str) -> str:
    """A text literal in CEL."""
    return "'" + text.replace("'", r"\'") + "'"


def _is_resource(name: str) -> bool:
    return name in _KNOWN_RESOURCES or name.startswith("hugepages-") or "/" in name


def _requests_above_limits(resources: Mapping[str, Any]) -> Iterator[Breach]:
    limits: Mapping[str, Any] = child(resources, "limits") or {}
    requests: Mapping[str, Any] = child(resources, "requests") or {}
    for name, request in requests.items():
        if name in limits and parse(request) > parse(limits[name]):
            message = f"must be at most the {name} limit, {limits[name]}; lower this request or raise the limit"
            yield Breach(f".requests[{name}]", request, message)


REQUESTS: Final = Rule(
    "spec.resources",
    _requests_above_limits,
    "!has(self.requests) || !has(self.limits) || self.requests.all(name, !(name in self.limits)"
    " || quantity(string(self.requests[name])).compareTo(quantity(string(self.limits[name]))) <= 0)",
    "must be at most the limit of the same resource; lower the request or raise the limit",
    message_cel="'%s must be at most the limit of the same resource, of %s; lower the request or raise the limit'"
    ".format([self.requests, self.limits])",
    blames=".requests",
)


def _memory_limit_below_floor(spec: Mapping[str, Any]) -> Iterable[Breach]:
    limit = child(spec, "resources", "limits", "memory")
    cache = child(spec, "cache", "memory")
    cache = DEFAULT_CACHE_MEMORY if cache is None else cache
    if limit is None or parse(limit) * 100 >= _hundred_floors(parse(cache)):
        return ()
    least = memory.mebibytes_text(_hundred_floors(parse(cache)) / 100)
    return (Breach(".resources.limits[memory]", limit, _floor_message(least, str(cache))),)


def _hundred_floors(cache: Decimal) -> Decimal:
    """100 times memory.floor, so that Python and CEL (in floats) compare the very same whole numbers."""
    return cache * _PERCENT + _SPARE * 100


def _floor_message(least: str, cache: str) -> str:
    return (
        f"must be at least {least} to hold spec.cache.memory of {cache} ({_PERCENT / 100:.2f} times it, plus "
        f"{memory.mebibytes_text(_SPARE)}); raise this limit or lower spec.cache.memory"
    )


_CACHE_CEL: Final = "quantity(string(self.cache.memory))"
_LEAST_CEL: Final = (  # the floor in mebibytes, rounded up
    f"({_CACHE_CEL}.asInteger() * {_PERCENT} + {_SPARE * 100 + memory.MEBIBYTE * 100 - 1}) / {memory.MEBIBYTE * 100}"
)

MEMORY_LIMIT: Final = Rule(
    "spec",
    _memory_limit_below_floor,
    "!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits)"
    " || quantity(string(self.resources.limits['memory'])).asApproximateFloat() * 100.0"
    f" >= {_CACHE_CEL}.asApproximateFloat() * {_PERCENT}.0 + {_SPARE * 100}.0",
    "must be large enough for spec.cache.memory; raise this limit or lower spec.cache.memory",
    # Of CEL's ways to a text with a number, only format() has a cost the API server can bound.
    message_cel=f"'limit %s {_floor_message('%dMi', '%s')}'"
    f".format([self.resources.limits['memory'], {_LEAST_CEL}, self.cache.memory])",
    blames=".resources.limits.memory",
    reads=("resources.limits[memory]", "cache.memory"),
)

RULES: Final = (
    NAME,
    SIZE,
    CONTAINER_PORT,
    IMAGE,
    IMAGE_PULL_SECRET,
    CACHE_MEMORY,
    *_resource_rules("limits"),
    *_resource_rules("requests"),
    REQUESTS,
    MEMORY_LIMIT,
)
