"""The directory of a release: what it contains, its list of images and its checksums."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from release.errors import ReleaseError
from release.output import registry
from release.output.images import CHART, PARTS
from release.output.layouts import Layout, sha256
from release.output.signing import SIGNATURE, SUMS, Published

IMAGES: Final = "images"
LIST: Final = "images.txt"
PROVENANCE: Final = "provenance.intoto.json"
PREDICATE: Final = "provenance.predicate.json"
HUB: Final = "artifacthub-repo.yml"
"""The metadata of the chart's repository for Artifact Hub."""
BILL: Final = ".cdx.json"
"""The end of the name of each bill of materials."""
NOT_SUMMED: Final = frozenset({SUMS, SIGNATURE})


@dataclass(frozen=True)
class Artifacts:
    """The directory build/release/<version>/artifacts."""

    root: Path

    def layout(self, part: str) -> Layout:
        """The layout of an image."""
        return Layout(self.root / IMAGES / part)

    def write_json(self, name: str, content: Any) -> Path:
        """Write a JSON file; the same content gives the same bytes."""
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
        return file

    def write_list(self, names: Mapping[str, str]) -> None:
        """Write images.txt: each image that is built, and the chart, with tag and digest."""
        built = {part: name for part, name in sorted(names.items()) if self.layout(part).root.exists()}
        lines = [f"{name}@{self.layout(part).digest}" for part, name in built.items()]
        (self.root / LIST).write_text("\n".join([*lines, ""]))

    def names(self) -> dict[str, str]:
        """The images by part: name with tag. Raises ReleaseError if it is not built, or an image is another."""
        by_digest = {digest: name for name, digest in self._listed().items()}
        if not self._has_images:
            raise ReleaseError(f"{self.root} has no images: build the release (make release-build)")
        found = {folder.name: self.layout(folder.name).digest for folder in sorted((self.root / IMAGES).iterdir())}
        if other := sorted(part for part, digest in found.items() if digest not in by_digest):
            raise ReleaseError(f"not as released: the images of {', '.join(other)} are not those of {LIST}")
        return {part: by_digest[digest] for part, digest in found.items()}

    def _listed(self) -> dict[str, str]:
        """The digest of each image, by name with tag."""
        return {name: digest for name, _, digest in (line.partition("@") for line in self._lines(LIST))}

    def _lines(self, name: str) -> list[str]:
        file = self.root / name
        if not file.exists():
            raise ReleaseError(f"{file} is missing: build the release (make release), or download its files")
        return file.read_text().splitlines()

    def bill(self, part: str, architecture: str) -> str:
        """The file of an image's bill of materials. All files are in one directory, as those of a release on GitHub."""
        return f"{part}-{architecture}{BILL}"

    def published(self, host: str = "") -> list[Published]:
        """The images and the chart to publish; `host` replaces the registry of their names, for tests."""
        found: list[Published] = []
        for part, name in self.names().items():
            layout = self.layout(part)
            bills = {digest: self.root / self.bill(part, arch) for arch, digest in layout.platforms().items()}
            found.append(Published(layout.root, _at(name, host), layout.digest, bills if part in PARTS else {}))
        return found

    def released(self, host: str = "") -> list[Published]:
        """The same by the files alone: what users download has no images."""
        bills: dict[str, dict[str, Path]] = {}
        for file in sorted(self.root.glob(f"*{BILL}")):
            image = json.loads(file.read_text())["metadata"]["component"]
            bills.setdefault(image["name"], {})[f"sha256:{image['hashes'][0]['content']}"] = file
        return [
            Published(Path(), _at(name, host), digest, bills.get(name.rpartition(":")[0], {}))
            for name, digest in self._listed().items()
        ]

    def for_hub(self, published: Iterable[Published], scratch: Path) -> list[Published]:
        """The metadata of the chart's repository, written into a layout in `scratch`; empty without chart or metadata.

        Each release moves its tag.
        """
        chart = next((each for each in published if each.layout == self.layout(CHART).root), None)
        if not chart or not (self.root / HUB).exists():
            return []
        name = f"{chart.repository}:{registry.HUB_TAG}"
        layout = registry.hub((self.root / HUB).read_bytes()).write(scratch, name)
        return [Published(layout.root, name, layout.digest, {})]

    @property
    def _has_images(self) -> bool:
        return (self.root / IMAGES).exists()

    def files(self) -> list[Path]:
        """The files of a release that are not blobs of images, below the root."""
        found = [path.relative_to(self.root) for path in sorted(self.root.rglob("*")) if path.is_file()]
        return [path for path in found if path.parts[0] != IMAGES and path.name not in NOT_SUMMED]

    def sums(self) -> dict[str, str]:
        """The SHA-256 of each file, and that of each layout's index.json, which names everything in it."""
        tops = sorted(path.relative_to(self.root) for path in (self.root / IMAGES).glob("*/index.json"))
        return {path.as_posix(): sha256(self.root / path) for path in [*self.files(), *tops]}

    def write_sums(self) -> None:
        """Write SHA256SUMS, which `sha256sum --check` reads."""
        lines = [f"{digest}  {name}" for name, digest in self.sums().items()]
        (self.root / SUMS).write_text("\n".join([*lines, ""]))

    def check(self) -> None:
        """Raise ReleaseError unless all files are those of SHA256SUMS, and all blobs those of their digests.

        The images may be absent, as in what users download.
        """
        lines = (line.partition("  ") for line in self._lines(SUMS))
        wanted = {name: digest for digest, _, name in lines if self._has_images or not name.startswith(f"{IMAGES}/")}
        changed = sorted(name for name, digest in {**wanted, **self.sums()}.items() if wanted.get(name) != digest)
        gone = sorted(wanted.keys() - self.sums().keys())
        parts = sorted(self.names()) if self._has_images else []
        problems = [each for part in parts for each in self.layout(part).problems()]
        if found := [*changed, *gone, *problems]:
            raise ReleaseError(f"not as released: {', '.join(found)}. Do not use these files")


def _at(name: str, host: str) -> str:
    """The name of an image in another registry."""
    return f"{host}/{name.partition('/')[2]}" if host else name


def by_digest(names: Mapping[str, str], artifacts: Artifacts, part: str) -> str:
    """An image with its tag and its digest."""
    return f"{names[part]}@{artifacts.layout(part).digest}"
