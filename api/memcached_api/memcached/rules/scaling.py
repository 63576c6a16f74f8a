"""The rules about changes of size, each in Python and in CEL."""

from typing import Final

from memcached_api.memcached.rules.warm_up import STABLE
from memcached_api.memcached.scaling import MAX_DURATION
from memcached_api.shared.durations import seconds
from memcached_api.validation.common_rules import matches
from memcached_api.validation.rules import blocking, field_rule, value_rule
from memcached_api.values import nested_field

TIME: Final = (
    "^(0s|[1-9][0-9]{0,2}h([1-9][0-9]{0,3}m)?([1-9][0-9]{0,4}s)?|[1-9][0-9]{0,4}m([1-9][0-9]{0,4}s)?|[1-9][0-9]{0,5}s)$"
)

DURATION: Final = value_rule(
    "spec.scaling.warm.duration",
    lambda text: matches(TIME, text) and seconds(text) <= MAX_DURATION,
    f"self.matches('{TIME}') && duration(self) <= duration('{MAX_DURATION}s')",
    "must be a time in hours, minutes and seconds, such as 30m or 1h30m, at most 168h; or 0s, which keeps no items of "
    "keys that move",
)

ONLY_STABLE: Final = field_rule(
    "spec",
    "scaling.warm",
    lambda spec: nested_field(spec, "scaling", "warm") is None or spec.get("identity") == STABLE,
    f"!has(self.scaling) || !has(self.scaling.warm) || (has(self.identity) && self.identity == '{STABLE}')",
    "must not be set without spec.identity Stable, because proxies need slots; remove it",
)

SCALING_RULES: Final = blocking(DURATION, ONLY_STABLE)
