"""Building the images of the operator and the agent, and pushing images to their registry or into the cluster."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError
from cluster.public.images import BASE, BUILD, Build, build_image, load, save_image, tool_with
from cluster.public.lifecycle import choose_mode, current, foreign_kubeconfig, running
from cluster.shell import run
from project.environment import ROOT, kubectl, use_cluster

LOCAL = "localhost"
ARCHIVE = "ARCHIVE"
"""Stands for the path of the image's archive."""
DEFAULT_BASES = {"BASE_IMAGE": BASE, "BUILD_IMAGE": BUILD}
"""The base images of an image for the local cluster, which has no registry: the ones the cluster is made with."""
AGENT_TARGET = "agent"
"""The stage of the Dockerfile with the agent's image; the last one has the operator's."""


@dataclass(frozen=True)
class Images:
    """The images of one release: the operator's, and that of the agents in the pods of caches."""

    operator: str
    agent: str


def is_local(image: str) -> bool:
    """Whether an image has no registry, so that only this machine has it."""
    return image.partition("/")[0] == LOCAL


def build_arguments(given: Sequence[str], *, own: bool) -> list[str]:
    """The NAME=VALUE arguments of the build: the given ones, unless empty, and defaults for our own cluster."""
    values = dict(each.split("=", 1) for each in given if not each.endswith("="))
    defaults = DEFAULT_BASES if own else {}
    return [f"{name}={value}" for name, value in {**defaults, **values}.items()]


def build(images: Images, arguments: Sequence[str]) -> None:
    """Build both images, which share their lower layers. Raises ClusterError."""
    tools: dict[str, None] = {}
    for image, target in ((images.operator, ""), (images.agent, AGENT_TARGET)):
        own = is_local(image) and not foreign_kubeconfig(current()) and choose_mode() == "node"
        if own:
            use_cluster()
        tool = build_image(Build(ROOT / "Dockerfile", ROOT, build_arguments(arguments, own=own), target), image)
        tools[tool] = None
    print(f"built {images.operator} and {images.agent} with {' and '.join(tools)}", file=sys.stderr)


def provide(images: Images) -> None:
    """Push both images to their registry, or load local ones into the cluster. Raises ClusterError."""
    push("IMG", images.operator, into_cluster=True)
    push("AGENT_IMG", images.agent, into_cluster=True)


def push(variable: str, image: str, *, into_cluster: bool) -> None:
    """Push an image to its registry; a local one goes into the cluster.

    Raises ClusterError, which names the Makefile's variable, for a local image that cannot go there.
    """
    if not is_local(image):
        _push_to_registry(image)
    elif not into_cluster:
        raise ClusterError(no_registry(variable, image))
    elif foreign_kubeconfig(current()):
        use_cluster()
        _load_with(image, loader(image, variable))
    else:
        use_cluster()
        for name in load(*running(), image):
            print(f"loaded {name}", file=sys.stderr)


def no_registry(variable: str, image: str) -> str:
    """The error for an image that has no registry."""
    example = f"{variable}=registry.example.com/{image.rpartition('/')[2]}"
    return f"{variable}={image} has no registry to push to: set one, for example {example}"


def _load_with(image: str, command: Sequence[str]) -> None:
    """Run the command of `loader` with the image's archive."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "image.tar"
        save_image(image, archive)
        words = [str(archive) if word == ARCHIVE else word for word in command]
        print(f"$ {' '.join(words)}", file=sys.stderr)
        try:
            code = subprocess.run(words, check=False).returncode
        except FileNotFoundError as error:
            raise ClusterError(
                f"{words[0]} is not on the PATH: install it, or set IMG to an image of a registry"
            ) from error
    if code:
        raise ClusterError(f"loading {image} with {words[0]} failed ({code}): see above")


def _push_to_registry(image: str) -> None:
    tool = tool_with(image)
    if subprocess.run(tool.command("push", image), check=False).returncode:
        raise ClusterError(f"pushing {image} with {tool.name} failed: see above")


def way(image: str) -> str:
    """How images as this one reach the cluster of KUBECONFIG: a clause. Raises ClusterError if they cannot."""
    return f"loads them with `{loader(image)[0]}`" if is_local(image) else "pushes them"


def loader(image: str, variable: str = "IMG") -> list[str]:
    """The command of kind, k3d or minikube that loads `image` from ARCHIVE into the cluster of the current context.

    Raises ClusterError, which names the Makefile's variable, if the cluster is of another kind.
    """
    context = kubectl("config", "current-context").strip()
    tool, _, name = context.partition("-")
    if tool == "kind" and name:
        return ["kind", "load", "image-archive", ARCHIVE, "--name", name]
    if tool == "k3d" and name:
        return ["k3d", "image", "import", ARCHIVE, "--cluster", name]
    if context == "minikube":
        return ["minikube", "image", "load", ARCHIVE, "--profile", context]
    raise ClusterError(f"the context {context} is none of kind, k3d or minikube, and {no_registry(variable, image)}")


def image_id(image: str) -> str:
    """The id of a local image, which keeps its name when it changes; empty for an image of a registry.

    Raises ClusterError if the image is not built.
    """
    return run(tool_with(image).command("images", "--no-trunc", "--quiet", image)).split()[0] if is_local(image) else ""
