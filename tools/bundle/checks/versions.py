"""Names and versions."""

import re
from collections.abc import Iterator
from typing import Final

from bundle.checks.subject import MAX_NAME_LENGTH, Finding, Subject, of_csv
from bundle.release import PACKAGE
from bundle.service_version import SKIP_RANGE

SEMVER: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_RANGE: Final = re.compile(r"([<>=!]{0,2} ?\d+\.\d+\.\d+\S*)( (\|\| )?[<>=!]{0,2} ?\d+\.\d+\.\d+\S*)*")


def versions(subject: Subject) -> Iterator[Finding]:
    """3: the name tells package and version, and what it updates is another release."""
    version, name = str(subject.spec.get("version", "")), subject.csv["metadata"]["name"]
    if not SEMVER.fullmatch(version):
        yield of_csv("spec.version", version, "must be a semantic version such as 0.1.0")
    if name != f"{PACKAGE}.v{version}":
        yield of_csv("metadata.name", name, f"must be {PACKAGE}.v{version}")
    if len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        yield of_csv("metadata.name", name, f"must be a DNS name of at most {MAX_NAME_LENGTH} characters")
    if not re.fullmatch(r"\d+\.\d+\.\d+", str(subject.spec.get("minKubeVersion", ""))):
        yield of_csv("spec.minKubeVersion", subject.spec.get("minKubeVersion"), "must have three numbers: 1.30.0")
    skip_range = subject.annotations.get(SKIP_RANGE)
    if skip_range is not None and not _RANGE.fullmatch(skip_range):
        yield of_csv(f"metadata.annotations[{SKIP_RANGE}]", skip_range, "must be a range such as '>=0.1.0 <0.2.0'")
    for field, before in [("spec.replaces", subject.spec.get("replaces")), *_skips(subject)]:
        if before is not None and (before == name or not before.startswith(f"{PACKAGE}.v")):
            yield of_csv(field, before, f"must be another release, such as {PACKAGE}.v0.1.0")


def _skips(subject: Subject) -> list[tuple[str, str]]:
    return [("spec.skips", each) for each in subject.spec.get("skips", [])]
