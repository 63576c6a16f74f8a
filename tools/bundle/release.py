"""What tells one release from another, and the labels that follow from it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bundle.errors import BundleError

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = "memcached-operator"
PREFIX: Final = "operators.operatorframework.io"

MANIFESTS: Final = "bundle/manifests"
ANNOTATIONS: Final = "bundle/metadata/annotations.yaml"
SCORECARD: Final = "bundle/tests/scorecard/config.yaml"
DOCKERFILE: Final = "bundle.Dockerfile"
CSV_FILE: Final = f"{MANIFESTS}/{PACKAGE}.clusterserviceversion.yaml"


@dataclass(frozen=True)
class Release:
    """One release. Raises BundleError when the default channel is none of the channels.

    `replaces`: name of the ClusterServiceVersion before this one, `skips`: names of those an update may leave out,
    `skip_range`: versions it may come from, such as `>=0.1.0 <0.2.0`.
    """

    version: str
    channels: tuple[str, ...] = ("stable",)
    default_channel: str = ""
    replaces: str = ""
    skips: tuple[str, ...] = ()
    skip_range: str = ""

    def __post_init__(self) -> None:
        if not self.channels:
            raise BundleError("the bundle is in no channel: name one, such as CHANNELS=stable")
        if self.default_channel not in ("", *self.channels):
            raise BundleError(
                f"the default channel {self.default_channel!r} is none of {', '.join(self.channels)}: "
                "name it in CHANNELS too, or another as DEFAULT_CHANNEL"
            )

    @property
    def name(self) -> str:
        """Name of the ClusterServiceVersion."""
        return f"{PACKAGE}.v{self.version}"

    def labels(self) -> dict[str, str]:
        """What catalogues read of a bundle: annotations in the file, labels on the image."""
        return {
            f"{PREFIX}.bundle.mediatype.v1": "registry+v1",
            f"{PREFIX}.bundle.manifests.v1": "manifests/",
            f"{PREFIX}.bundle.metadata.v1": "metadata/",
            f"{PREFIX}.bundle.package.v1": PACKAGE,
            f"{PREFIX}.bundle.channels.v1": ",".join(self.channels),
            f"{PREFIX}.bundle.channel.default.v1": self.default_channel or self.channels[0],
        }


TEST_LABELS: Final = {
    f"{PREFIX}.test.mediatype.v1": "scorecard+v1",
    f"{PREFIX}.test.config.v1": "tests/scorecard/",
}


def annotations_yaml(release: Release) -> str:
    """metadata/annotations.yaml."""
    lines = ["annotations:", "  # Core bundle annotations.", *_pairs(release.labels())]
    return "\n".join([*lines, "", "  # Annotations for testing.", *_pairs(TEST_LABELS), ""])


def _pairs(labels: dict[str, str]) -> list[str]:
    return [f"  {key}: {value}" for key, value in labels.items()]


def dockerfile(release: Release) -> str:
    """bundle.Dockerfile: the image holds the three directories and nothing else."""
    lines = ["FROM scratch", "", "# Core bundle labels.", *_labels(release.labels())]
    lines += ["", "# Labels for testing.", *_labels(TEST_LABELS)]
    lines += ["", "# Copy files to locations specified by labels."]
    places = {MANIFESTS: "/manifests/", "bundle/metadata": "/metadata/", "bundle/tests/scorecard": "/tests/scorecard/"}
    return "\n".join([*lines, *(f"COPY {place} {target}" for place, target in places.items()), ""])


def _labels(labels: dict[str, str]) -> list[str]:
    return [f"LABEL {key}={value}" for key, value in labels.items()]


def project_version() -> str:
    """The version in pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
