"""Building the operator's image, and pushing images to their registry or into the local cluster."""

import subprocess
import sys
from collections.abc import Sequence

from cluster import cli
from cluster.errors import ClusterError
from cluster.images.build import build_image, choose_tool, has_image
from cluster.images.load import load
from cluster.images.recipes import BASE, BUILD
from cluster.shell import run
from project.environment import ROOT, use_cluster

LOCAL = "localhost"
DEFAULT_BASES = {"BASE_IMAGE": BASE, "BUILD_IMAGE": BUILD}
"""The base images of an image for the local cluster, which has no registry: the ones the cluster is made with."""


def is_local(image: str) -> bool:
    """Whether an image has no registry, so that only this machine has it."""
    return image.partition("/")[0] == LOCAL


def build_arguments(image: str, given: Sequence[str]) -> list[str]:
    """The NAME=VALUE arguments of the build: the given ones, unless empty, and defaults for a local image."""
    values = dict(each.split("=", 1) for each in given if not each.endswith("="))
    defaults = DEFAULT_BASES if is_local(image) else {}
    return [f"{name}={value}" for name, value in {**defaults, **values}.items()]


def build(image: str, arguments: Sequence[str]) -> None:
    """Build the operator's image. Raises ClusterError."""
    if is_local(image):
        use_cluster()
    tool = build_image(ROOT / "Dockerfile", ROOT, image, build_arguments(image, arguments))
    print(f"built {image} with {tool}", file=sys.stderr)


def push(variable: str, image: str, *, into_cluster: bool) -> None:
    """Push an image to its registry; a local one goes into the local cluster.

    Raises ClusterError, which names the Makefile's variable, for a local image that must not go there.
    """
    if not is_local(image):
        _push_to_registry(image)
    elif into_cluster:
        use_cluster()
        for name in load(*cli.running(), image):
            print(f"loaded {name}", file=sys.stderr)
    else:
        raise ClusterError(no_registry(variable, image))


def no_registry(variable: str, image: str) -> str:
    """The error for an image that has no registry."""
    example = f"{variable}=registry.example.com/{image.rpartition('/')[2]}"
    return f"{variable}={image} has no registry to push to: set one, for example {example}"


def _push_to_registry(image: str) -> None:
    tool = choose_tool()
    if subprocess.run(tool.command("push", image), check=False).returncode:
        raise ClusterError(f"pushing {image} with {tool.name} failed: see above")


def image_id(image: str) -> str:
    """The id of a local image, which keeps its name when it changes; empty for an image of a registry.

    Raises ClusterError if the image is not built.
    """
    if not is_local(image):
        return ""
    tool = choose_tool()
    if not has_image(tool, image):
        raise ClusterError(f"{tool.name} has no image {image}: run `make docker-build docker-push` first")
    return run(tool.command("images", "--no-trunc", "--quiet", image)).split()[0]
