"""Building an image from a Dockerfile with docker, podman or buildah, whichever is available."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from cluster.binaries.families import PAUSE_FAMILY
from cluster.binaries.packages import find, install
from cluster.binaries.programs import ensure_built
from cluster.errors import ClusterError
from cluster.images.recipes import BASE, BUILD
from cluster.images.store import base_archive, ensure_archives
from cluster.paths import cache_dir
from cluster.shell import run, succeeds

CERTIFICATES = Path("/etc/ssl/certs")
PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "default-timeout", "timeout")
"""pip settings that a build inherits from this machine; never stored in the image."""


@dataclass(frozen=True)
class Tool:
    """A program that builds images, with the options that choose its storage."""

    name: str
    storage: tuple[str, ...] = ()

    def command(self, *words: str | Path) -> list[str]:
        """A command line of the tool."""
        return [find(self.name) or self.name, *self.storage, *map(str, words)]

    def archive(self, name: str, file: Path) -> list[str]:
        """The command that writes an image to a file."""
        if self.name == "buildah":
            return self.command("push", "--quiet", name, f"docker-archive:{file}:{name}")
        return self.command("save", "--output", file, name)


def choose_tool() -> Tool:
    """The first tool that works; buildah is installed if none does."""
    for name in ("docker", "podman"):
        if shutil.which(name) and succeeds([name, "info"]):
            return Tool(name)
    if not find("buildah"):
        install(["buildah"])
    return buildah()


def buildah() -> Tool:
    """buildah with its own storage in the cache; vfs, ten times slower, only if overlay cannot be mounted."""
    for driver in ("overlay", "vfs"):
        root = cache_dir() / "buildah" / driver
        places = ("--root", str(root), "--runroot", str(root.with_name(f"{driver}-run")))
        tool = Tool("buildah", (*places, "--storage-driver", driver))
        if succeeds(tool.command("images", "--quiet")):
            return tool
    raise ClusterError("buildah cannot use its storage: see `buildah info`")


def has_image(tool: Tool, name: str) -> bool:
    """Tell whether the tool has an image."""
    words = ("inspect", "--type", "image", name) if tool.name == "buildah" else ("image", "inspect", name)
    return succeeds(tool.command(*words))


def ensure_bases(tool: Tool, arguments: Sequence[str]) -> None:
    """Load our base images into the tool if the build uses them."""
    asked = " ".join(arguments)
    if not (BASE in asked or BUILD in asked) or (has_image(tool, BASE) and has_image(tool, BUILD)):
        return
    ensure_built(PAUSE_FAMILY, ["pause"])
    ensure_archives()
    if tool.name == "buildah":
        run(tool.command("pull", "--quiet", f"docker-archive:{base_archive()}:{BASE}"))
        run(tool.command("tag", BASE, BUILD))
    else:
        run(tool.command("load", "--input", base_archive()))


def build_command(
    tool: Tool, dockerfile: Path, context: Path, name: str, arguments: Sequence[str], volumes: Mapping[Path, str]
) -> list[str]:
    """The tool's command line for one build."""
    words: list[str | Path] = ["build", "--file", dockerfile, "--tag", name]
    if tool.name == "buildah":
        words += ["--isolation", "chroot", "--layers", "--quiet"]
    if tool.name != "docker":
        words += [word for place, target in volumes.items() for word in ("--volume", f"{place}:{target}")]
    words += [word for each in arguments for word in ("--build-arg", each)]
    return tool.command(*words, context)


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


def build_image(dockerfile: Path, context: Path, name: str, arguments: Sequence[str]) -> str:
    """Build and tag an image; returns the tool's name. The build's own output goes to standard error."""
    tool = choose_tool()
    ensure_bases(tool, arguments)
    with ExitStack() as stack:
        home = build_home(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="image-build-"))))
        volumes = {home: "/root"}
        if CERTIFICATES.is_dir():
            volumes[CERTIFICATES] = f"{CERTIFICATES}:ro"
        command = build_command(tool, dockerfile, context, name, arguments, volumes)
        environ = {**os.environ, "BUILDAH_LAYERS": "true"}
        if subprocess.run(command, stdout=sys.stderr, env=environ, check=False).returncode:
            raise ClusterError(f"building {name} with {tool.name} failed: see above")
    return tool.name


def save_image(name: str, file: Path) -> None:
    """Write an image to a file that containerd can import; raises ClusterError if the tool does not have it."""
    tool = choose_tool()
    if not has_image(tool, name):
        raise ClusterError(f"{tool.name} has no image {name}: build it with `python3 -m cluster image-build` first")
    run(tool.archive(name, file))
