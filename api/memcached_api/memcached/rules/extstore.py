"""The rules about `spec.cache.extstore`, each in Python and in CEL."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from math import ceil
from typing import Any, Final

from memcached_api.memcached import extstore, memory
from memcached_api.memcached.extstore import EMPTY_DIR
from memcached_api.memcached.rules.monitoring import WATCHES_CEL, watches
from memcached_api.memcached.rules.warm_up import STABLE, TIME
from memcached_api.quantity import parse_quantity
from memcached_api.shared.durations import seconds
from memcached_api.validation.common_rules import SUBDOMAIN, cel_quantity_range, matches, range_rule
from memcached_api.validation.rules import Rule, Violation, blocking, field_rule, value_rule
from memcached_api.values import is_array, is_object, nested_field

Object = Mapping[str, Any]

_SECTION: Final = "spec.cache.extstore"
_UNSET: Final = "!has(self.extstore)"
_UNSET_IN_SPEC: Final = "!has(self.cache) || !has(self.cache.extstore)"


def has_extstore(spec: Object) -> bool:
    """Whether a spec that is not decoded, and may be invalid, has items on a disk."""
    return is_object(nested_field(spec, "cache", "extstore"))


def _has_section(cache: Object) -> bool:
    return is_object(cache.get("extstore"))


def _uses_claims(spec: Object) -> bool:
    return has_extstore(spec) and nested_field(spec, "cache", "extstore", "volume") != EMPTY_DIR


def _beside(field: str, holds: Callable[[Object], bool], cel: str, message: str) -> Rule:
    """A rule about a field of `spec.cache` beside the section. `cel`: for a cache that has it."""
    return field_rule(
        "spec.cache", field, lambda cache: not _has_section(cache) or holds(cache), f"{_UNSET} || {cel}", message
    )


ONLY_STABLE: Final = field_rule(
    "spec",
    "cache.extstore",
    lambda spec: not has_extstore(spec) or spec.get("identity") == STABLE,
    f"{_UNSET_IN_SPEC} || (has(self.identity) && self.identity == '{STABLE}')",
    "must not be set without spec.identity Stable, because a rollout of other pods needs additional volumes; remove it",
)

SIZE: Final = value_rule(
    f"{_SECTION}.size",
    lambda amount: extstore.MIN_SIZE <= parse_quantity(amount) <= extstore.MAX_SIZE,
    cel_quantity_range("1Gi", "4Ti"),
    "must be a quantity from 1Gi to 4Ti, the size of the volume of each pod, such as 100Gi",
)

CLASS: Final = value_rule(
    f"{_SECTION}.storageClassName",
    lambda name: matches(SUBDOMAIN, name),
    f"self.matches(r'{SUBDOMAIN}')",
    "must be the name of a StorageClass; remove it to use the default class of the cluster",
)

ONLY_CLAIMS: Final = field_rule(
    _SECTION,
    "storageClassName",
    lambda section: section.get("storageClassName") is None or section.get("volume") != EMPTY_DIR,
    f"!has(self.storageClassName) || !has(self.volume) || self.volume != '{EMPTY_DIR}'",
    f"has no effect with volume {EMPTY_DIR}; remove it",
)

ITEM_AGE: Final = value_rule(
    f"{_SECTION}.itemAge",
    lambda text: text == "0s" or (matches(TIME, text) and seconds(text) <= extstore.MAX_AGE),
    f"self == '0s' || (self.matches('{TIME}') && duration(self) <= duration('{extstore.MAX_AGE}s'))",
    "must be 0s, or a time in hours, minutes and seconds of at most 24h, such as 30s",
)

THREADS: Final = range_rule(
    f"{_SECTION}.threads", 1, extstore.MAX_THREADS, f"; the default is {extstore.DEFAULT_THREADS}"
)

NO_WARM_RESTART: Final = _beside(
    "warmRestart",
    lambda cache: cache.get("warmRestart") is not True,
    "!has(self.warmRestart) || !self.warmRestart",
    f"must not be true with {_SECTION}, because memcached cannot take over items on a disk; remove one of the two",
)

EVICTIONS: Final = _beside(
    "evictions",
    lambda cache: cache.get("evictions") is not False,
    "!has(self.evictions) || self.evictions",
    f"must not be false with {_SECTION}, because memcached then rejects items although the disk has room; remove it",
)

_NO_AUTOMOVE: Final = "-o slab_automove=0"


def _without_automove(cache: Object) -> Iterable[Violation]:
    items = cache.get("extraArgs")
    if _has_section(cache) and is_array(items) and _NO_AUTOMOVE in items:
        yield Violation(".extraArgs", _NO_AUTOMOVE, _AUTOMOVE)


_AUTOMOVE: Final = (
    f"must not contain {_NO_AUTOMOVE} with {_SECTION}, because memcached then cannot use memory of values for the "
    "headers of items on the disk; remove the item"
)

AUTOMOVE: Final = Rule(
    "spec.cache",
    _without_automove,
    f"{_UNSET} || !has(self.extraArgs) || !('{_NO_AUTOMOVE}' in self.extraArgs)",
    _AUTOMOVE,
    field_path=".extraArgs",
)

_LARGEST: Final = memory.mebibytes_text(extstore.MAX_ITEM_SIZE)

ITEM_SIZE: Final = _beside(
    "maxItemSize",
    lambda cache: cache.get("maxItemSize") is None or parse_quantity(cache["maxItemSize"]) <= extstore.MAX_ITEM_SIZE,
    f"!has(self.maxItemSize) || quantity(string(self.maxItemSize)).compareTo(quantity('{_LARGEST}')) <= 0",
    f"must be at most {_LARGEST} with {_SECTION}, the size of the pages of memcached's file; lower it",
)

MEMORY: Final = _beside(
    "memory",
    lambda cache: cache.get("memory") is not None,
    "has(self.memory)",
    f"must be set with {_SECTION}, because the keys of all items on the disk are in memory; set at least "
    f"{memory.mebibytes_text(extstore.MIN_CACHE)}",
)


def _least(cache: Object) -> Decimal:
    """The minimum of `memory`, bytes."""
    item_size, size = cache.get("maxItemSize"), nested_field(cache, "extstore", "size")
    largest = Decimal(memory.DEFAULT_ITEM_SIZE) if item_size is None else parse_quantity(item_size)
    return max(
        Decimal(extstore.MIN_CACHE),
        extstore.ITEMS_PER_CACHE * largest,
        parse_quantity(size) / extstore.BYTES_PER_CACHE_BYTE,
    )


def _too_little_memory(cache: Object) -> Iterable[Violation]:
    amount = cache.get("memory")
    if amount is None or nested_field(cache, "extstore", "size") is None:
        return
    least = _least(cache)
    if parse_quantity(amount) < least:
        yield Violation(".memory", amount, _memory_message(str(ceil(least / memory.MEBIBYTE))))


def _memory_message(mebibytes: str) -> str:
    return (
        f"must be at least {mebibytes}Mi with {_SECTION}: {memory.mebibytes_text(extstore.MIN_CACHE)}, "
        f"{extstore.ITEMS_PER_CACHE} times spec.cache.maxItemSize and 1/{extstore.BYTES_PER_CACHE_BYTE} of "
        f"{_SECTION}.size, because the keys of all items on the disk and the items that are read are in memory; raise "
        "it"
    )


_ITEM_CEL: Final = (
    "double(has(self.maxItemSize) ? int(quantity(string(self.maxItemSize)).asApproximateFloat() + 0.5)"
    f" : {memory.DEFAULT_ITEM_SIZE})"
)
"""Whole bytes: as a float, 63.5Mi is slightly more."""
_SIZE_CEL: Final = "quantity(string(self.extstore.size)).asApproximateFloat()"
_LEAST_CEL: Final = (
    f"[{extstore.MIN_CACHE}.0, {_ITEM_CEL} * {extstore.ITEMS_PER_CACHE}.0,"
    f" {_SIZE_CEL} / {extstore.BYTES_PER_CACHE_BYTE}.0].max()"
)

ENOUGH_MEMORY: Final = Rule(
    "spec.cache",
    _too_little_memory,
    f"{_UNSET} || !has(self.memory) || quantity(string(self.memory)).asApproximateFloat() >= {_LEAST_CEL}",
    f"must be large enough for {_SECTION}.size and spec.cache.maxItemSize; raise it",
    message_expression=f"'%s {_memory_message('%d')}'.format([self.memory,"
    f" int(({_LEAST_CEL} + {memory.MEBIBYTE - 1}.0) / {memory.MEBIBYTE}.0)])",
    field_path=".memory",
    inputs=("memory", "extstore.size"),
    optional_inputs=(("maxItemSize", ""),),
)

_RESERVED: Final = memory.INTERNAL_CONNECTIONS + memory.EXTSTORE_CONNECTIONS


def _fits_client(cache: Object) -> bool:
    connections, threads, *_ = memory.settings_of(cache.get("maxConnections"), cache.get("threads"), tls=False)
    return connections >= memory.minimum_connections(threads) + memory.EXTSTORE_CONNECTIONS


CONNECTIONS: Final = _beside(
    "maxConnections",
    _fits_client,
    f"self.?maxConnections.orValue({memory.DEFAULT_CONNECTIONS})"
    f" >= {memory.CONNECTIONS_PER_THREAD} * self.?threads.orValue({memory.DEFAULT_THREADS}) + {_RESERVED}",
    f"must be at least {memory.CONNECTIONS_PER_THREAD} times spec.cache.threads plus {_RESERVED} with {_SECTION}, for "
    "the connections of memcached itself and of the agent; raise it",
)

NO_INSIGHT: Final = field_rule(
    "spec",
    "monitoring.insight",
    lambda spec: not has_extstore(spec) or not watches(spec),
    f"{_UNSET_IN_SPEC} || !{WATCHES_CEL}",
    f"must not be enabled with {_SECTION}, because memcached does not report the items that leave the disk; remove it",
)

_CONTEXT: Final = "podTemplate.spec.securityContext"


def _can_write(spec: Object) -> bool:
    context = nested_field(spec, *_CONTEXT.split("."))
    if not _uses_claims(spec) or not is_object(context):
        return True
    user, group, owner = (context.get(name) for name in ("runAsUser", "runAsGroup", "fsGroup"))
    return owner is not None or (user is None and group is None)


FS_GROUP: Final = field_rule(
    "spec",
    f"{_CONTEXT}.fsGroup",
    _can_write,
    f"{_UNSET_IN_SPEC} || (has(self.cache.extstore.volume) && self.cache.extstore.volume == '{EMPTY_DIR}')"
    " || !has(self.podTemplate) || !has(self.podTemplate.spec) || !has(self.podTemplate.spec.securityContext)"
    f" || !(has(self.{_CONTEXT}.runAsUser) || has(self.{_CONTEXT}.runAsGroup)) || has(self.{_CONTEXT}.fsGroup)",
    f"must be set with {_SECTION} and runAsUser or runAsGroup, because memcached otherwise cannot write to its volume; "
    "set it to that of runAsGroup, such as 1001",
)

_STORAGE: Final = "ephemeral-storage"
_STORAGE_LIMIT: Final = f"resources.limits[{_STORAGE}]"
_TOO_LITTLE_STORAGE: Final = f"must be at least {_SECTION}.size with volume {EMPTY_DIR}; raise it or remove it"


def _too_little_storage(spec: Object) -> Iterable[Violation]:
    amount = nested_field(spec, "resources", "limits", _STORAGE)
    size = nested_field(spec, "cache", "extstore", "size")
    if amount is None or size is None or _uses_claims(spec):
        return
    if parse_quantity(amount) < parse_quantity(size):
        yield Violation(f".{_STORAGE_LIMIT}", amount, _TOO_LITTLE_STORAGE)


STORAGE_LIMIT: Final = Rule(
    "spec",
    _too_little_storage,
    f"{_UNSET_IN_SPEC} || !has(self.cache.extstore.volume) || self.cache.extstore.volume != '{EMPTY_DIR}'"
    f" || !has(self.resources) || !has(self.resources.limits) || !('{_STORAGE}' in self.resources.limits)"
    f" || quantity(string(self.resources.limits['{_STORAGE}']))"
    ".compareTo(quantity(string(self.cache.extstore.size))) >= 0",
    _TOO_LITTLE_STORAGE,
    field_path=".resources.limits",
    inputs=(_STORAGE_LIMIT, "cache.extstore.size"),
    optional_inputs=(("cache.extstore.volume", ""),),
)

EXTSTORE_RULES: Final = blocking(
    ONLY_STABLE,
    SIZE,
    CLASS,
    ONLY_CLAIMS,
    ITEM_AGE,
    THREADS,
    NO_WARM_RESTART,
    EVICTIONS,
    AUTOMOVE,
    ITEM_SIZE,
    MEMORY,
    ENOUGH_MEMORY,
    CONNECTIONS,
    NO_INSIGHT,
    FS_GROUP,
    STORAGE_LIMIT,
)
