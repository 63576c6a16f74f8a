"""The data of a release, and the labels generated from it."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bundle.errors import BundleError

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = "memcached-operator"
PREFIX: Final = "operators.operatorframework.io"

MANIFESTS: Final = "bundle/manifests"
ANNOTATIONS: Final = "bundle/metadata/annotations.yaml"
SCORECARD: Final = "bundle/tests/scorecard/config.yaml"
DOCKERFILE: Final = "bundle.Dockerfile"
CSV_FILE: Final = f"{MANIFESTS}/{PACKAGE}.clusterserviceversion.yaml"


IMAGE_BASE: Final = f"localhost/{PACKAGE}/{PACKAGE}"
"""The operator's default image without tag: a local one."""

DEFAULT_CHANNEL: Final = f"{PREFIX}.bundle.channel.default.v1"
"""The label with the channel of a Subscription that names none."""

OPENSHIFT_LABEL: Final = "com.redhat.openshift.versions"
"""The versions of OpenShift in whose catalogs a bundle is: this one and newer ones."""

FIXED_LABELS: Final = {
    f"{PREFIX}.bundle.mediatype.v1": "registry+v1",
    f"{PREFIX}.bundle.manifests.v1": "manifests/",
    f"{PREFIX}.bundle.metadata.v1": "metadata/",
    f"{PREFIX}.bundle.package.v1": PACKAGE,
    OPENSHIFT_LABEL: "v4.17",  # the first with Kubernetes 1.30, minKubeVersion
}
"""The labels that are the same in every release."""


_DAY: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")


@dataclass(frozen=True)
class Release:
    """One release. Raises BundleError for an invalid date, no channel, an unknown default channel, or only one image.

    `date`: as `2006-01-02`. `replaces`: name of the ClusterServiceVersion that upgrades to this one. `skips`: names of
    those that an upgrade leaves out. `skip_range`: further versions that upgrade to this one, such as `>=0.1.0 <0.2.0`.
    `image`, `agent_image`: those of the operator and the agent; both empty: the local ones, tagged with the version.
    """

    version: str
    date: str
    channels: tuple[str, ...] = ("stable",)
    default_channel: str = ""
    replaces: str = ""
    skips: tuple[str, ...] = ()
    skip_range: str = ""
    image: str = ""
    agent_image: str = ""

    def __post_init__(self) -> None:
        if not _DAY.fullmatch(self.date):
            raise BundleError(f"the date {self.date!r} of release {self.version} must be a date such as 2006-01-02")
        if not self.channels:
            raise BundleError("the bundle has no channel: set one, such as CHANNELS=stable")
        if self.default_channel not in ("", *self.channels):
            raise BundleError(
                f"the default channel {self.default_channel!r} is not one of {', '.join(self.channels)}: "
                "add it to CHANNELS, or set another DEFAULT_CHANNEL"
            )
        if bool(self.image) != bool(self.agent_image):
            raise BundleError(
                f"release {self.version} names only one image: set `image` and `agent-image`, or IMG and AGENT_IMG"
            )

    @property
    def name(self) -> str:
        """Name of the ClusterServiceVersion."""
        return f"{PACKAGE}.v{self.version}"

    @property
    def images(self) -> tuple[str, str]:
        """The images of the operator and of the agent in the bundle."""
        if self.image:
            return self.image, self.agent_image
        return f"{IMAGE_BASE}:{self.version}", f"{IMAGE_BASE}-agent:{self.version}"

    def labels(self) -> dict[str, str]:
        """The bundle's metadata for catalogs: annotations in the file, labels on the image."""
        return {
            **FIXED_LABELS,
            f"{PREFIX}.bundle.channels.v1": ",".join(self.channels),
            DEFAULT_CHANNEL: self.default_channel or self.channels[0],
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
    """bundle.Dockerfile: the image contains only the three directories."""
    lines = ["FROM scratch", "", "# Core bundle labels.", *_labels(release.labels())]
    lines += ["", "# Labels for testing.", *_labels(TEST_LABELS)]
    lines += ["", "# Copy files to locations specified by labels."]
    places = {MANIFESTS: "/manifests/", "bundle/metadata": "/metadata/", "bundle/tests/scorecard": "/tests/scorecard/"}
    return "\n".join([*lines, *(f"COPY {place} {target}" for place, target in places.items()), ""])


def _labels(labels: dict[str, str]) -> list[str]:
    return [f"LABEL {key}={value}" for key, value in labels.items()]


def project_version() -> str:
    """The version in pyproject.toml."""
    return _project()["project"]["version"]


def released(version: str, date: str = "") -> Release:
    """The release in pyproject.toml; for an unknown version, one with this date and defaults.

    Raises BundleError for an unknown version without date, and for a table with unknown keys or wrong types.
    """
    tables = _project()["tool"][PACKAGE]["releases"]
    place = f'[tool.{PACKAGE}.releases."{version}"] of pyproject.toml'
    if version not in tables:
        if date:
            return Release(version, date)
        raise BundleError(f"release {version} has no date: write {place}, or set DATE=2006-01-02")
    table: dict[str, Any] = {"date": date} | tables[version]
    if unknown := sorted(table.keys() - _KEYS.keys()):
        raise BundleError(f"{place} has {', '.join(unknown)}: known are {', '.join(sorted(_KEYS))}")
    for key, value in table.items():
        if not isinstance(value, _KEYS[key]):
            raise BundleError(f"{place}: {key}: {value!r} must be a {_KEYS[key].__name__}")
    words: dict[str, Any] = {
        key.replace("-", "_"): tuple(value) if _KEYS[key] is list else value for key, value in table.items()
    }
    return Release(version, **words)


_KEYS: Final[dict[str, type]] = {
    "date": str, "channels": list, "default-channel": str, "replaces": str, "skips": list, "skip-range": str,
    "image": str, "agent-image": str,
}  # fmt: skip


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
