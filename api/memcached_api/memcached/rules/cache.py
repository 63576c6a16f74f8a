"""The rules about `spec.cache` and the memory limit, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.memcached import extstore, memory
from memcached_api.memcached.memory import Need, Settings
from memcached_api.memcached.options import HASHPOWER, hashpower_of
from memcached_api.quantity import parse_quantity
from memcached_api.validation.common_rules import cel_quantity_range, range_rule
from memcached_api.validation.rules import Rule, Violation, blocking, value_rule
from memcached_api.values import is_array, is_object, nested_field

Spec = Mapping[str, Any]

DEFAULT_CACHE_MEMORY: Final = memory.mebibytes_text(memory.DEFAULT_CACHE)
_MEBIBYTE: Final = memory.MEBIBYTE
_LIMIT: Final = "resources.limits[memory]"
_SETTINGS: Final = (
    ("cache.maxConnections", str(memory.DEFAULT_CONNECTIONS)),
    ("cache.threads", str(memory.DEFAULT_THREADS)),
    ("tls.secretName", ""),  # with every `tls`
    ("cache.extstore.size", ""),
    ("cache.extstore.threads", str(extstore.DEFAULT_THREADS)),
)
"""The fields of `Settings` with the values that CEL compares while they are absent."""
_LISTS: Final = ("cache.extraArgs",)
"""The list that contains a setting."""

# Parts of CEL expressions, all numbers as floats.
_LIMIT_CEL: Final = "quantity(string(self.resources.limits['memory'])).asApproximateFloat()"
_HAS_LIMIT_CEL: Final = "has(self.resources) && has(self.resources.limits) && 'memory' in self.resources.limits"
_CACHE_CEL: Final = "quantity(string(self.cache.memory)).asApproximateFloat()"
_HAS_CACHE_CEL: Final = "has(self.cache) && has(self.cache.memory)"
_ITEM_CEL: Final = "quantity(string(self.cache.maxItemSize)).asApproximateFloat()"
_HAS_ITEM_CEL: Final = "has(self.cache) && has(self.cache.maxItemSize)"
_CONNECTIONS_CEL: Final = f"self.?cache.?maxConnections.orValue({memory.DEFAULT_CONNECTIONS})"
_THREADS_CEL: Final = f"self.?cache.?threads.orValue({memory.DEFAULT_THREADS})"
_PER_CONNECTION_CEL: Final = f"(has(self.tls) ? {memory.BYTES_PER_TLS_CONNECTION}.0 : {memory.BYTES_PER_CONNECTION}.0)"
_POWERS: Final = range(memory.HASHPOWER_IN_NEED + 1, memory.MAX_HASHPOWER + 1)
_TABLES: Final = [memory.hash_table(power) // _MEBIBYTE for power in _POWERS]
_TABLE_CEL: Final = (
    "(has(self.cache) && has(self.cache.extraArgs) ? self.cache.extraArgs"
    f".filter(a, a.matches('^{HASHPOWER}=(1[89]|2[0-9]|30)$'))"
    f".map(a, {_TABLES}[int(a.substring({len(HASHPOWER) + 1})) - {_POWERS.start}]).sum() : 0)"
)
"""memory.hash_table, in mebibytes."""
_BUFFER_CEL: Final = (
    f"(!has(self.cache.maxItemSize) ? {extstore.buffer_mebibytes(memory.DEFAULT_ITEM_SIZE)}.0 :"
    f" [{_ITEM_CEL}].map(i, {list(map(float, extstore.BUFFERS))}"
    f".filter(b, b * {_MEBIBYTE / extstore.ITEMS_PER_BUFFER} >= i || b == {extstore.BUFFERS[-1]}.0)[0])[0])"
)
"""extstore.buffer_mebibytes, as a float."""
_DISK_CEL: Final = (
    f"(has(self.cache) && has(self.cache.extstore) ? {_BUFFER_CEL} * {extstore.BUFFERS_IN_MEMORY * _MEBIBYTE}.0"
    f" + double(self.cache.extstore.?threads.orValue({extstore.DEFAULT_THREADS})) * {extstore.BYTES_PER_THREAD}.0"
    f" + double(int(quantity(string(self.cache.extstore.size)).asApproximateFloat() / {extstore.BYTES_PER_BYTE}.0))"
    " : 0.0)"
)
"""extstore.memory_of."""
_SETTINGS_CEL: Final = (
    f"double({_CONNECTIONS_CEL}) * {_PER_CONNECTION_CEL}"
    f" + double([{_THREADS_CEL} - {memory.DEFAULT_THREADS}, 0].max()) * {memory.BYTES_PER_THREAD}.0"
    f" + (has(self.tls) ? {memory.TLS_FIXED}.0 : 0.0) + double(table) * {_MEBIBYTE}.0"
    f" + {_DISK_CEL}"
)
"""memory.settings_memory, with the variable `table`, which is _TABLE_CEL."""


def _with_amounts(cache: str, expression: str, macro: str) -> str:
    """CEL with the variables `table` and `rest`, the amounts of the two expressions above, and `cache`.

    `cache`: the expression for the bytes of the cache. `macro`: `all` for a condition; `map` for another
    value, in a list of lists of lists.
    """
    return f"[{_TABLE_CEL}].{macro}(table, [{_SETTINGS_CEL}].{macro}(rest, [{cache}].{macro}(cache, {expression})))"


CACHE_MEMORY: Final = value_rule(
    "spec.cache.memory",
    lambda amount: memory.MIN_CACHE <= parse_quantity(amount) <= memory.MAX_CACHE,
    cel_quantity_range("2Mi", "1Pi"),
    f"must be a quantity from 2Mi (memcached does not start with less) to 1Pi; the default is {DEFAULT_CACHE_MEMORY}",
)

_BYTES_CEL: Final = "int(q.asApproximateFloat() + 0.5)"  # asInteger() denies `1.5Mi` and `1e9m`

MAX_ITEM_SIZE: Final = value_rule(
    "spec.cache.maxItemSize",
    lambda amount: (
        memory.MIN_ITEM_SIZE <= parse_quantity(amount) <= memory.MAX_ITEM_SIZE
        and not parse_quantity(amount) % memory.ITEM_SIZE_STEP
    ),
    cel_quantity_range(
        "512Ki",
        "1Gi",
        f"{_BYTES_CEL} % {memory.ITEM_SIZE_STEP} == 0 && q.compareTo(quantity('0').add({_BYTES_CEL})) == 0",
    ),
    "must be a multiple of 512Ki from 512Ki to 1Gi (memcached does not start with another size); the default is 1Mi",
)

MAX_CONNECTIONS: Final = range_rule(
    "spec.cache.maxConnections",
    memory.MIN_CONNECTIONS,
    memory.MAX_CONNECTIONS,
    f"; the default is {memory.DEFAULT_CONNECTIONS}; for more clients, add pods with spec.size",
)

THREADS: Final = range_rule(
    "spec.cache.threads",
    1,
    memory.MAX_THREADS,
    f"; the default is {memory.DEFAULT_THREADS}; more threads than CPUs make memcached slower",
)

VERBOSITY: Final = range_rule(
    "spec.cache.verbosity", 0, 2, "; 0 logs only errors at startup, 1 also later errors, 2 also the commands of clients"
)


def _too_few_connections(cache: Mapping[str, Any]) -> Iterable[Violation]:
    max_connections = nested_field(cache, "maxConnections")
    connections, threads, *_ = memory.settings_of(max_connections, nested_field(cache, "threads"), tls=False)
    minimum = memory.minimum_connections(threads)
    if max_connections is None or connections >= minimum:
        return ()
    return (Violation(".maxConnections", max_connections, _connections_message(str(minimum), str(threads))),)


def _connections_message(minimum: str, threads: str) -> str:
    return (
        f"must be at least {minimum} for {threads} threads ({memory.CONNECTIONS_PER_THREAD} times spec.cache.threads "
        f"plus {memory.INTERNAL_CONNECTIONS}); raise it or lower spec.cache.threads"
    )


_THREADS_OF_CACHE_CEL: Final = f"self.?threads.orValue({memory.DEFAULT_THREADS})"
_MIN_CONNECTIONS_CEL: Final = (
    f"{memory.CONNECTIONS_PER_THREAD} * {_THREADS_OF_CACHE_CEL} + {memory.INTERNAL_CONNECTIONS}"
)

CONNECTIONS: Final = Rule(
    "spec.cache",
    _too_few_connections,
    f"!has(self.maxConnections) || self.maxConnections >= {_MIN_CONNECTIONS_CEL}",
    "must be large enough for spec.cache.threads; raise it or lower spec.cache.threads",
    message_expression=f"'%d {_connections_message('%d', '%d')}'"
    f".format([self.maxConnections, {_MIN_CONNECTIONS_CEL}, {_THREADS_OF_CACHE_CEL}])",
    field_path=".maxConnections",
    optional_inputs=(("maxConnections", ""), ("threads", "")),
)


def _settings(spec: Spec) -> Settings:
    """The settings of a spec in JSON whose fields have the right types."""
    connections, threads = (nested_field(spec, "cache", name) for name in ("maxConnections", "threads"))
    items = nested_field(spec, "cache", "extraArgs")
    hashpower = hashpower_of(items) if is_array(items) else memory.MIN_HASHPOWER
    tls = is_object(spec.get("tls"))
    return memory.settings_of(connections, threads, tls=tls, hashpower=hashpower, disk=_disk(spec))


def _disk(spec: Spec) -> int:
    size, threads = (nested_field(spec, "cache", "extstore", name) for name in ("size", "threads"))
    item_size = nested_field(spec, "cache", "maxItemSize")
    largest = memory.DEFAULT_ITEM_SIZE if item_size is None else int(parse_quantity(item_size))
    return 0 if size is None else extstore.memory_of(parse_quantity(size), largest, threads)


def _memory_limit_too_low(spec: Spec) -> Iterable[Violation]:
    limit, cache = nested_field(spec, "resources", "limits", "memory"), nested_field(spec, "cache", "memory")
    if limit is None or cache is None:
        return ()
    settings = _settings(spec)
    minimum = memory.exact_minimum(parse_quantity(cache), settings)
    if parse_quantity(limit) >= minimum:
        return ()
    message = _minimum_message(
        memory.mebibytes_text(minimum),
        str(cache),
        _connections_text(str(settings.connections), tls=settings.tls),
        _threads_text(str(settings.threads), table=memory.hash_table(settings.hashpower) > 0, disk=settings.disk > 0),
    )
    return (Violation(f".{_LIMIT}", limit, message),)


def _memory_limit_below_the_first(spec: Spec) -> Iterable[Violation]:
    """The rule of release 0.1.0, which stored objects meet."""
    limit, cache = nested_field(spec, "resources", "limits", "memory"), nested_field(spec, "cache", "memory")
    if limit is None or cache is None:
        return ()
    needed = memory.needed(memory.FIRST_NEED, parse_quantity(cache), _settings(spec))
    return _memory_limit_too_low(spec) if parse_quantity(limit) < needed else ()


def _connections_text(connections: str, *, tls: bool) -> str:
    return f"{connections} connections{' with TLS' if tls else ''}"


_WITH_TABLE: Final = f", with {HASHPOWER} in spec.cache.extraArgs"


_WITH_DISK: Final = ", with spec.cache.extstore"


def _threads_text(threads: str, *, table: bool, disk: bool) -> str:
    return f"{threads} threads{_WITH_TABLE if table else ''}{_WITH_DISK if disk else ''}"


def _minimum_message(minimum: str, cache: str, connections: str, threads: str) -> str:
    return (
        f"must be at least {minimum} for spec.cache.memory of {cache}, {connections} and {threads}; "
        "raise this limit or lower spec.cache.memory"
    )


# CEL for 100 times the amounts of the functions in `memory`: integers for whole bytes, exact up to 2^53.
_HUNDRED_LIMIT_CEL: Final = f"{_LIMIT_CEL} * 100.0"


def _needed_cel(need: Need) -> str:
    """`memory.needed` in CEL, with the variables of `_with_amounts`."""
    return f"(cache * {need.percent}.0 + {need.constant * 100}.0 + rest * 100.0)"


_WITH_HEADROOM_CEL: Final = f"{_needed_cel(memory.FIRST_NEED)} * {memory.HEADROOM}"


def _mebibytes_cel(hundred: str) -> str:
    """`memory.mebibytes_text` in CEL, without the unit. `hundred`: the expression for 100 times the bytes."""
    return f"int(({hundred} + {_MEBIBYTE * 100 - 1}.0) / {_MEBIBYTE * 100}.0)"


_FIRST_MINIMUM_CEL: Final = f"[{memory.MIN_DEFAULT_LIMIT * 100}.0, {_WITH_HEADROOM_CEL}].max()"
_MINIMUM_CEL: Final = f"[{_needed_cel(memory.NEED)}, {_FIRST_MINIMUM_CEL}].min()"
"""memory.exact_minimum."""

MEMORY_LIMIT: Final = Rule(
    "spec",
    _memory_limit_too_low,
    f"!({_HAS_LIMIT_CEL}) || !({_HAS_CACHE_CEL})"
    f" || {_with_amounts(_CACHE_CEL, f'{_HUNDRED_LIMIT_CEL} >= {_MINIMUM_CEL}', 'all')}",
    "must be large enough for spec.cache.memory; raise this limit or lower spec.cache.memory",
    # Of the ways to format a number in CEL, only format() has a cost that the API server can bound.
    message_expression=_with_amounts(
        _CACHE_CEL,
        f"'limit %s {_minimum_message('%dMi', '%s', '%d connections%s', '%d threads%s%s')}'"
        f".format([self.resources.limits['memory'], {_mebibytes_cel(_MINIMUM_CEL)}, self.cache.memory,"
        f" {_CONNECTIONS_CEL}, has(self.tls) ? ' with TLS' : '', {_THREADS_CEL}, table > 0 ? '{_WITH_TABLE}' : '',"
        f" has(self.cache.extstore) ? '{_WITH_DISK}' : ''])",
        "map",
    )
    + "[0][0][0]",
    field_path=".resources.limits.memory",
    inputs=(_LIMIT, "cache.memory"),
    optional_inputs=(*_SETTINGS, ("cache.maxItemSize", "")),
    list_inputs=_LISTS,
    stored_violations=_memory_limit_below_the_first,
)


def _limit_without_cache(spec: Spec) -> Iterable[Violation]:
    limit = nested_field(spec, "resources", "limits", "memory")
    if limit is None or nested_field(spec, "cache", "memory") is not None:
        return ()
    size = nested_field(spec, "cache", "maxItemSize")
    least = memory.MIN_WARM_CACHE if nested_field(spec, "cache", "warmRestart") is True else memory.MIN_CACHE
    smallest = max(least, 0 if size is None else 2 * parse_quantity(size))
    minimum = memory.exact_limit_for(smallest, _settings(spec))
    if parse_quantity(limit) >= minimum:
        return ()
    return (Violation(f".{_LIMIT}", limit, _derived_message(*map(memory.mebibytes_text, (minimum, least)))),)


_RAISE: Final = "raise this limit; with spec.cache.memory set, a lower limit can be enough"
"""Setting the memory is enough only if the limit lacks the headroom of a derived memory."""


def _derived_message(minimum: str, least: str) -> str:
    return (
        f"must be at least {minimum}, because spec.cache.memory is derived from it and would be "
        f"less than {least} or twice spec.cache.maxItemSize; {_RAISE}"
    )


_LEAST_CACHE_CEL: Final = (
    f"(self.?cache.?warmRestart.orValue(false) ? {memory.MIN_WARM_CACHE}.0 : {memory.MIN_CACHE}.0)"
)
_SMALLEST_CACHE_CEL: Final = f"[{_HAS_ITEM_CEL} ? {_ITEM_CEL} * 2.0 : 0.0, {_LEAST_CACHE_CEL}].max()"
_LIMIT_FOR_CEL: Final = f"[{_WITH_HEADROOM_CEL}, {_needed_cel(memory.NEED)}].max()"
"""memory.exact_limit_for."""

DERIVED_MEMORY: Final = Rule(
    "spec",
    _limit_without_cache,
    f"!({_HAS_LIMIT_CEL}) || ({_HAS_CACHE_CEL})"
    f" || {_with_amounts(_SMALLEST_CACHE_CEL, f'{_HUNDRED_LIMIT_CEL} >= {_LIMIT_FOR_CEL}', 'all')}",
    f"must be large enough to derive spec.cache.memory from it; {_RAISE}",
    message_expression=_with_amounts(
        _SMALLEST_CACHE_CEL,
        f"'limit %s {_derived_message('%dMi', '%dMi')}'"
        f".format([self.resources.limits['memory'], {_mebibytes_cel(_LIMIT_FOR_CEL)},"
        f" int({_LEAST_CACHE_CEL}) / {_MEBIBYTE}])",
        "map",
    )
    + "[0][0][0]",
    field_path=".resources.limits.memory",
    inputs=(_LIMIT,),
    optional_inputs=(*_SETTINGS, ("cache.maxItemSize", ""), ("cache.memory", ""), ("cache.warmRestart", "false")),
    list_inputs=_LISTS,
)


def _item_size_too_large(spec: Spec) -> Iterable[Violation]:
    size, cache = nested_field(spec, "cache", "maxItemSize"), nested_field(spec, "cache", "memory")
    if size is None or (cache is None and nested_field(spec, "resources", "limits", "memory") is not None):
        return ()
    cache = DEFAULT_CACHE_MEMORY if cache is None else cache
    if parse_quantity(size) * 2 <= parse_quantity(cache):
        return ()
    message = (
        f"must be at most half of spec.cache.memory, which is {cache}; lower this field or raise spec.cache.memory"
    )
    return (Violation(".cache.maxItemSize", size, message),)


ITEM_SIZE_IN_CACHE: Final = Rule(
    "spec",
    _item_size_too_large,
    f"!({_HAS_ITEM_CEL}) || (!({_HAS_CACHE_CEL}) && {_HAS_LIMIT_CEL})"
    f" || {_ITEM_CEL} * 2.0 <= (has(self.cache.memory) ? {_CACHE_CEL} : {memory.DEFAULT_CACHE}.0)",
    "must be at most half of spec.cache.memory; lower this field or raise spec.cache.memory",
    field_path=".cache.maxItemSize",
    inputs=("cache.maxItemSize",),
    optional_inputs=(("cache.memory", ""), (_LIMIT, "")),
)

CACHE_RULES: Final = blocking(
    CACHE_MEMORY,
    MAX_ITEM_SIZE,
    MAX_CONNECTIONS,
    THREADS,
    VERBOSITY,
    CONNECTIONS,
    MEMORY_LIMIT,
    DERIVED_MEMORY,
    ITEM_SIZE_IN_CACHE,
)
