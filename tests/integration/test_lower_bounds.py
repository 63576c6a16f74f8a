"""The lower bounds of the dependencies in pyproject.toml: each group, installed at its lowest, can be imported."""

import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement

from support import programs

ROOT: Final = Path(__file__).parents[2]
RUNTIME: Final = "dependencies"
FOLDERS: Final = {RUNTIME: ("agent", "api", "operator", "webhooks"), "plugin": ("plugin",)}
"""Where our packages are that need a group, which is installed alone: another group can hide a missing dependency."""
BOUNDS: Final = (">=", "==")
SECONDS: Final = 600
"""Enough for the downloads on a busy machine."""
IMPORTS: Final = """
import importlib, pkgutil, sys
from importlib.metadata import packages_distributions

names, folders = sys.argv[1].split(), sys.argv[2:]
sys.path[:0] = folders
theirs = [module for module, owners in packages_distributions().items() if {each.lower() for each in owners} & {*names}]
ours = [module.name for module in pkgutil.walk_packages(folders) if not module.name.endswith("__main__")]
assert not folders or len(ours) > 20, ours
for module in (*filter(str.isidentifier, theirs), *ours):
    importlib.import_module(module)
"""
"""Imports the packages of these distributions, and all our modules in these folders."""


def groups() -> dict[str, list[str]]:
    """The direct dependencies of the programs, and those of each group."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {RUNTIME: project["project"]["dependencies"], **project["dependency-groups"]}


def lowest(text: str) -> str:
    """The requirement of the lowest version that another one allows."""
    requirement = Requirement(text)
    (version,) = (each.version for each in requirement.specifier if each.operator in BOUNDS)
    return f"{requirement.name}=={version}"


@pytest.mark.nightly
@pytest.mark.long(SECONDS)
@pytest.mark.parametrize("group", groups())
def test_lowest_versions_can_be_imported(group: str, tmp_path: Path) -> None:
    uv, found = Path(sys.executable).with_name("uv"), sorted(map(lowest, groups()[group]))
    programs.output([uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"])
    python = tmp_path / "venv/bin/python"
    installed = programs.run([uv, "pip", "install", "--python", python, *found], timeout=SECONDS)
    assert installed.returncode == 0, installed.stderr
    assert "yanked" not in installed.stderr, installed.stderr
    names = " ".join(text.partition("==")[0].lower() for text in found)
    folders = [str(ROOT / folder) for folder in FOLDERS.get(group, ())]
    imported = programs.run([python, "-c", IMPORTS, names, *folders], timeout=SECONDS)
    assert imported.returncode == 0, imported.stderr
