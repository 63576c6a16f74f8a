"""Each check finds what it is for, says so, and finds nothing in the bundle of this tree."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from bundle.catalog import CATALOG
from bundle.checks import CHECKS, faults
from bundle.checks.kinds import defaulted, patched
from bundle.checks.subject import Finding, Subject
from bundle.errors import BundleError
from bundle.objects import yaml_of
from bundle.release import ANNOTATIONS, CSV_FILE, SCORECARD
from unit.bundle import broken, rows_catalogue, rows_contents, rows_running
from unit.bundle.broken import CONFIG, GOOD, Broken

ALL = (*rows_contents.ROWS, *rows_running.ROWS, *rows_catalogue.ROWS)
BY_NAME: dict[str, Callable[[Subject], Iterator[Finding]]] = {check.__name__: check for check in CHECKS}


def test_the_bundle_of_this_tree_has_no_faults() -> None:
    assert faults(GOOD, CONFIG) == []


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.check}: {case.told[0]}")
def test_what_is_broken_is_found_and_told(case: Broken) -> None:
    found = [str(fault) for fault in BY_NAME[case.check](Subject(case.files, CONFIG))]
    assert any(all(word in message for word in case.told) for message in found), found


def test_every_check_has_bundles_it_refuses() -> None:
    assert {case.check for case in ALL} == BY_NAME.keys()


def test_every_point_has_its_check() -> None:
    points = sorted(int(match.group(1)) for check in CHECKS if (match := re.match(r"(\d+): ", check.__doc__ or "")))
    # Some have two; 13, that `make bundle` changes nothing, is `generate --check`.
    assert points == [1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 8, 9, 10, 11, 12, 14, 15]


def test_a_circle_is_told_although_it_has_no_head() -> None:
    files = broken.catalog(
        lambda d: d[1].update(entries=[{"name": "a", "replaces": "b"}, {"name": "b", "replaces": "a"}])
    )
    assert any("one head" in str(fault) for fault in faults(files, CONFIG))


@pytest.mark.parametrize("path", [CSV_FILE, ANNOTATIONS, SCORECARD, CATALOG])
def test_what_is_no_yaml_is_one_sentence_with_the_file(path: str) -> None:
    with pytest.raises(BundleError, match=rf"{re.escape(path)} is not YAML"):
        faults(GOOD | {path: "a: [\n"}, CONFIG)


def test_a_bundle_without_its_heart_is_one_sentence() -> None:
    with pytest.raises(BundleError, match="make bundle"):
        faults({}, CONFIG)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (broken.csv(lambda c: c.pop("spec")), r"has no spec: run `make bundle`"),
        (broken.csv(lambda c: c["spec"].pop("install")), r"has no spec.install: run `make bundle`"),
        (
            broken.csv(lambda c: c["spec"].update(install={"spec": None})),
            r"has no spec.install.spec: run `make bundle`",
        ),
        (broken.deployment(lambda d: d.pop("spec")), r"the check of \w+ reads \(KeyError: 'spec'\)"),
        (GOOD | {ANNOTATIONS: "annotations: {}"}, r"names no channel: run `make bundle`"),
    ],
)
def test_what_has_not_the_form_of_a_bundle_is_one_sentence(files: dict[str, str], message: str) -> None:
    with pytest.raises(BundleError, match=message):
        faults(files, CONFIG)


def test_examples_are_judged_as_the_api_server_would_have_them_judged() -> None:
    """Defaults of the schema first, then what mutation writes: only this is validated."""
    schema: dict[str, Any] = {
        "properties": {"spec": {"default": {}, "properties": {"size": {"default": 1}, "ports": {"items": {}}}}}
    }
    assert defaulted({"spec": {"ports": [1]}}, schema) == {"spec": {"size": 1, "ports": [1]}}
    assert defaulted({}, schema) == {"spec": {"size": 1}}
    assert patched({"spec": {"a": 1}}, [{"op": "add", "path": "/spec/image", "value": "x"}]) == {
        "spec": {"a": 1, "image": "x"}
    }
    assert patched({}, [{"op": "add", "path": "/spec", "value": {}}]) == {"spec": {}}


def test_rules_of_another_configuration_are_a_fault() -> None:
    source = {path: text for path, text in CONFIG.items() if path != "config/webhook/manifests.yaml"}
    other = CONFIG["config/webhook/manifests.yaml"].replace("timeoutSeconds: 5", "timeoutSeconds: 3", 1)
    found = faults(GOOD, source | {"config/webhook/manifests.yaml": other})
    assert [fault.field for fault in found] == ["webhookdefinitions[mmemcached.cache.example.com].timeoutSeconds"]


def test_texts_of_several_lines_are_readable() -> None:
    text = yaml_of({"description": "one\ntwo\n"})
    assert text == "description: |\n  one\n  two\n"
    assert yaml.safe_load(text) == {"description": "one\ntwo\n"}
