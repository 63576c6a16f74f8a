"""The admission policies: PodMonitors and PrometheusRules."""

from typing import Any

import pytest

from integration.confined import ACCOUNT_NAMESPACE, MINIMAL, Account, dry_run
from integration.control_plane import ControlPlane
from memcached_operator.kube.resource import POD_MONITORS, PROMETHEUS_RULES, Object
from memcached_operator.memcached.alerts.caches import GROUP, rules_of
from memcached_operator.parts.pod_monitor import CACHE_LABEL

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"namespaceSelector": {"any": True}}, "spec:"),
        ({"selector": {}}, "spec.selector:"),
        ({"selector": {"matchLabels": {"app": "other"}}}, "spec.selector:"),
        ({"podMetricsEndpoints": [{"port": "other"}]}, "spec.podMetricsEndpoints:"),
        ({"podMetricsEndpoints": [{"port": "metrics", "path": "/secrets"}]}, "spec.podMetricsEndpoints:"),
        (
            {"podMetricsEndpoints": [{"port": "metrics", "bearerTokenSecret": {"name": "a", "key": "b"}}]},
            "spec.podMetricsEndpoints:",
        ),
        ({"podMetricsEndpoints": [{"port": "metrics", "scheme": "http"}]}, "spec.podMetricsEndpoints:"),
        (
            {"podMetricsEndpoints": [{"port": "metrics", "relabelings": [{**CACHE_LABEL, "targetLabel": "pod"}]}]},
            "spec.podMetricsEndpoints.relabelings:",
        ),
        *(
            ({"podMetricsEndpoints": [{"port": "metrics", "tlsConfig": each}]}, "spec.podMetricsEndpoints:")
            for each in (
                {"insecureSkipVerify": True},
                {"ca": {"secret": {"name": "a", "key": "password"}}},
                {"ca": {"configMap": {"name": "a", "key": "ca.crt"}}},
                {"keySecret": {"name": "a", "key": "tls.key"}},
            )
        ),
    ],
)
def test_pod_monitor_selects_only_the_metrics_of_own_pods(stolen_token: Account, change: Object, path: str) -> None:
    obj = MINIMAL[POD_MONITORS]("new")
    assert not stolen_token.denial(dry_run("POST", POD_MONITORS, obj))
    assert path in stolen_token.denial(dry_run("POST", POD_MONITORS, {**obj, "spec": {**obj["spec"], **change}}))


def test_rules_are_only_those_of_the_cache_with_the_same_name(stolen_token: Account) -> None:
    def denied(**spec: Any) -> str:
        return stolen_token.denial(
            dry_run("POST", PROMETHEUS_RULES, {**MINIMAL[PROMETHEUS_RULES]("new"), "spec": spec})
        )

    rules = rules_of(ACCOUNT_NAMESPACE, "new")
    group: Object = {"name": GROUP, "rules": rules}
    assert not denied(groups=[group])
    others: dict[str, Object] = {
        "of another cache": {"rules": rules_of(ACCOUNT_NAMESPACE, "other")},
        "of another namespace": {"rules": rules_of("kube-system", "new")},
        "a changed expression": {"rules": [{**each, "expr": "vector(0)"} for each in rules]},
        "a query in an annotation": {
            "rules": [each | {"annotations": {"summary": '{{ query "up" }}'}} for each in rules]
        },
        "fewer": {"rules": rules[:-1]},
        "an interval": {"interval": "1s"},
        "another name": {"name": "other"},
    }
    denials = {name: denied(groups=[{**group, **change}]) for name, change in others.items()}
    assert {name: text for name, text in denials.items() if "spec.groups: " not in text} == {}
    assert "spec: " in denied(groups=[group], other=1)


def test_a_group_of_another_client_prevents_no_change_of_rules(
    plane: ControlPlane, stolen_token: Account, namespace: str
) -> None:
    kept = {"name": "theirs", "rules": [{"record": "a", "expr": "vector(1)"}]}
    obj = MINIMAL[PROMETHEUS_RULES]("new")
    obj = {**obj, "metadata": {**obj["metadata"], "namespace": namespace}, "spec": {"groups": [kept]}}
    # An orphan: the garbage collector would delete a child of an owner that does not exist.
    orphan = {name: value for name, value in obj["metadata"].items() if name != "ownerReferences"}
    plane.create(PROMETHEUS_RULES, {**obj, "metadata": orphan})
    group = {"name": GROUP, "rules": rules_of(namespace, "new")}
    assert not stolen_token.denial(dry_run("PUT", PROMETHEUS_RULES, {**obj, "spec": {"groups": [kept, group]}}))
    changed = {**kept, "rules": []}
    denial = stolen_token.denial(dry_run("PUT", PROMETHEUS_RULES, {**obj, "spec": {"groups": [changed, group]}}))
    assert "spec.groups: " in denial
