"""The files of the chart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bundle.release import PACKAGE, Release
from chart.metadata import chart_yaml
from chart.objects.documents import templates
from chart.settings import settings
from chart.sources import Sources
from chart.values import blocks, schema_json, values_yaml
from pages.blocks import filled
from project.generated import packed

FOLDER: Final = "charts/memcached-operator"
WRITTEN: Final = Path(__file__).with_name("files")
"""The manually written files of the chart. README.md has a generated block."""
PAGE: Final = "docs/helm.md"
"""The page of the docs with the same generated block."""


def chart_files(sources: Sources, release: Release) -> dict[str, str]:
    """All files of the chart, as path below its folder → text. Raises BundleError."""
    found = settings(sources, release.images, release.version)
    written = {path.relative_to(WRITTEN).as_posix(): path.read_text(encoding="utf-8") for path in _written()}
    written["README.md"] = filled(written["README.md"], blocks(found))
    return {
        **written,
        **{f"templates/{name}": text for name, text in templates(sources).items()},
        "Chart.yaml": chart_yaml(sources, release.version, release.images),
        "values.schema.json": schema_json(found),
        "values.yaml": values_yaml(found),
    }


def _written() -> list[Path]:
    return sorted(path for path in WRITTEN.rglob("*") if path.is_file())


def page(text: str, sources: Sources, release: Release) -> str:
    """The page of the docs with the table of values."""
    return filled(text, blocks(settings(sources, release.images, release.version)))


def archive(files: Mapping[str, str]) -> bytes:
    """The chart as `helm package` packs it, with Chart.yaml first. `files`: path below the chart's folder → text."""
    paths = sorted(files, key=lambda path: (path != "Chart.yaml", path))
    return packed((f"{PACKAGE}/{path}", files[path].encode(), 0o644) for path in paths)
