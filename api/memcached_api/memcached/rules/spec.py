"""The rules of Memcached, each in Python and in CEL."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from memcached_api.memcached.rules.cache import CACHE_RULES
from memcached_api.memcached.rules.extra_args import EXTRA_ARGS_RULES
from memcached_api.memcached.rules.extstore import EXTSTORE_RULES
from memcached_api.memcached.rules.monitoring import MONITORING_RULES
from memcached_api.memcached.rules.scaling import SCALING_RULES
from memcached_api.memcached.rules.tls import TLS_RULES
from memcached_api.memcached.rules.warm_restart import WARM_RESTART_RULES
from memcached_api.memcached.rules.warm_up import STABLE, WARM_UP_RULES
from memcached_api.shared.rules.images import IMAGE_RULES
from memcached_api.shared.rules.placing import PLACING_RULES, ZERO
from memcached_api.shared.tls import MIN_PORT
from memcached_api.validation.common_rules import (
    MAX_PORT,
    NAME,
    RESOURCES,
    range_rule,
    size_rule,
)
from memcached_api.validation.rules import Rule, TransitionRule, Violation, blocking, field_rule
from memcached_api.values import nested_field

SIZE: Final = size_rule("to stop the cache, delete the Memcached object instead")

CONTAINER_PORT: Final = range_rule(
    "spec.containerPort",
    MIN_PORT,
    MAX_PORT,
    "; memcached does not run as root and cannot bind a lower port; use 11211, its default",
)

POOLED: Final = "Pooled"

MAX_SLOTS: Final = 1000
"""Maximum size with slots: each is an entry of the status and of a ConfigMap, which are limited to about 1 MiB."""

MAX_SERVICES: Final = 100
"""Maximum size with a Service for each slot: each uses an IP address of the cluster's range for Services."""

_TOO_MANY: Final = f"must be at most {MAX_SERVICES} with spec.service.perPod true; set it to false, or lower the size"
_NOT_PER_POD: Final = "!has(self.service) || !has(self.service.perPod) || !self.service.perPod"


def _is_per_pod(spec: Mapping[str, Any]) -> bool:
    return nested_field(spec, "service", "perPod") is True


def _too_many_services(spec: Mapping[str, Any]) -> Iterable[Violation]:
    if spec.get("identity") == STABLE and _is_per_pod(spec):
        size = spec.get("size")
        if size is not None and MAX_SERVICES < size <= MAX_SLOTS:
            yield Violation(".size", size, _TOO_MANY)


_IS_POOLED: Final = f"!has(self.identity) || self.identity != '{STABLE}'"
_IDENTITY: Final = (
    "cannot be changed, because all pods and their addresses would change; create another Memcached with this value, "
    "move the clients to it, and delete this one"
)


def _identity_changes(spec: Any, old: Any) -> Iterable[Violation]:
    new, before = (nested_field(value, "identity") or POOLED for value in (spec, old))
    if new != before:
        yield Violation(".identity", new, _IDENTITY)


IDENTITY: Final = TransitionRule(
    "spec",
    _identity_changes,
    # Not with optional values: Kubernetes bases its estimate of the cost on the longest possible string, 3 MB.
    " == ".join(f"(has({variable}.identity) && {variable}.identity == '{STABLE}')" for variable in ("self", "oldSelf")),
    _IDENTITY,
    ".identity",
)


def _stable_rule(field: str, holds: Callable[[Any], bool], cel: str, message: str) -> Rule:
    """A rule about a field of `spec` with `identity: Stable`. `cel`: for the value `self.FIELD`, which is set."""

    def violations(spec: Mapping[str, Any]) -> Iterable[Violation]:
        value = nested_field(spec, *field.split("."))
        if spec.get("identity") == STABLE and value is not None and not holds(value):
            yield Violation(f".{field}", value, message)

    parts = field.split(".")
    absent = " || ".join(f"!has(self.{'.'.join(parts[: end + 1])})" for end in range(len(parts)))
    return Rule("spec", violations, f"{_IS_POOLED} || {absent} || {cel}", message, field_path=f".{field}")


_PER_POD: Final = (
    "must not be true without spec.identity Stable, because only slots can have their own Services; remove it"
)

SLOTS: Final = blocking(
    _stable_rule(
        "size",
        lambda size: size <= MAX_SLOTS,
        f"self.size <= {MAX_SLOTS}",
        f"must be at most {MAX_SLOTS} with spec.identity Stable; use several Memcacheds, or identity Pooled",
    ),
    _stable_rule(
        "rollout.maxUnavailable",
        lambda value: value not in ZERO,
        "!(string(self.rollout.maxUnavailable) in ['0', '0%'])",
        "must not be 0 with spec.identity Stable, because no slot could be updated; remove the field",
    ),
    _stable_rule(
        "rollout.maxSurge",
        lambda value: value == 0,
        "string(self.rollout.maxSurge) == '0'",
        "must be 0 with spec.identity Stable, because a slot has one pod; remove the field",
    ),
    field_rule(
        "spec",
        "service.perPod",
        lambda spec: not _is_per_pod(spec) or spec.get("identity") == STABLE,
        f"{_NOT_PER_POD} || (has(self.identity) && self.identity == '{STABLE}')",
        _PER_POD,
    ),
    Rule(
        "spec",
        _too_many_services,
        f"{_IS_POOLED} || {_NOT_PER_POD} || !has(self.size) || self.size <= {MAX_SERVICES} || self.size > {MAX_SLOTS}",
        _TOO_MANY,
        field_path=".size",
    ),
)

RULES: Final = (
    *blocking(
        NAME,
        SIZE,
        CONTAINER_PORT,
        *IMAGE_RULES,
        *RESOURCES,
    ),
    *CACHE_RULES,
    *EXTRA_ARGS_RULES,
    *PLACING_RULES,
    *MONITORING_RULES,
    *TLS_RULES,
    *WARM_UP_RULES,
    *WARM_RESTART_RULES,
    *EXTSTORE_RULES,
    *SCALING_RULES,
    *SLOTS,
)

TRANSITIONS: Final = (IDENTITY,)
