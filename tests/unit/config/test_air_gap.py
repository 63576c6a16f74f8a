"""An installation from a mirror (docs/air-gap.md) uses only its images, and has a secret to pull them."""

from pathlib import Path

from support import air_gap
from unit.config.rendered import render_directory


def test_overlay_uses_only_the_mirror_and_the_pull_secret(tmp_path: Path) -> None:
    air_gap.overlay(tmp_path)
    objects = render_directory(str(tmp_path)).objects
    assert air_gap.images(objects) == air_gap.mirrored()
    assert air_gap.pull_secrets(objects) == [["registry"]] * 2


def test_cache_has_the_pull_secret() -> None:
    assert air_gap.pull_secrets([air_gap.cache()]) == [["registry"]]
