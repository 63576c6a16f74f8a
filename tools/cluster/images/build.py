"""Building an image from a Dockerfile with docker, podman or buildah, whichever can, and loading it into a cluster."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from cluster.binaries.builds import ensure_built
from cluster.binaries.families import PAUSE_FAMILY
from cluster.errors import ClusterError
from cluster.images.recipes import ARCHITECTURE, BASE, BUILD
from cluster.images.store import base_archive, ensure_archives, images_dir, import_archive
from cluster.images.tools import Tool, remember, tool_with, usable_tools
from cluster.paths import State
from cluster.plan import Plan
from cluster.shell import run

CERTIFICATES = Path("/etc/ssl/certs")
PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "default-timeout", "timeout")
"""pip settings that a build inherits from this machine; never stored in the image."""


def ensure_bases(tool: Tool, arguments: Sequence[str]) -> None:
    """Load our base images into the tool if the build uses them."""
    asked = " ".join(arguments)
    if not (BASE in asked or BUILD in asked) or (tool.has(BASE) and tool.has(BUILD)):
        return
    ensure_built(PAUSE_FAMILY, ["pause"])
    ensure_archives()
    if tool.name == "buildah":
        run(tool.command("pull", "--quiet", f"docker-archive:{base_archive()}:{BASE}"))
        run(tool.command("tag", BASE, BUILD))
    else:
        run(tool.command("load", "--input", base_archive()))


@dataclass(frozen=True)
class Build:
    """What an image is built from. `arguments`: NAME=VALUE. `target`: a stage of the Dockerfile, or the last one.

    `options`: further options of the tool.
    """

    dockerfile: Path
    context: Path
    arguments: Sequence[str] = ()
    target: str = ""
    options: Sequence[str] = ()


def build_command(tool: Tool, build: Build, name: str, volumes: Mapping[Path, str]) -> list[str]:
    """The tool's command line for one build."""
    words: list[str | Path] = ["build", "--file", build.dockerfile, "--tag", name]
    words += ["--target", build.target] if build.target else []
    if tool.name == "buildah":
        words += ["--isolation", "chroot", "--layers", "--quiet"]
    if tool.name != "docker":
        words += [word for place, target in volumes.items() for word in ("--volume", f"{place}:{target}")]
    arguments = [*build.arguments, *(architecture(build) if tool.name == "buildah" else ())]
    words += [word for each in arguments for word in ("--build-arg", each)]
    return tool.command(*words, *build.options, build.context)


def architecture(build: Build) -> list[str]:
    """This machine's architecture, which buildah warns of although it knows it; none if the build names a platform."""
    if any(each.startswith("--platform") for each in build.options) or "ARG TARGETARCH" not in _text(build.dockerfile):
        return []
    return [f"TARGETARCH={ARCHITECTURE}"]


def _text(dockerfile: Path) -> str:
    return dockerfile.read_text(encoding="utf-8") if dockerfile.is_file() else ""


def pip_settings(listing: str) -> str:
    """A pip.conf with this machine's index, from the output of `pip config list`."""
    lines: list[str] = []
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        setting = name.rpartition(".")[2]
        if setting in PIP_SETTINGS:
            lines.append(f"{setting} = {value.strip(chr(39)).replace(chr(92) + 'n', ' ')}")
    if CERTIFICATES.joinpath("ca-certificates.crt").exists():
        lines.append(f"cert = {CERTIFICATES}/ca-certificates.crt")
    return "\n".join(["[global]", *lines, ""])


def build_home(folder: Path) -> Path:
    """A home directory for root during the build, so that the image contains no file of it."""
    asked = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    settings = folder / ".config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(pip_settings(asked.stdout))
    return folder


def build_image(build: Build, name: str) -> str:
    """Build and tag an image with the first tool that can; returns the tool's name.

    The build's own output goes to standard error. Raises ClusterError if no tool can.
    """
    failed: list[str] = []
    for tool in usable_tools():
        if failed:
            print(f"{failed[-1]} cannot build {name}: see above. Trying {tool.name}.", file=sys.stderr)
        if build_with(tool, build, name):
            remember(name, tool)
            return tool.name
        failed.append(tool.name)
    raise ClusterError(f"building {name} with {' and '.join(failed)} failed: see above")


def build_with(tool: Tool, build: Build, name: str) -> bool:
    """Build and tag an image with one tool; returns whether it succeeded."""
    try:
        ensure_bases(tool, build.arguments)
    except ClusterError as error:
        print(error, file=sys.stderr)
        return False
    with ExitStack() as stack:
        home = build_home(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="image-build-"))))
        volumes = {home: "/root"}
        if CERTIFICATES.is_dir():
            volumes[CERTIFICATES] = f"{CERTIFICATES}:ro"
        command = build_command(tool, build, name, volumes)
        environ = {**os.environ, "BUILDAH_LAYERS": "true"}
        # buildah prints only the ID of the image.
        output = subprocess.DEVNULL if tool.name == "buildah" else sys.stderr
        return subprocess.run(command, stdout=output, env=environ, check=False).returncode == 0


def save_image(name: str, file: Path) -> None:
    """Write an image to a file that containerd can import; raises ClusterError if no tool has it."""
    run(tool_with(name).archive(name, file))


def load(state: State, plan: Plan, image: str) -> list[str]:
    """Import an archive, or an image from the local builder's storage; returns the names imported.

    Raises ClusterError if the image does not exist. Does nothing in control-plane mode, which runs no containers.
    """
    if plan.mode != "node":
        return []
    if Path(image).is_file():
        return import_archive(state.containerd_socket, Path(image))
    if image.endswith((".tar", ".tgz", ".tar.gz")):
        raise ClusterError(f"there is no file {image}")
    images_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=images_dir()) as scratch:
        archive = Path(scratch) / "image.tar"
        save_image(image, archive)
        return import_archive(state.containerd_socket, archive)
