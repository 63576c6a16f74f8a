"""The rules about `spec.cache.warmRestart`, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.memcached import memory
from memcached_api.memcached.rules.warm_up import STABLE
from memcached_api.quantity import parse_quantity
from memcached_api.validation.rules import Rule, Violation, blocking, field_rule
from memcached_api.values import nested_field

_IS_WARM_CEL: Final = "has(self.cache) && has(self.cache.warmRestart) && self.cache.warmRestart"


def is_warm(spec: Mapping[str, Any]) -> bool:
    """Whether a spec that is not decoded, and may be invalid, keeps items over a restart."""
    return nested_field(spec, "cache", "warmRestart") is True


ONLY_STABLE: Final = field_rule(
    "spec",
    "cache.warmRestart",
    lambda spec: not is_warm(spec) or spec.get("identity") == STABLE,
    f"!({_IS_WARM_CEL}) || (has(self.identity) && self.identity == '{STABLE}')",
    "must not be true without spec.identity Stable, because only the pods of slots are restarted in place; remove it",
)

_SMALLEST: Final = memory.mebibytes_text(memory.MIN_WARM_CACHE)
_MEMORY: Final = (
    f"must be at least {_SMALLEST} with spec.cache.warmRestart, because memcached then reserves 1Mi of it for each of "
    f"{memory.SLAB_CLASSES} slab classes; raise it"
)


def _too_little_memory(cache: Mapping[str, Any]) -> Iterable[Violation]:
    amount = cache.get("memory")
    if cache.get("warmRestart") is True and amount is not None and parse_quantity(amount) < memory.MIN_WARM_CACHE:
        yield Violation(".memory", amount, _MEMORY)


ENOUGH_MEMORY: Final = Rule(
    "spec.cache",
    _too_little_memory,
    "!has(self.warmRestart) || !self.warmRestart || !has(self.memory)"
    f" || quantity(string(self.memory)).compareTo(quantity('{_SMALLEST}')) >= 0",
    _MEMORY,
    field_path=".memory",
    inputs=("memory",),
    optional_inputs=(("warmRestart", "false"),),
)

WARM_RESTART_RULES: Final = blocking(ONLY_STABLE, ENOUGH_MEMORY)
