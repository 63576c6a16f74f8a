"""OLM's own validators check the bundle and the catalog, so tools/bundle does not."""

import shutil
from pathlib import Path

import pytest

from bundle.catalog import CATALOG
from bundle.release import MANIFESTS
from olm.validation import validate
from support import olm

pytestmark = pytest.mark.modes

VALIDATORS = 8
CRD = f"{MANIFESTS}/cache.example.com_memcacheds.yaml"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A directory with a copy of bundle/ and catalog/."""
    for name in ("bundle", "catalog"):
        shutil.copytree(olm.ROOT / name, tmp_path / name)
    return tmp_path


def test_bundle_and_catalog_pass_every_validator() -> None:
    report = olm.make("bundle-validate").splitlines()
    assert len(report) == VALIDATORS
    assert all(line.endswith("0 errors, 0 warnings") for line in report), report


def test_every_validator_reports_a_broken_bundle_or_catalog(copy: Path) -> None:
    (copy / CRD).unlink()
    with (copy / CATALOG).open("a") as file:
        file.write("---\nname: without-a-schema\n")
    report, clean = validate(copy / "bundle", copy / "catalog")
    assert not clean
    lines = report.splitlines()[:VALIDATORS]
    assert all(line.endswith("errors, 0 warnings") and " 0 errors" not in line for line in lines), report
