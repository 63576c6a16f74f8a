"""The rules about warm caches, each in Python and in CEL."""

from typing import Final

from memcached_api.memcached.warm_up import MAX_REQUESTS
from memcached_api.validation.common_rules import matches, range_rule
from memcached_api.validation.rules import blocking, field_rule, value_rule
from memcached_api.values import nested_field

STABLE: Final = "Stable"

TIME: Final = (
    "^([1-9][0-9]?h([1-9][0-9]{0,3}m)?([1-9][0-9]{0,4}s)?|[1-9][0-9]{0,3}m([1-9][0-9]{0,4}s)?|[1-9][0-9]{0,4}s)$"
)

TIMEOUT: Final = value_rule(
    "spec.rollout.warmUp.timeout",
    lambda text: matches(TIME, text),
    f"self.matches('{TIME}')",
    "must be a time in hours, minutes and seconds, such as 15m or 1h30m, less than 100h",
)

HIT_RATIO: Final = range_rule("spec.rollout.warmUp.hitRatio", 1, 100, ", a percentage; the default is 80")

MIN_REQUESTS: Final = range_rule("spec.rollout.warmUp.minRequests", 0, MAX_REQUESTS, "; the default is 100")

_POOLED: Final = (
    "must not be set without spec.identity Stable, because only a pod in a slot takes over the keys of the pod that "
    "it replaces; remove it"
)


ONLY_STABLE: Final = field_rule(
    "spec",
    "rollout.warmUp",
    lambda spec: nested_field(spec, "rollout", "warmUp") is None or spec.get("identity") == STABLE,
    f"!has(self.rollout) || !has(self.rollout.warmUp) || (has(self.identity) && self.identity == '{STABLE}')",
    _POOLED,
)

WARM_UP_RULES: Final = blocking(TIMEOUT, HIT_RATIO, MIN_REQUESTS, ONLY_STABLE)
