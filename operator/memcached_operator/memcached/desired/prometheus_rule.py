"""The PrometheusRule of a Memcached, through which the Prometheus operator finds its alerts."""

from memcached_api.memcached.monitoring import Rules
from memcached_api.memcached.types import MemcachedSpec
from memcached_api.shared.monitoring import is_enabled
from memcached_operator.kube.resource import PROMETHEUS_RULES, Object
from memcached_operator.memcached.alerts.caches import GROUP, rules_of
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT
from memcached_operator.parts.workloads import children


def wanted_rules(spec: MemcachedSpec) -> Rules | None:
    """The alerts that the spec asks for, or None."""
    rules = spec.monitoring and spec.monitoring.rules
    return rules if is_enabled(spec.monitoring) and is_enabled(rules) else None


def prometheus_rule(cr: Object, rules: Rules) -> Object:
    """Build the PrometheusRule with the alerts of one cache. `rules`: its labels, by which a Prometheus selects it."""
    meta = cr["metadata"]
    group = {"name": GROUP, "rules": rules_of(meta["namespace"], meta["name"])}
    built = children.child(PROMETHEUS_RULES, cr, APP_NAME, COMPONENT, spec={"groups": [group]})
    return children.with_metadata(built, rules.labels, {})
