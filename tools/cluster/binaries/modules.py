"""Writes the Go modules of control planes: `PYTHONPATH=tools python3 -m cluster.binaries.modules`."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cluster.binaries.families import CONTROL_PLANE, CONTROL_PLANE_FAMILIES, KUBECTL, Family
from cluster.binaries.toolchain import GO_ENV, ensure_go
from cluster.errors import exit_on_error
from cluster.shell import run

KUBERNETES_MODULE = "k8s.io/kubernetes"
STAGING = "./staging/"
SAMPLES = "k8s.io/sample-"
"""Modules that no program needs, and that the module proxy does not have."""
GO_LINE = "1.26.0"
FILES = ("go.mod", "go.sum")


def outdated(families: Mapping[str, Family] = CONTROL_PLANE_FAMILIES) -> list[str]:
    """The versions whose module does not exist, or requires another version."""
    return [version for version, family in families.items() if not requires(family.module / "go.mod", version)]


def requires(file: Path, version: str) -> bool:
    """Whether a go.mod requires this version of Kubernetes."""
    return file.exists() and f"\t{KUBERNETES_MODULE} {version} " in file.read_text()


def header(family: Family) -> str:
    """The start of a go.mod; `go get` adds the rest."""
    return f"module memcached-operator.local/tools/{family.name}\n\ngo {GO_LINE}\n"


def tools(version: str, replaced: Iterable[Mapping[str, Any]]) -> list[str]:
    """The arguments of `go get -tool`, from the `Replace` of Kubernetes' go.mod (`go mod edit -json`).

    Kubernetes requires its staging modules at v0.0.0 and replaces them by directories. Go ignores replacements of a
    dependency, so each module is required at the version that matches that of Kubernetes: v0.31.0 for v1.31.0.
    """
    names = [each["Old"]["Path"] for each in replaced if each["New"]["Path"].startswith(STAGING)]
    staging = [f"{name}@v0.{version.removeprefix('v1.')}" for name in names if not name.startswith(SAMPLES)]
    return [*staging, *(f"{KUBERNETES_MODULE}/cmd/{name}@{version}" for name in (*CONTROL_PLANE, KUBECTL))]


def write(go: Path, version: str, family: Family) -> None:
    """Write the module of a version. Raises ClusterError, without a change, if the module proxy lacks a module."""
    downloaded = _go(go, "mod", "download", "-json", f"{KUBERNETES_MODULE}@{version}")
    replaced = json.loads(_go(go, "mod", "edit", "-json", json.loads(downloaded)["GoMod"]))["Replace"]
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "go.mod").write_text(header(family))
        _go(go, "get", "-tool", *tools(version, replaced), directory=scratch)
        family.module.mkdir(exist_ok=True)
        for name in FILES:
            shutil.copy(Path(scratch) / name, family.module / name)


def _go(go: Path, *words: str, directory: str = "/") -> str:
    return run([go, *words], env=GO_ENV, cwd=Path(directory))


def main() -> None:
    """Write the modules that do not have the version of `cluster.versions.SUPPORTED`."""
    go = ensure_go()
    for version in outdated():
        family = CONTROL_PLANE_FAMILIES[version]
        print(f"writing {family.module.name} for {version}", file=sys.stderr, flush=True)
        write(go, version, family)


if __name__ == "__main__":
    exit_on_error(main)
