"""The rules about warm caches, each in Python and in CEL."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_api.memcached.warm_up import MAX_REQUESTS
from memcached_api.validation.common_rules import matches, range_rule
from memcached_api.validation.rules import Rule, Violation, value_rule
from memcached_api.values import nested_field

STABLE: Final = "Stable"

_TIMEOUT: Final = (
    "^([1-9][0-9]?h([1-9][0-9]{0,3}m)?([1-9][0-9]{0,4}s)?|[1-9][0-9]{0,3}m([1-9][0-9]{0,4}s)?|[1-9][0-9]{0,4}s)$"
)

TIMEOUT: Final = value_rule(
    "spec.rollout.warmUp.timeout",
    lambda text: matches(_TIMEOUT, text),
    f"self.matches('{_TIMEOUT}')",
    "must be a time in hours, minutes and seconds, such as 15m or 1h30m, less than 100h",
)

HIT_RATIO: Final = range_rule("spec.rollout.warmUp.hitRatio", 1, 100, ", a percentage; the default is 80")

MIN_REQUESTS: Final = range_rule("spec.rollout.warmUp.minRequests", 0, MAX_REQUESTS, "; the default is 100")

_POOLED: Final = (
    "must not be set without spec.identity Stable, because only the pod of a slot gets the items of its predecessor; "
    "remove it"
)


def _pooled(spec: Mapping[str, Any]) -> Iterable[Violation]:
    given = nested_field(spec, "rollout", "warmUp")
    if given is not None and spec.get("identity") != STABLE:
        yield Violation(".rollout.warmUp", given, _POOLED)


ONLY_STABLE: Final = Rule(
    "spec",
    _pooled,
    f"!has(self.rollout) || !has(self.rollout.warmUp) || (has(self.identity) && self.identity == '{STABLE}')",
    _POOLED,
    field_path=".rollout.warmUp",
)

WARM_UP_RULES: Final = (TIMEOUT, HIT_RATIO, MIN_REQUESTS, ONLY_STABLE)
