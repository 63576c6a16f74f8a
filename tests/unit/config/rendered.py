"""The rendered objects of a kustomize directory."""

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.paths import cache_dir
from support import programs

ROOT = Path(__file__).parents[3]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Object = dict[str, Any]


class Rendered:
    """The objects of one variant."""

    def __init__(self, objects: list[Object]) -> None:
        self.objects = objects

    def of(self, *kinds: str) -> list[Object]:
        """All objects of these kinds."""
        return [each for each in self.objects if each["kind"] in kinds]

    def one(self, kind: str, name: str) -> Object:
        """The object of a kind with this name, prefix included."""
        (found,) = [each for each in self.of(kind) if each["metadata"]["name"] == name]
        return found

    def names(self, kind: str) -> set[str]:
        """The names of all objects of a kind."""
        return {each["metadata"]["name"] for each in self.of(kind)}

    def containers(self) -> Iterator[Object]:
        """The containers of all Deployments."""
        for each in self.of("Deployment"):
            yield from each["spec"]["template"]["spec"]["containers"]


def kubectl() -> str | None:
    """The user's kubectl, or the one that was built for the local cluster."""
    built = sorted(cache_dir().glob("bin/*/kubectl"), key=lambda path: path.stat().st_mtime)
    return shutil.which("kubectl") or (str(built[-1]) if built else None)


@cache
def render_directory(directory: str) -> Rendered:
    """The objects of a kustomize directory; skips the test if there is no kubectl."""
    program = kubectl()
    if not program:
        pytest.skip("kubectl is missing: run `make cluster` to build it")
    done = programs.run([program, "kustomize", str(ROOT / directory)])
    assert not done.returncode, done.stderr
    return Rendered(list(yaml.load_all(done.stdout, LOADER)))
