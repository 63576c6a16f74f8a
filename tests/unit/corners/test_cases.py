"""Which cases run, and what the corner tests do on a machine that cannot run all of them; and admission of a spec."""

import os
import resource
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import ClusterError
from corners import __main__ as corners
from corners import cases, machine, programs, server
from corners.cases import SAMPLE_FILES, Case, all_cases, disagreement
from corners.options import DENIED_ITEMS
from corners.programs import VERSIONS
from corners.starts import Start
from corners.table import Entry
from integration.control_plane import ControlPlane
from memcached_operator.kube.client import ApiError

VALID, INVALID = {"cache": {"threads": 4}}, {"cache": {"threads": 65}}
MANY = Case("table/1.6.18/many", Start("1.6.18", {"cache": {"maxConnections": 65536}}))


def test_names_are_unique() -> None:
    names = [case.name for case in all_cases()]
    assert len({*names}) == len(names)


def test_sample_needs_few_open_files_and_has_cases_of_every_release() -> None:
    sample = [case for case in all_cases() if case.sample]
    assert max(case.open_files for case in sample) <= SAMPLE_FILES
    assert {case.group for case in sample} == {
        f"{kind}/{version}" for kind in ("table", "denied", "memory") for version in VERSIONS
    }


def test_every_denied_item_is_started_with_every_release() -> None:
    starts = [case.work for case in all_cases() if case.name.startswith("denied/")]
    found = {(each.version, each.spec["cache"]["extraArgs"][0]) for each in starts if isinstance(each, Start)}
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


@pytest.mark.parametrize(("denied", "expected"), [(False, 50_000), (True, 20_000)])
def test_the_limit_of_open_files_is_raised_as_far_as_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, denied: bool, expected: int
) -> None:
    limits = [1024, 20_000]

    def setrlimit(_: int, wanted: tuple[int, int]) -> None:
        if denied and wanted[1] > limits[1]:
            raise ValueError("not allowed to raise maximum limit")
        limits[:] = wanted

    (tmp_path / "nr_open").write_text("50000\n")
    monkeypatch.setattr(server, "NR_OPEN", tmp_path / "nr_open")

    def getrlimit(_: int) -> tuple[int, int]:
        return limits[0], limits[1]

    monkeypatch.setattr(resource, "getrlimit", getrlimit)
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    assert server.raise_open_files() == expected
    assert limits == [expected, expected]
    assert server.open_files_limits() == (1024, expected)


def test_without_root_the_run_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match="sudo make test-corners"):
        machine.require()


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


def test_missing_programs_are_installed_if_the_machine_can_run_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[str] = []

    def find(_: str) -> None:
        return None

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine, "find", find)
    monkeypatch.setattr(machine, "install", installed.extend)
    monkeypatch.setattr(machine, "memory_group", unwritable)
    with pytest.raises(ClusterError, match="read-only"):
        machine.require()
    assert installed == []
    monkeypatch.setattr(machine, "memory_group", nullcontext)
    machine.require()
    assert installed == ["iproute2"]


def test_sample_has_denied_items_that_exit_run_and_crash() -> None:
    outcomes = {DENIED_ITEMS[item] for item in cases.SAMPLE_DENIED}
    assert outcomes >= {(0, 0), ("runs", "runs"), (-11, -11)}
    assert ("silent", "silent") not in outcomes


def test_memcached_is_prepared_once_and_only_for_cases_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[set[str]] = []

    def prepare(_: object, versions: set[str]) -> None:
        prepared.append(versions)

    monkeypatch.setattr(cases.Session, "prepare", prepare)
    needless = [Case("admission/one", lambda _: "")]
    needing = [Case(f"table/{version}/one", lambda _: "") for version in VERSIONS]
    monkeypatch.setattr(corners, "all_cases", lambda: needless)
    assert corners.main([]) == 0
    assert prepared == []
    monkeypatch.setattr(corners, "all_cases", lambda: [*needless, *needing])
    assert corners.main([]) == 0
    assert prepared == [{*VERSIONS}]


def test_problems_of_a_group_have_the_order_of_its_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_order(starts: Sequence[Start], _: object) -> list[str]:
        return ["first", "second"][: len(starts)]

    monkeypatch.setattr(cases.starts, "problems", in_order)
    with cases.ExitStack() as stack:
        session = cases.Session(stack)
        assert list(cases.problems(session, [MANY, MANY])) == ["first", "second"]
        assert list(cases.problems(session, [Case("admission/one", lambda _: "third")])) == ["third"]


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


def test_releases_are_unpacked_in_different_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: set[Path] = set()

    def run(words: Sequence[str | Path], **_: object) -> str:
        found.add(Path(words[-1]))
        raise ClusterError("interrupted")

    monkeypatch.setattr(programs, "install", list)
    monkeypatch.setattr(programs, "run", run)
    for version in VERSIONS:
        with pytest.raises(ClusterError):
            programs.create(version, tmp_path / f"{version}-digest")
    assert len(found) == len(VERSIONS)
    assert list(tmp_path.iterdir()) == []
