"""The CEL rules of our CRDs cost at most half of the budget of the oldest supported API server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.public.programs import OLDEST_FAMILY, directory, ensure_built
from integration.control_plane import CRD_FILES
from support import programs

pytestmark = pytest.mark.nightly  # it builds a program of the oldest Kubernetes

PROGRAM = "crd-costs"
MIN_MARGIN = 2
"""Minimum ratio of the budget to the cost of every rule and CRD, as a reserve for rules of later releases."""
Report = dict[str, Any]


@pytest.fixture(scope="module")
def report() -> Report:
    """The cost estimates and limits of the oldest supported API server."""
    ensure_built(OLDEST_FAMILY, [PROGRAM])
    command = [directory(OLDEST_FAMILY) / PROGRAM, *CRD_FILES]
    return json.loads(programs.output(command))


def expressions(report: Report) -> Iterator[tuple[str, int]]:
    """Every rule and messageExpression with its cost."""
    for schema in report["schemas"]:
        for each in schema["expressions"]:
            yield f"{schema['definition']} {schema['version']} {each['path'] or '(root)'} {each['text']}", each["cost"]


def test_every_rule_fits_its_budget_twice(report: Report) -> None:
    """Print the margin of each rule, the smallest first: `make test-integration ARGS="-rP -k fits_its_budget"`."""
    margins = {text: report["expressionLimit"] / max(cost, 1) for text, cost in expressions(report)}
    for text, margin in sorted(margins.items(), key=lambda item: item[1]):
        print(f"{margin:12,.1f} × {text}")  # noqa: T201
    assert {text: margin for text, margin in margins.items() if margin < MIN_MARGIN} == {}


def test_every_crd_fits_its_budget_twice(report: Report) -> None:
    schemas = report["schemas"]
    margins = {f"{each['definition']} {each['version']}": report["totalLimit"] / each["total"] for each in schemas}
    for name, margin in margins.items():
        print(f"{margin:12,.1f} × {name}")  # noqa: T201
    assert len({each["definition"] for each in schemas}) == len(CRD_FILES)
    assert min(margins.values()) >= MIN_MARGIN


def test_every_rule_has_an_estimate(report: Report) -> None:
    written = sum(path.read_text().count("- rule: ") for path in CRD_FILES)
    messages = sum(path.read_text().count("messageExpression: ") for path in CRD_FILES)
    assert len(list(expressions(report))) == written + messages > 0
