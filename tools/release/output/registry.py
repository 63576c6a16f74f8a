"""Files in a registry: the Helm chart, and the repository's metadata for Artifact Hub, as OCI artifacts."""

import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from release.output.layouts import Layout, json_bytes

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CHART_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
CHART_CONTENT: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
"""Media types of charts: https://helm.sh/docs/topics/registries."""
HUB_CONFIG: Final = "application/vnd.cncf.artifacthub.config.v1+yaml"
HUB_CONTENT: Final = "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml"
HUB_TAG: Final = "artifacthub.io"
"""Media types and tag of the metadata: https://artifacthub.io/docs/topics/repositories/helm-charts."""
_LABEL: Final = "org.opencontainers.image"


@dataclass(frozen=True)
class Blob:
    """A part of an artifact."""

    media_type: str
    content: bytes


@dataclass(frozen=True)
class Artifact:
    """One file with a configuration, in the form of an image with one layer."""

    config: Blob
    content: Blob
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])

    def write(self, root: Path, name: str) -> Layout:
        """Write a layout with this artifact only; `name`: its reference. The same artifact has the same bytes."""
        layout = Layout(root)
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": layout.add(self.config.media_type, self.config.content),
            "layers": [layout.add(self.content.media_type, self.content.content)],
            "annotations": dict(self.annotations),
        }
        top = {**layout.add(MANIFEST, json_bytes(manifest)), "artifactType": self.config.media_type}
        (root / "oci-layout").write_bytes(json_bytes({"imageLayoutVersion": "1.0.0"}))
        layout.write_index(top, name)
        return layout


def chart(archive: bytes, epoch: int) -> Artifact:
    """The artifact that `helm push` makes of a packed chart. `epoch`: its date, in seconds since 1970."""
    described = _described(archive)
    annotations = {**described.get("annotations", {}), **dict(_annotations(described, epoch))}
    return Artifact(Blob(CHART_CONFIG, json_bytes(described)), Blob(CHART_CONTENT, archive), annotations)


def hub(metadata: bytes) -> Artifact:
    """The artifact in which Artifact Hub looks for the metadata of the chart's repository (artifacthub-repo.yml)."""
    return Artifact(Blob(HUB_CONFIG, b"{}"), Blob(HUB_CONTENT, metadata), {f"{_LABEL}.title": "artifacthub-repo.yml"})


def _described(archive: bytes) -> Mapping[str, Any]:
    """The content of Chart.yaml, which is directly below the archive's only folder."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        (name,) = (name for name in tar.getnames() if name.count("/") == 1 and name.endswith("/Chart.yaml"))
        stream = tar.extractfile(name)
        return yaml.safe_load(stream.read() if stream else b"")


def _annotations(described: Mapping[str, Any], epoch: int) -> Iterator[tuple[str, str]]:
    """Those that Helm derives from Chart.yaml."""
    yield f"{_LABEL}.title", described["name"]
    yield f"{_LABEL}.version", described["version"]
    yield f"{_LABEL}.description", described["description"]
    yield f"{_LABEL}.url", described["home"]
    yield f"{_LABEL}.source", described["sources"][0]
    yield f"{_LABEL}.authors", ", ".join(f"{each['name']} ({each['email']})" for each in described["maintainers"])
    yield f"{_LABEL}.created", datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
