"""The files with rules: a PrometheusRule for the operator, and a plain file of Prometheus for everything."""

from typing import Any, Final

from alerts import operators, proxies
from memcached_operator.memcached.alerts import caches
from project.yaml_text import yaml_text

OBJECT: Final = "config/prometheus/rules.yaml"
PLAIN: Final = "config/prometheus/memcached-operator.rules.yaml"
SOURCE: Final = "tools/alerts and operator/memcached_operator/memcached/alerts"


def files(command: str) -> dict[str, str]:
    """Their text, by path below the project's root. `command`: the one that writes them."""
    return {
        OBJECT: yaml_text(command, prometheus_rule(), source=SOURCE),
        PLAIN: yaml_text(command, plain(), source=SOURCE),
    }


def plain() -> dict[str, Any]:
    """The content of the plain file."""
    found = {
        caches.GROUP: caches.rules_of_all(),
        operators.GROUP: operators.plain_rules(),
        proxies.GROUP: proxies.plain_rules(),
    }
    return {"groups": [group(f"{name}-plain", rules) for name, rules in found.items()]}


def prometheus_rule() -> dict[str, Any]:
    """The PrometheusRule of the operator, whose namespace kustomize can change."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "memcached-operator-rules",
            "namespace": "memcached-operator-system",
            "labels": {
                "app.kubernetes.io/name": "memcached-operator",
                "app.kubernetes.io/managed-by": "kustomize",
                "control-plane": "controller-manager",
            },
        },
        "spec": {"groups": [group(operators.GROUP, operators.rules()), group(proxies.GROUP, proxies.rules())]},
    }


def group(name: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    """A group of rules, which Prometheus evaluates in this order."""
    return {"name": name, "rules": rules}
