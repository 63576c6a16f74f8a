"""The rules of Memcached, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from memcached_api.memcached import memory
from memcached_api.quantity import parse
from memcached_api.validation.common_rules import (
    MAX_PORT,
    MAX_SUBDOMAIN_LENGTH,
    NAME,
    RESOURCES,
    SUBDOMAIN,
    image_rule,
    matches,
    port_rule,
    size_rule,
    unique_rule,
)
from memcached_api.validation.rules import Rule, Violation, value_rule
from memcached_api.values import nested_field

DEFAULT_CACHE_MEMORY: Final = "64Mi"  # memcached's own default for `-m`
MIN_PORT: Final = 1024  # memcached does not run as root, and only root can bind lower ports

_FIXED_OVERHEAD: Final = memory.HASH_TABLE + memory.BYTES_PER_CONNECTION * memory.MAX_CONNECTIONS
_MEMORY_PERCENT: Final = 100 + memory.OVERHEAD_PERCENT

SIZE: Final = size_rule("to stop the cache, delete the Memcached object instead")

CONTAINER_PORT: Final = port_rule(
    "spec.containerPort",
    f"between {MIN_PORT} and {MAX_PORT}; memcached does not run as root and cannot bind a lower "
    "port; use 11211, its default",
    MIN_PORT,
)

IMAGE: Final = image_rule(
    "must be an image reference such as docker.io/library/memcached:1.6.38 or host:5000/name@sha256:<64 hexadecimal "
    "digits>; omit the field on create to use the operator's default",
)

IMAGE_PULL_SECRET: Final = value_rule(
    "spec.imagePullSecrets[*].name",
    lambda name: len(name) <= MAX_SUBDOMAIN_LENGTH and matches(SUBDOMAIN, name),
    f"self.matches(r'{SUBDOMAIN}')",
    "must be the name of a Secret in this namespace: lower-case letters, digits, '-' and '.', at most "
    f"{MAX_SUBDOMAIN_LENGTH} characters",
)

UNIQUE_IMAGE_PULL_SECRETS: Final = unique_rule(
    "spec.imagePullSecrets",
    "name",
    "a.name == b.name",
    "must be unique in imagePullSecrets; remove one of the two",
    lambda secret: secret.get("name"),
)

CACHE_MEMORY: Final = value_rule(
    "spec.cache.memory",
    lambda amount: memory.MIN_CACHE <= parse(amount) <= memory.MAX_CACHE,
    "isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('2Mi')) >= 0"
    " && quantity(string(self)).compareTo(quantity('1Pi')) <= 0",
    f"must be a quantity from 2Mi (memcached does not start with less) to 1Pi; the default is {DEFAULT_CACHE_MEMORY}",
)


def _memory_limit_too_low(spec: Mapping[str, Any]) -> Iterable[Violation]:
    limit = nested_field(spec, "resources", "limits", "memory")
    cache = nested_field(spec, "cache", "memory")
    cache = DEFAULT_CACHE_MEMORY if cache is None else cache
    if limit is None or parse(limit) * 100 >= _hundred_minimums(parse(cache)):
        return ()
    minimum = memory.mebibytes_text(_hundred_minimums(parse(cache)) / 100)
    return (Violation(".resources.limits[memory]", limit, _minimum_message(minimum, str(cache))),)


def _hundred_minimums(cache: Decimal) -> Decimal:
    """100 times memory.minimum_limit, so that Python and CEL (in floats) compare the same integers."""
    return cache * _MEMORY_PERCENT + _FIXED_OVERHEAD * 100


def _minimum_message(minimum: str, cache: str) -> str:
    return (
        f"must be at least {minimum} to hold spec.cache.memory of {cache} ({_MEMORY_PERCENT / 100:.2f} times it, plus "
        f"{memory.mebibytes_text(_FIXED_OVERHEAD)}); raise this limit or lower spec.cache.memory"
    )


_CACHE_CEL: Final = "quantity(string(self.cache.memory))"
_MINIMUM_CEL: Final = (  # the minimum limit in mebibytes, rounded up
    f"({_CACHE_CEL}.asInteger() * {_MEMORY_PERCENT} + {_FIXED_OVERHEAD * 100 + memory.MEBIBYTE * 100 - 1})"
    f" / {memory.MEBIBYTE * 100}"
)

MEMORY_LIMIT: Final = Rule(
    "spec",
    _memory_limit_too_low,
    "!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits)"
    " || quantity(string(self.resources.limits['memory'])).asApproximateFloat() * 100.0"
    f" >= {_CACHE_CEL}.asApproximateFloat() * {_MEMORY_PERCENT}.0 + {_FIXED_OVERHEAD * 100}.0",
    "must be large enough for spec.cache.memory; raise this limit or lower spec.cache.memory",
    # Of the ways to format a number in CEL, only format() has a cost that the API server can bound.
    message_expression=f"'limit %s {_minimum_message('%dMi', '%s')}'"
    f".format([self.resources.limits['memory'], {_MINIMUM_CEL}, self.cache.memory])",
    field_path=".resources.limits.memory",
    inputs=("resources.limits[memory]", "cache.memory"),
)

RULES: Final = (
    NAME,
    SIZE,
    CONTAINER_PORT,
    IMAGE,
    IMAGE_PULL_SECRET,
    UNIQUE_IMAGE_PULL_SECRETS,
    CACHE_MEMORY,
    *RESOURCES,
    MEMORY_LIMIT,
)
