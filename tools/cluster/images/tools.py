"""The programs that build and store images: docker, podman and buildah. CONTAINER_TOOL chooses one."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cluster.binaries.packages import find, install
from cluster.errors import ClusterError
from cluster.paths import cache_dir
from cluster.shell import run, succeeds

NAMES = ("docker", "podman", "buildah")
"""In the order in which they are tried."""


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

    def has(self, name: str) -> bool:
        """Tell whether the tool has an image."""
        words = ("inspect", "--type", "image", name) if self.name == "buildah" else ("image", "inspect", name)
        return succeeds(self.command(*words))


def chosen() -> str:
    """CONTAINER_TOOL; empty if it is not set. Raises ClusterError for another program."""
    name = os.environ.get("CONTAINER_TOOL", "")
    if name and name not in NAMES:
        raise ClusterError(f"CONTAINER_TOOL={name!r} must be {', '.join(NAMES[:-1])} or {NAMES[-1]}")
    return name


def usable_tools() -> Iterator[Tool]:
    """The tools that respond, in order.

    Raises ClusterError, which says why each one is left out, if none is left. buildah is the last: it is installed if
    it is missing.
    """
    only = chosen()
    left_out: list[str] = []
    for name in [only] if only else NAMES:
        try:
            yield opened(name)
        except ClusterError as error:
            left_out += [f"{name} cannot be used: {error}"] if only or find(name) or name == NAMES[-1] else []
            if only or name == NAMES[-1]:
                raise ClusterError("\n".join(left_out)) from error


def opened(name: str) -> Tool:
    """A tool that responds. Raises ClusterError."""
    if name != "buildah":
        run([name, "info"])
        return Tool(name)
    if not find(name):
        install([name])
    return buildah()


def buildah() -> Tool:
    """buildah with its own storage in the cache; vfs, ten times slower, only if overlay cannot be mounted."""
    for driver in ("overlay", "vfs"):
        root = cache_dir() / "buildah" / driver
        places = ("--root", str(root), "--runroot", str(root.with_name(f"{driver}-run")))
        tool = Tool("buildah", (*places, "--storage-driver", driver))
        if succeeds(tool.command("images", "--quiet")):
            return tool
    raise ClusterError("it cannot use its storage: see `buildah info`")


def tool_with(name: str) -> Tool:
    """The tool that built an image last, or else the first that has it. Raises ClusterError if none has it."""
    builder = _builders().get(name, "")
    for tool in [opened(builder)] if builder and not chosen() else usable_tools():
        if tool.has(name):
            return tool
    raise ClusterError(f"there is no image {name}: build it first (`make docker-build`)")


def remember(name: str, tool: Tool) -> None:
    """Store which tool built an image: another tool may have an older one of the same name."""
    file = _builders_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(_builders() | {name: tool.name}))
    partial.replace(file)


def _builders_file() -> Path:
    return cache_dir() / "builders.json"


def _builders() -> dict[str, str]:
    file = _builders_file()
    return json.loads(file.read_text()) if file.exists() else {}
