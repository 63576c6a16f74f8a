"""Which specs the corner tests start, what counts as a problem, and what they do on a machine that cannot run all."""

import os
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from cluster.errors import ClusterError
from cluster.public.releases import GATE, VERSIONS
from corners import __main__ as corners
from corners import cases, machine, report, starts, table
from corners.cases import SAMPLE_FILES, Case, all_cases, disagreement
from corners.loads import MEBIBYTE
from corners.memory import Measurement
from corners.options import DENIED_ITEMS
from corners.server import Outcome
from corners.starts import Start
from corners.table import Entry
from integration.control_plane import ControlPlane
from memcached_operator.kube.client import ApiError

VALID, INVALID = {"cache": {"threads": 4}}, {"cache": {"threads": 65}}
MANY = Case("table/1.6.18/many", Start("1.6.18", {"cache": {"maxConnections": 65536}}))


def test_table_has_specs_on_both_sides_of_the_limits_and_the_webhook_gives_the_expected_results() -> None:
    errors = {entry.name: (entry.valid, table.errors(entry)) for entry in table.entries()}
    assert len(errors) == len(table.entries()), "names are unique"
    assert sum(not found for _, found in errors.values()) >= 200
    assert sum(bool(found) for _, found in errors.values()) >= 100
    assert {name: found for name, (valid, found) in errors.items() if valid is not None and valid == bool(found)} == {}


def test_sample_has_cases_of_the_oldest_and_the_newest_release_and_outcome_and_needs_few_open_files() -> None:
    sample = [case for case in all_cases() if case.in_gate]
    assert max(case.open_files for case in sample) <= SAMPLE_FILES
    assert {case.group for case in sample} == {
        f"{kind}/{version}" for kind in ("table", "denied", "memory") for version in GATE
    }
    outcomes = {DENIED_ITEMS[item] for item in cases.SAMPLE_DENIED}
    assert outcomes >= {(0, 0), ("runs", "runs"), (-11, -11)}


def test_every_denied_item_is_started_with_every_release() -> None:
    denied = [case.work for case in all_cases() if case.name.startswith("denied/")]
    found = {(each.version, each.spec["cache"]["extraArgs"][0]) for each in denied if isinstance(each, Start)}
    assert found == {(version, item) for version in VERSIONS for item in DENIED_ITEMS}


@pytest.mark.parametrize(("arguments", "code"), [([], 1), (["--allow-few-files"], 0)])
def test_specs_that_are_not_started_are_named_and_fail_the_run(
    arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(corners, "all_cases", lambda: [MANY, Case("admission/one", lambda _: "")])
    monkeypatch.setattr(corners, "raise_open_files", lambda: 20_000)
    assert corners.main(arguments) == code
    output = capsys.readouterr().out
    assert f"only 20000 files here and this limit cannot be raised:\n  {MANY.name}\n" in output
    assert "1 of 2 cases passed" in output


def unwritable(_: str) -> nullcontext[None]:
    raise ClusterError("read-only")


@pytest.mark.parametrize(
    ("environ", "user", "writable", "reason"),
    [
        ({}, 0, True, ""),
        ({"CLUSTER": "node"}, 0, True, ""),
        ({"CLUSTER": "control-plane"}, 0, True, "CLUSTER=control-plane means no containers: unset it"),
        ({}, 1000, True, "the corner tests need root on Linux"),
        ({}, 0, False, "read-only"),
    ],
)
def test_obstacles_to_the_sample(
    environ: dict[str, str], user: int, reason: str, monkeypatch: pytest.MonkeyPatch, *, writable: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(machine, "memory_group", nullcontext if writable else unwritable)
    found = machine.obstacle(environ)
    assert reason in found
    assert bool(reason) == bool(found)


class Plane(ControlPlane):
    """Accepts or denies everything."""

    denies: bool

    def would_create(self, resource: Any, obj: Any) -> Any:
        if self.denies:
            raise ApiError(422, "Invalid", "threads: too many")
        return obj


@pytest.mark.parametrize(
    ("entry", "denies", "problem"),
    [
        (Entry("any", VALID, True), False, ""),
        (Entry("any", INVALID, False), True, ""),
        (Entry("any", VALID, None), False, ""),
        (Entry("any", VALID, True), True, "the webhook says nothing, the API server says 'threads: too many'"),
        (Entry("any", INVALID, False), False, "the API server says nothing"),
        (Entry("any", VALID, False), False, "expected to be denied, but the API server says nothing"),
        (Entry("any", INVALID, True), True, "expected to be accepted, but the API server says 'threads: too many'"),
    ],
)
def test_disagreement(tmp_path: Any, entry: Entry, *, denies: bool, problem: str) -> None:
    plane = Plane(tmp_path, tmp_path)
    object.__setattr__(plane, "denies", denies)
    found = disagreement(plane, entry)
    assert problem in found
    assert bool(problem) == bool(found)


@pytest.mark.parametrize(
    ("expected", "found", "message"),
    [
        ("runs", "runs", ""),
        (71, 71, ""),
        ("runs", 71, "reason"),
        (71, "runs", "expected 71, found 'runs'"),
        ("silent", 1, "expected 'silent', found 1: reason"),
    ],
)
def test_unexpected_outcome_of_a_start_is_a_problem(expected: Outcome, found: Outcome, message: str) -> None:
    assert starts.problem(expected, found, "" if found == "runs" else "reason") == message


def test_later_measurement_replaces_the_earlier_one_and_the_table_shows_the_smaller_margin() -> None:
    peak, sockets, estimate, limit = (number * MEBIBYTE for number in (43, 1, 52, 128))
    first = Measurement("1.6.18", "memory=2Mi threads=1", "load", peak, sockets, estimate, limit, "")
    second = replace(first, version="1.6.38", peak=44 * MEBIBYTE, sockets=3 * MEBIBYTE)
    assert report.merged([replace(first, peak=1), second], [first]) == [first, second]
    row = "| `memory: 2Mi, threads: 1` | load | 43.0 | 44.0 | – | 3.0 | 52.0 | 8.0 | 128.0 |"
    assert report.table([first, second]).splitlines()[2:] == [row]
