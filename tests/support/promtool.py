"""Evaluates rules over the series of `support.alerting` with promtool."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from memcached_operator.memcached.alerts.caches import PREDICTED
from memcached_operator.memcached.alerts.rules import PAGE
from support import programs
from support.alerting import ALERTS, HEALTHY, Case

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
