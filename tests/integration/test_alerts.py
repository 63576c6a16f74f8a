"""Each alert fires and stays silent, in the rules of a cache, in the plain file, and with both."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from alerts import files
from memcached_operator.memcached.alerts.caches import GROUP, PREDICTED, rules_of
from memcached_operator.memcached.alerts.rules import PAGE
from support import alerting, alerting_extstore, alerting_proxies, alerting_scrapes, programs
from support.alerting import ALERTS, HEALTHY, Case
from support.prometheus import promtool

GROUPS: Final = ("memcached", "memcached-operator", "memcached-proxies")
"""The groups with the markers are first. In Prometheus, a marker may exist an evaluation later, before alerts fire."""


def check(program: Path, folder: Path, rules: Mapping[str, Any], cases: Mapping[str, Case]) -> str:
    """The complaints of promtool; empty if exactly the alerts of each case fire. `rules`: content of files by name."""
    for name, content in rules.items():
        (folder / name).write_text(yaml.safe_dump(content))
    problems = ""
    for interval in {case.interval for case in cases.values()}:
        found = {name: case for name, case in cases.items() if case.interval == interval}
        content = {
            "rule_files": list(rules),
            "group_eval_order": [*GROUPS, *(f"{name}-plain" for name in GROUPS)],
            "evaluation_interval": f"{interval}m",
            "tests": [_test(name, case) for name, case in found.items()],
        }
        (folder / "tests.yaml").write_text(yaml.safe_dump(content))
        words = [program, "test", "rules", "tests.yaml"]
        done = programs.run(words, cwd=folder)
        problems += f"{done.stdout}{done.stderr}" if done.returncode else ""
    return problems


def _test(name: str, case: Case) -> dict[str, Any]:
    counts = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in case.firing]
    scrapes = case.scrapes or case.interval
    healthy = {name: f"{value}+0x{case.minutes // scrapes}" for name, value in HEALTHY.items()}
    firing = 'count by (alertname) (ALERTS{alertstate="firing"})'
    steady = range(case.minutes - case.steady, case.minutes + 1, case.interval)
    predictions = [
        {"labels": f'{PREDICTED}{{namespace="shop",cache="sessions",memory="{memory}"}}', "value": ratio}
        for memory, ratio in case.recorded.items()
    ]
    recorded = [{"expr": PREDICTED, "eval_time": f"{case.minutes}m", "exp_samples": predictions}] if predictions else []
    return {
        "name": name,
        "interval": f"{scrapes}m",
        "input_series": [{"series": each, "values": values} for each, values in {**healthy, **case.series}.items()],
        "promql_expr_test": [
            *({"expr": firing, "eval_time": f"{minute}m", "exp_samples": counts} for minute in steady),
            *recorded,
        ],
        "alert_rule_test": [
            {"eval_time": f"{case.minutes}m", "alertname": alert, "exp_alerts": [_expected(alert, *found)]}
            for alert, found in case.firing.items()
            if not case.scrapes  # the values in descriptions are averages of the samples
        ],
    }


def _expected(name: str, labels: Mapping[str, str], description: str) -> dict[str, Any]:
    alert = ALERTS[name]
    url = f"{PAGE}#{name.lower()}"
    return {
        "exp_labels": {**labels, "severity": alert.severity.value},
        "exp_annotations": {"summary": alert.summary, "description": description, "runbook_url": url},
    }


OF_THE_OBJECTS: Final = "the rules of the cache and of the operator"
OWN: Final = {"groups": [files.group(GROUP, rules_of("shop", "sessions"))]}
OPERATOR: Final = files.prometheus_rule()["spec"]
FIRING: Final[Mapping[str, Case]] = {**alerting.FIRING, **alerting_extstore.FIRING, **alerting_proxies.FIRING}
SILENT: Final[Mapping[str, Case]] = {**alerting.SILENT, **alerting_extstore.SILENT, **alerting_proxies.SILENT}
RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    OF_THE_OBJECTS: {"own.yaml": OWN, "operator.yaml": OPERATOR},
    "the plain file": {"plain.yaml": files.plain()},
    "all of them": {"own.yaml": OWN, "operator.yaml": OPERATOR, "plain.yaml": files.plain()},
}
"""The content of files with rules by name. With all of them, an alert that fired twice would be a duplicate sample."""


WITH_THE_FILE: Final = [name for name in RULES if name != OF_THE_OBJECTS]
"""Nightly, because each takes a minute. The file has the same expressions: tests/unit/alerts."""


@pytest.fixture(scope="module")
def program() -> Path:
    """promtool; skips the test where it is not installed, and root cannot download Debian's."""
    found = promtool()
    if found is None:
        pytest.skip("promtool is missing: install Prometheus")
    return found


@pytest.mark.parametrize(
    "name", [OF_THE_OBJECTS, *(pytest.param(each, marks=pytest.mark.nightly) for each in WITH_THE_FILE)]
)
def test_alerts_fire_once_and_stay_silent(program: Path, tmp_path: Path, name: str) -> None:
    rules = RULES[name]
    cases: dict[str, Case] = {**FIRING, **SILENT, **(alerting_scrapes.SLOW if name == OF_THE_OBJECTS else {})}
    found = {each: case for each, case in cases.items() if "own.yaml" in rules or not case.alone}
    assert check(program, tmp_path, rules, found) == ""


def test_cases_include_every_alert() -> None:
    assert {name for case in FIRING.values() for name in case.firing} == ALERTS.keys()
