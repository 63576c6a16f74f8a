"""The provenance of a release: an in-toto statement of how its files and images were made.

https://slsa.dev/spec/v1.1/provenance
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"


@dataclass(frozen=True)
class Origin:
    """Where a release comes from.

    `repository`: the URL of the project. `commit`: its hash. `builder`: the URL of what built it. `bases`: base images.
    `inputs`: the SHA-256 of files that decide the result, by path. `tools`: versions of programs.
    """

    repository: str
    commit: str
    builder: str
    bases: tuple[str, ...]
    inputs: Mapping[str, str]
    tools: Mapping[str, str]


def subjects(images: Mapping[str, str], files: Mapping[str, str]) -> list[dict[str, Any]]:
    """What is stated: images by repository, with their digest, and files by name, with their SHA-256."""
    digests = {name: digest.removeprefix("sha256:") for name, digest in images.items()} | dict(files)
    return [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(digests.items())]


def predicate(version: str, epoch: int, origin: Origin) -> dict[str, Any]:
    """How the release was built. It has no time of the build, so that two builds state the same."""
    source = {"uri": f"git+{origin.repository}@refs/tags/v{version}", "digest": {"gitCommit": origin.commit}}
    files = [{"uri": f"file:{path}", "digest": {"sha256": digest}} for path, digest in sorted(origin.inputs.items())]
    return {
        "buildDefinition": {
            "buildType": f"{origin.repository}/blob/v{version}/docs/releasing.md",
            "externalParameters": {"version": version, "source": source["uri"]},
            "internalParameters": {"SOURCE_DATE_EPOCH": epoch, "tools": dict(sorted(origin.tools.items()))},
            "resolvedDependencies": [source, *map(_base, origin.bases), *files],
        },
        "runDetails": {"builder": {"id": origin.builder}},
    }


def _base(image: str) -> dict[str, Any]:
    name, _, digest = image.partition("@")
    kind, _, value = digest.partition(":")
    return {"uri": f"docker:{name}", **({"digest": {kind: value}} if value else {})}


def statement(subject: list[dict[str, Any]], made: Mapping[str, Any]) -> dict[str, Any]:
    """The whole statement."""
    return {"_type": STATEMENT, "subject": subject, "predicateType": PREDICATE, "predicate": made}
