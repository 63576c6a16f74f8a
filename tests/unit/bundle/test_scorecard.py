"""The scorecard's six tests pass on the bundle of this tree, and each fails on one that is wrong for it."""

from typing import Any

import pytest

from bundle.checks.layout import SCORECARD_TESTS
from bundle.checks.subject import Subject
from bundle.scorecard import TESTS
from unit.bundle import broken
from unit.bundle.broken import CONFIG, CRD, GOOD
from unit.bundle.test_generate import run

WRONG: list[tuple[str, str, dict[str, str]]] = [
    ("basic-check-spec-test", "memcached-sample: spec", broken.example(lambda e: e[0].pop("spec"))),
    ("olm-bundle-validation-test", "PodMonitor", broken.file("p.yaml", kind="PodMonitor")),
    ("olm-crds-have-validation-test", "spec.colour", broken.example(lambda e: e[0]["spec"].update(colour="red"))),
    ("olm-crds-have-validation-test", "status.colour", broken.example(lambda e: e[0].update(status={"colour": "red"}))),
    ("olm-crds-have-validation-test", "spec.size", {path: text for path, text in GOOD.items() if path != CRD}),
    ("olm-crds-have-resources-test", "Memcached v1", broken.owned(lambda o: o[0].pop("resources"))),
    ("olm-spec-descriptors-test", "size", broken.owned(lambda o: o[0]["specDescriptors"].pop(0))),
    ("olm-status-descriptors-test", "colour", broken.example(lambda e: e[0].update(status={"colour": "red"}))),
]


def test_the_six_are_those_of_the_configuration() -> None:
    assert sorted(TESTS) == sorted(each["test"] for each in SCORECARD_TESTS.values())


@pytest.mark.parametrize("name", TESTS)
def test_the_bundle_passes(name: str) -> None:
    assert list(TESTS[name](Subject(GOOD, CONFIG))) == []


@pytest.mark.parametrize(("name", "told", "files"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_wrong_fails(name: str, told: str, files: dict[str, Any]) -> None:
    assert any(told in error for error in TESTS[name](Subject(files, CONFIG)))


def test_from_the_command_line() -> None:
    done = run("scorecard")
    assert done.stdout.splitlines() == [f"pass  {name}" for name in TESTS]
