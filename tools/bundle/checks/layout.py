"""Files, labels and size of the bundle."""

import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from typing import Any, Final

from bundle.checks.subject import Finding, Subject
from bundle.generate import SHIPPED
from bundle.objects import Object, mapping, name_of
from bundle.release import ANNOTATIONS, DOCKERFILE, FIXED_LABELS, MANIFESTS, PREFIX, SCORECARD, TEST_LABELS

KINDS: Final = frozenset({"ClusterServiceVersion", "CustomResourceDefinition", *SHIPPED})
"""What `make bundle` packs. OLM applies more, but a Secret or a binding in a bundle would give what nobody declared."""
_PLACES: Final = re.compile(rf"{MANIFESTS}/.+|{re.escape(ANNOTATIONS)}|{re.escape(SCORECARD)}")
_LARGEST: Final = 870 * 1024
"""Bytes of the compressed bundle from which the validators warn: 85 % of 1 MiB."""


def labels(subject: Subject) -> Iterator[Finding]:
    """1: annotations.yaml and the image's labels say the same, with the keys that every catalogue reads."""
    found = subject.packed.annotations()
    for key, value in (FIXED_LABELS | TEST_LABELS).items():
        if found.get(key) != value:
            yield Finding(ANNOTATIONS, key, found.get(key), f"must be {value!r}")
    channels = str(found.get(f"{PREFIX}.bundle.channels.v1") or "").split(",")
    if not all(channels):
        yield Finding(ANNOTATIONS, f"{PREFIX}.bundle.channels.v1", ",".join(channels), "must name a channel at least")
    for channel in filter(None, channels):
        if not channel.startswith(("candidate", "fast", "stable")):
            yield Finding(ANNOTATIONS, f"{PREFIX}.bundle.channels.v1", channel, "must begin candidate, fast or stable")
    default = found.get(f"{PREFIX}.bundle.channel.default.v1")
    if default not in channels:
        yield Finding(ANNOTATIONS, f"{PREFIX}.bundle.channel.default.v1", default, "must be one of the channels")
    for key in sorted({*found, *subject.labels}):
        if found.get(key) != subject.labels.get(key):
            remedy = f"must be the same as in {ANNOTATIONS}: {found.get(key)!r}"
            yield Finding(DOCKERFILE, f"LABEL {key}", subject.labels.get(key), remedy)


def objects(subject: Subject) -> Iterator[Finding]:
    """2: a flat directory, one object per file, only kinds that we pack, each once, nothing that OLM makes itself."""
    for path in subject.files:
        if path.startswith("bundle/") and not _PLACES.fullmatch(path):
            yield Finding(
                path, "path", path, "must go: dependencies and properties are refused by OLM v1, the rest unread"
            )
        if path.startswith(f"{MANIFESTS}/") and "/" in path.removeprefix(f"{MANIFESTS}/"):
            yield Finding(path, "path", path, f"must lie in {MANIFESTS} itself: OLM does not look into directories")
    for path, found in subject.manifests.items():
        content = [line for line in subject.files[path].splitlines() if line.strip() and not line.startswith("#")]
        if content[:1] == ["---"]:
            yield Finding(path, "first line", "---", "must go: OLM takes what is above it for the first document")
        if len(found) != 1:
            yield Finding(path, "documents", len(found), "must be one: OLM v0 reads the first only")
        for each in found:
            yield from _object(path, each, subject)
    every = [(each["kind"], name_of(each)) for found in subject.manifests.values() for each in found]
    for kind, name in sorted({each for each in every if every.count(each) > 1}):
        yield Finding(MANIFESTS, kind, name, "must stand once: OLM refuses a second one")
    if (count := len(subject.of("ClusterServiceVersion"))) != 1:
        yield Finding(MANIFESTS, "ClusterServiceVersions", count, "must be one")


def _object(path: str, each: Object, subject: Subject) -> Iterator[Finding]:
    meta = each["metadata"]
    if each["kind"] not in KINDS:
        yield Finding(
            path, "kind", each["kind"], f"must be one of {', '.join(sorted(KINDS))}: take it out of config/manifests"
        )
    if "namespace" in meta and each["kind"] != "ClusterServiceVersion":
        yield Finding(path, "metadata.namespace", meta["namespace"], "must be absent: the user chooses the namespace")
    accounts = {deployment["spec"]["template"]["spec"].get("serviceAccountName") for deployment in subject.deployments}
    if each["kind"] == "ServiceAccount" and name_of(each) in accounts:
        yield Finding(path, "metadata.name", name_of(each), "must go: OLM makes the accounts that the CSV names")
    services = {f"{webhook.get('deploymentName')}-service" for webhook in subject.webhooks}
    if each["kind"] == "Service" and name_of(each) in services:
        yield Finding(path, "metadata.name", name_of(each), "must have another name: OLM makes a Service of this one")


def budgets(subject: Subject) -> Iterator[Finding]:
    """7: a PodDisruptionBudget lets at least one pod go: else no node can be drained, and OLM refuses the bundle."""
    for path, each in subject.of("PodDisruptionBudget").items():
        spec = each.get("spec", {})
        for field, refused in (("maxUnavailable", (0, "0", "0%")), ("minAvailable", ("100%",))):
            if spec.get(field) in refused:
                yield Finding(
                    path, f"spec.{field}", spec[field], "must let a pod go: see config/manager and config/webhook"
                )


def size(subject: Subject) -> Iterator[Finding]:
    """11: compressed, the bundle is small enough for every store that OLM keeps it in."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, text in sorted(subject.files.items()):
            if path.startswith("bundle/"):
                member = tarfile.TarInfo(path)
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
    compressed = len(gzip.compress(packed.getvalue(), mtime=0))
    if compressed >= _LARGEST:
        yield Finding("bundle", "compressed bytes", compressed, f"must be less than {_LARGEST}: shorten texts or icon")


SCORECARD_TESTS: Final = {
    "basic-check-spec": {"suite": "basic", "test": "basic-check-spec-test"},
    **{
        f"olm-{name}": {"suite": "olm", "test": f"olm-{name}-test"}
        for name in (
            "bundle-validation", "crds-have-validation", "crds-have-resources", "spec-descriptors",
            "status-descriptors",
        )
    },
}  # fmt: skip


def scorecard(subject: Subject) -> Iterator[Finding]:
    """15: the scorecard runs its six tests, each under the labels that select it."""
    config = mapping(subject.files.get(SCORECARD, ""), SCORECARD)
    tests: list[dict[str, Any]] = [test for stage in config.get("stages", []) for test in stage["tests"]]
    found = {test["entrypoint"][-1]: test.get("labels") for test in tests}
    for name in sorted(SCORECARD_TESTS.keys() | found.keys()):
        if found.get(name) != SCORECARD_TESTS.get(name):
            remedy = f"must have the labels {SCORECARD_TESTS.get(name)}" if name in SCORECARD_TESTS else "is no test"
            yield Finding(SCORECARD, f"stages[*].tests of {name}", found.get(name), f"{remedy}: see config/scorecard")
