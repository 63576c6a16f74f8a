"""The six tests of `operator-sdk scorecard`, which itself needs a registry for the pods they run in. Pure functions."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from bundle.checks import BUNDLE_CHECKS, found
from bundle.checks.kinds import schema_of, unknown_fields
from bundle.checks.subject import Subject
from memcached_api.values import nested_field

Example = dict[str, Any]


def basic_check_spec(subject: Subject) -> Iterator[str]:
    """Every example has a spec."""
    for each in subject.examples:
        if not isinstance(each.get("spec"), dict):
            yield f"{_said(each)}: spec does not exist"


def bundle_validation(subject: Subject) -> Iterator[str]:
    """All of our own checks of a bundle; `make bundle-validate` runs the real validators."""
    yield from (str(fault) for check in BUNDLE_CHECKS for fault in found(check, subject))


def crds_have_validation(subject: Subject) -> Iterator[str]:
    """Every field of every example's spec and status is in the schema of its version."""
    for each in subject.examples:
        schema = schema_of(subject, each).get("properties", {})
        for part in ("spec", "status"):
            unknown = unknown_fields(each.get(part, {}), schema.get(part, {"properties": {}}), part)
            yield from (f"{_said(each)}: no validation of {path}" for path, _ in unknown)


def crds_have_resources(subject: Subject) -> Iterator[str]:
    """Every owned kind lists what it makes."""
    for each in subject.owned:
        if not each.get("resources"):
            yield f"{each['kind']} {each['version']}: owned CRDs do not have resources specified"


def spec_descriptors(subject: Subject) -> Iterator[str]:
    """Every field that stands directly in an example's spec has a descriptor."""
    yield from _undescribed(subject, "spec")


def status_descriptors(subject: Subject) -> Iterator[str]:
    """The same of the status, where an example has one."""
    yield from _undescribed(subject, "status")


def _undescribed(subject: Subject, part: str) -> Iterator[str]:
    for each in subject.examples:
        version = each["apiVersion"].rpartition("/")[2]
        described = {
            entry["path"]
            for owned in subject.owned
            if (owned["kind"], owned["version"]) == (each["kind"], version)
            for entry in owned.get(f"{part}Descriptors", [])
        }
        for field in sorted(each.get(part, {}).keys() - described):
            yield f"{_said(each)}: {field} does not have a {part} descriptor"


def _said(example: Example) -> str:
    return f"{example.get('kind')} {nested_field(example, 'metadata', 'name')}"


TESTS: Final[dict[str, Callable[[Subject], Iterator[str]]]] = {
    "basic-check-spec-test": basic_check_spec,
    "olm-bundle-validation-test": bundle_validation,
    "olm-crds-have-validation-test": crds_have_validation,
    "olm-crds-have-resources-test": crds_have_resources,
    "olm-spec-descriptors-test": spec_descriptors,
    "olm-status-descriptors-test": status_descriptors,
}
