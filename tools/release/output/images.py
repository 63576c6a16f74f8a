"""The four images of a release, built for each architecture with buildah, so that two builds have equal digests."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from cluster.errors import ClusterError
from cluster.public.images import ARCHITECTURE, BASE, Build, Tool, build_with, opened
from cluster.shell import run
from release.output.layouts import Layout, join

ARCHITECTURES: Final[tuple[str, ...]] = ("amd64", "arm64")
CHART: Final = "chart"
"""The part of a release that is a Helm chart."""
CHART_NAME: Final = "memcached-operator"
LOCAL: Final = "localhost/"
"""The prefix of images without a registry."""
PREFIX: Final = f"{LOCAL}memcached-operator/release"
STAND_IN: Final = f"{LOCAL}memcached-operator/stand-in-base"
"""A base image with one file, for an architecture that this machine has no base image of. The layers above it are those
of a release, but the image does not run.
"""


@dataclass(frozen=True)
class Names:
    """The names of a release's images, without tag."""

    operator: str
    agent: str

    @property
    def charts(self) -> str:
        """What the chart is in: the directory `charts` beside the operator's image."""
        return f"{self.operator.rpartition('/')[0]}/charts"

    def tagged(self, version: str) -> dict[str, str]:
        """Each image, and the chart, by its part of the release, with its tag."""
        return {
            "operator": f"{self.operator}:{version}",
            "agent": f"{self.agent}:{version}",
            "bundle": f"{self.operator}-bundle:v{version}",
            "catalog": f"{self.operator}-catalog:v{version}",
            CHART: f"{self.charts}/{CHART_NAME}:{version}",
        }

    @property
    def local(self) -> bool:
        """Whether the images have no registry, so that they cannot be published."""
        return self.operator.startswith(LOCAL) or self.agent.startswith(LOCAL)


@dataclass(frozen=True)
class Recipe:
    """What the images are built from.

    `epoch`: seconds since 1970 of every date in them. `bases`: the base image of each architecture; without one, the
    Dockerfile's. `build_base`: the image in which the Dockerfile's commands run. `fresh`: use no cached layer.
    """

    version: str
    epoch: int
    bases: Mapping[str, str] = field(default_factory=dict[str, str])
    build_base: str = ""
    fresh: bool = False


PARTS: Final = {"operator": ("Dockerfile", ""), "agent": ("Dockerfile", "agent")}
"""The Dockerfile and its stage of the images that are built from the sources."""
DATA: Final = {"bundle": "bundle.Dockerfile", "catalog": "catalog.Dockerfile"}
"""The Dockerfile of the images that contain only data."""


def options(recipe: Recipe, architecture: str) -> list[str]:
    """The options of buildah that make an image depend on its content only.

    Without `--identity-label=false`, it would also name the version of buildah.
    """
    dates = ["--timestamp", str(recipe.epoch), "--identity-label=false"]
    label = ["--label", f"org.opencontainers.image.version={recipe.version}"]
    cache = ["--no-cache"] if recipe.fresh else []
    bases = (recipe.bases.get(architecture, ""), recipe.build_base)
    pull = [] if any(base.startswith(LOCAL) for base in bases) else ["--pull-always"]
    return ["--platform", f"linux/{architecture}", *dates, *label, *cache, *pull]


def arguments(recipe: Recipe, architecture: str) -> list[str]:
    """The build arguments that name the base images and the platforms; without a base image, it is the Dockerfile's.

    buildah 1.28 does not set the platforms itself where FROM uses them.
    """
    platforms = {"BUILDPLATFORM": f"linux/{ARCHITECTURE}", "TARGETPLATFORM": f"linux/{architecture}"}
    given = {"BASE_IMAGE": recipe.bases.get(architecture, ""), "BUILD_IMAGE": recipe.build_base, **platforms}
    return [f"{name}={value}" for name, value in given.items() if value]


LOCAL_BASES: Final = {each: BASE if each == ARCHITECTURE else f"{STAND_IN}:{each}" for each in ARCHITECTURES}
"""The base images of a machine without a registry: its own for its architecture, a stand-in for the other."""


def ensure_stand_in(tool: Tool, scratch: Path) -> None:
    """Build the stand-in for the base image of the other architecture. Raises ClusterError."""
    (architecture,) = {*ARCHITECTURES} - {ARCHITECTURE}
    name = f"{STAND_IN}:{architecture}"
    (scratch / "stand-in-base").write_text(f"{architecture}\n")
    (scratch / "Dockerfile").write_text("FROM scratch\nCOPY stand-in-base /etc/\n")
    extra = ("--platform", f"linux/{architecture}", "--timestamp", "0", "--identity-label=false")
    if not build_with(tool, Build(scratch / "Dockerfile", scratch, options=extra), name):
        raise ClusterError(f"building {name} failed: see above")


def build(part: str, context: Path, recipe: Recipe, target: Path, name: str) -> str:
    """Build one image for all architectures into a layout; return the digest of its index. Raises ClusterError."""
    tool = opened("buildah")
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    dockerfile, stage = PARTS.get(part) or (DATA[part], "")
    for architecture in ARCHITECTURES:
        bases = arguments(recipe, architecture) if part in PARTS else []
        # From the cache, buildah 1.28 takes an image of the other architecture if only data is in it.
        uncached = replace(recipe, fresh=recipe.fresh or part in DATA)
        local = f"{PREFIX}-{part}:{recipe.version}-{architecture}"
        made = Build(context / dockerfile, context, bases, stage, tuple(options(uncached, architecture)))
        if not build_with(tool, made, local):
            raise ClusterError(f"building the {part} image for {architecture} failed: see above")
        run(tool.command("push", "--quiet", "--format", "oci", local, f"oci:{target}:{architecture}"))
    return join(Layout(target), name)
