"""Each alert has a section in docs/alerts.md and a bounded text, and each section has an alert."""

import re
from typing import Final

import pytest
import yaml

from alerts import files, operators, proxies
from memcached_operator.app import LEASE_NAME
from memcached_operator.memcached.alerts import caches
from memcached_operator.memcached.alerts.rules import PAGE, Alert
from unit.config.rendered import ROOT

ALERTS: Final = (*caches.ALERTS, *proxies.ALERTS, *operators.ALERTS)
REPOSITORY: Final = ROOT / "config/manifests/bases/memcached-operator.clusterserviceversion.yaml"
PAGE_TEXT: Final = (ROOT / "docs/alerts.md").read_text()
SECTIONS: Final[dict[str, str]] = dict(re.findall(r"(?ms)^### (\w+)\n(.*?)(?=^##|\Z)", PAGE_TEXT))
RECORDED: Final = re.compile(r"[a-z_]+:[a-z_0-9:]+|memcached_\w+_own_rules")
METRIC: Final = re.compile(r"\b(?:memcached|workqueue|leader|controller_runtime|certwatcher)_\w+")
MAX_DESCRIPTION: Final = 120


def test_each_alert_has_its_section_and_each_section_its_alert() -> None:
    assert list(SECTIONS) == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_section_has_the_severity_the_meaning_a_check_and_a_remedy(alert: Alert) -> None:
    section = SECTIONS[alert.name]
    assert section.strip().startswith(alert.severity.value.title())
    assert [word for word in ("Meaning", "Check", "Remedy") if f"**{word}.**" in section] == [
        "Meaning",
        "Check",
        "Remedy",
    ]


def test_runbooks_are_pages_of_the_project() -> None:
    annotations = yaml.safe_load(REPOSITORY.read_text())["metadata"]["annotations"]
    assert f"{annotations['repository']}/docs/alerts.md" == PAGE


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_texts_are_short(alert: Alert) -> None:
    assert 0 < len(alert.summary) <= 70
    assert 0 < len(alert.description) <= MAX_DESCRIPTION + 60  # with templates


def test_documented_metrics_are_used() -> None:
    """Of caches and of the operator, each metric of an expression is in the docs or in the exporter's reference."""
    pages = ("docs/monitoring.md", "docs/operating.md", "tests/unit/agent/exporter/metrics.txt")
    known = " ".join((ROOT / page).read_text() for page in pages)
    used = {name for alert in ALERTS for name in METRIC.findall(RECORDED.sub("", f"{alert.expr} {alert.alone}"))}
    assert len(used) > 20
    assert {name for name in used if not is_known(name, known)} == set()


def is_known(name: str, known: str) -> bool:
    """Whether a text has a metric; the docs shorten the names of some: `…_errors_total`."""
    return name in known or any(f"…{name[start:]}`" in known for start in range(len(name)) if name[start] == "_")


def test_the_lease_is_that_of_the_controllers() -> None:
    assert operators.LEASE == LEASE_NAME


def test_the_rules_of_one_cache_name_it_everywhere() -> None:
    rules = caches.rules_of("shop", "sessions")
    assert rules[0] == {
        "record": caches.OWN_RULES,
        "expr": "vector(1)",
        "labels": {"namespace": "shop", "cache": "sessions"},
    }
    texts = [rule["expr"] for rule in rules[1:]]
    assert all('namespace="shop",cache="sessions"' in text and "$S" not in text for text in texts)
    assert all(text.count("{") == text.count('namespace="shop",cache="sessions"') for text in texts)


def test_the_alerts_of_the_operator_use_no_series_of_caches() -> None:
    """Their containers can have any image, and report any series."""
    rules = [
        rule
        for group in (*files.prometheus_rule()["spec"]["groups"], *files.plain()["groups"])
        for rule in group["rules"]
    ]
    texts = [rule["expr"] for rule in rules if rule.get("alert", "").startswith("MemcachedOperator")]
    matchers = [found for text in texts for found in re.findall(rf"{METRIC.pattern}(.{{60}}|.*)", text)]
    assert len(matchers) > 2 * len(operators.ALERTS)
    assert all(re.match(r'{[^}]*cache=""}', found) for found in matchers)


def test_the_alerts_of_proxies_use_the_series_of_the_controller_and_of_their_own_agents() -> None:
    found = [match for alert in proxies.ALERTS for match in re.findall(rf"({METRIC.pattern}){{([^}}]*)}}", alert.expr)]
    assert {(name.split("_")[1], matcher) for name, matcher in found} == {
        ("operator", 'cache=""'),
        ("agent", 'cache!=""'),
    }


def test_the_plain_file_leaves_out_what_has_rules_of_its_own() -> None:
    rules = {group["name"]: group["rules"] for group in files.plain()["groups"]}
    ends = {"memcached-plain": "unless on (namespace, cache) memcached_cache_own_rules"}
    ends |= dict.fromkeys(
        ("memcached-operator-plain", "memcached-proxies-plain"), 'unless on () memcached_operator_own_rules{cache=""}'
    )
    assert rules.keys() == ends.keys()
    for name, found in rules.items():
        assert all(rule["expr"].startswith("(") and rule["expr"].endswith(ends[name]) for rule in found)
