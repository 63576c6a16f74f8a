"""The generator of the chart: changes and images. tests/chart compares each variant with config/."""

import pytest

from bundle.objects import mapping
from bundle.release import Release
from chart.generate import chart_files
from chart.metadata import changes
from chart.sources import Sources
from chart.sources import rendered as rendered_sources
from release.errors import ReleaseError
from unit.config.rendered import kubectl


@pytest.fixture(scope="module")
def sources() -> Sources:
    """What kustomize renders."""
    if not kubectl():
        pytest.skip("kubectl is missing: run `make cluster` to build it")
    return rendered_sources()


CHANGELOG = """\
## [Unreleased]

### Added

- Later.

## [1.2.0] - 2030-01-02

### Added

#### Caches

- **Fields:** a `field`, see [the page](docs/a.md), in
  two lines.

#### Pages

- Another.

### Security

- A fix.

[Unreleased]: https://example.com
"""


def test_changes_of_a_version_are_plain_text() -> None:
    assert list(changes(CHANGELOG, "1.2.0")) == [
        {"kind": "added", "description": "Fields: a `field`, see the page, in two lines."},
        {"kind": "added", "description": "Another."},
        {"kind": "security", "description": "A fix."},
    ]
    with pytest.raises(ReleaseError, match=r"CHANGELOG.md has no section \[1.3.0\]"):
        list(changes(CHANGELOG, "1.3.0"))


def test_images_of_a_release_are_the_defaults(sources: Sources) -> None:
    digest = f"sha256:{'a' * 64}"
    release = Release(
        "0.1.0", "2030-01-02", image=f"r.example.com/op@{digest}", agent_image="r.example.com:5000/agent:2"
    )
    values = mapping(chart_files(sources, release)["values.yaml"], "values.yaml")
    assert values["image"].items() >= {"repository": "r.example.com/op", "tag": "", "digest": digest}.items()
    assert values["agentImage"].items() >= {"repository": "r.example.com:5000/agent", "tag": "2", "digest": ""}.items()
