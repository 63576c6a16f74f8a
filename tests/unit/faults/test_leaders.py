"""T11: the other release differs from the sources of the run in the pod template only."""

from pathlib import Path

from faults.campaigns.leaders import newer_release
from faults.campaigns.mutants import copy_sources
from faults.sandbox import Settings

CONSTANT = "memcached/desired/pods.py"


def test_other_release_is_built_from_the_sources_of_the_run(tmp_path: Path) -> None:
    sources = copy_sources(tmp_path / "sources")
    (sources / "operator/memcached_operator/marker.py").write_text("MARKER = 1\n")
    newer = newer_release(Settings(sources=sources)).sources / "operator/memcached_operator"
    assert (newer / "marker.py").exists()
    assert "DRAIN_SECONDS = 6" in (newer / CONSTANT).read_text()
    assert "DRAIN_SECONDS = 5" in (sources / "operator/memcached_operator" / CONSTANT).read_text()
