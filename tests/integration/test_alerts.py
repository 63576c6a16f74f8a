"""Each alert fires and stays silent, in the rules of a cache, in the plain file, and with both."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from alerts import files
from memcached_operator.memcached.alerts.caches import GROUP, rules_of
from support import alerting, alerting_proxies, alerting_scrapes
from support.alerting import ALERTS, Case
from support.prometheus import promtool
from support.promtool import check

OF_THE_OBJECTS: Final = "the rules of the cache and of the operator"
OWN: Final = {"groups": [files.group(GROUP, rules_of("shop", "sessions"))]}
OPERATOR: Final = files.prometheus_rule()["spec"]
FIRING: Final[Mapping[str, Case]] = {**alerting.FIRING, **alerting_proxies.FIRING}
SILENT: Final[Mapping[str, Case]] = {**alerting.SILENT, **alerting_proxies.SILENT}
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
