"""Each way to install from a mirror (docs/air-gap.md) uses only its images, and has a secret to pull them."""

from pathlib import Path

from support import air_gap
from unit.config.rendered import render_directory


def mirrored() -> set[str]:
    """The images that the commands of the page write into the mirror, without those of OLM."""
    return {f"{air_gap.HOST}/{image.rpartition('/')[2]}" for image in air_gap.listed_images()}


def test_overlay_uses_only_the_mirror_and_the_pull_secret(tmp_path: Path) -> None:
    air_gap.overlay(tmp_path)
    objects = render_directory(str(tmp_path)).objects
    assert air_gap.images(objects) == mirrored()
    assert air_gap.pull_secrets(objects) == [["registry"]] * 2


def test_values_of_the_chart_use_only_the_mirror_and_the_pull_secret() -> None:
    objects = air_gap.of_chart()
    assert air_gap.images(objects) == mirrored()
    assert air_gap.pull_secrets(objects) == [["registry"]] * 2


def test_cache_has_the_pull_secret() -> None:
    assert air_gap.pull_secrets([air_gap.cache()]) == [["registry"]]
