"""Images from a registry with a password: mirrored and pulled with the commands of docs/air-gap.md."""

import base64
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.public.programs import KUBERNETES_FAMILY, RELEASE_FAMILY, directory, ensure_built
from cluster.shell import run
from support import air_gap, programs
from support.code_blocks import page_commands
from support.registries import open_registry, private_registry

PUSHER, PULLER = {"pusher": "push me"}, {"puller": "pull me"}
OF_OLM = (
    "localhost/operators/memcached-operator-bundle:v0.1.0",
    "localhost/operators/memcached-operator-catalog:v0.1.0",
)
MAKE = '#!/bin/sh\ntest "$*" = "-s images-list" && cat "$0.images"\n'


@dataclass(frozen=True)
class Shell:
    """Runs commands of the page.

    `mirror`: the address of the registry with a password. `digests`: those of the images, by name without registry.
    """

    path: Path
    mirror: str
    digests: Mapping[str, str]

    def run(self, text: str, home: Path, password: str = "") -> "subprocess.CompletedProcess[str]":
        """Run commands with the credentials in a directory, which `crane auth login` changes."""
        return programs.run(
            ["bash", "-eu", "-o", "pipefail", "-c", text.replace(air_gap.HOST, self.mirror)],
            env={
                "PATH": f"{self.path}:/usr/bin:/bin",
                "DOCKER_CONFIG": str(home),
                "HOME": str(home),
                "PASSWORD": password,
            },
        )

    def digest(self, image: str, home: Path) -> str:
        """Pull an image with the credentials in a directory; its digest, or an empty string if that fails."""
        done = self.run(f"crane pull {image} {home}/image.tar && crane digest {image}", home)
        return done.stdout.strip() if not done.returncode else ""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """The programs of the page, an image for each name in the list, and an empty mirror."""
    path = tmp_path_factory.mktemp("bin")
    for family, name in ((RELEASE_FAMILY, "crane"), (KUBERNETES_FAMILY, "kubectl")):
        ensure_built(family, [name])
        (path / name).symlink_to(directory(family) / name)
    make = path / "make"
    make.write_text(MAKE)
    make.chmod(0o755)
    disks = tmp_path_factory.mktemp("disks")
    with (
        open_registry(path / "crane", disks / "origin") as origin,
        open_registry(path / "crane", disks / "mirror") as behind,
        private_registry(behind, PUSHER, PULLER) as mirror,
    ):
        names = [image.rpartition("/")[2] for image in air_gap.listed_images(*OF_OLM)]
        make.with_name("make.images").write_text("".join(f"{origin}/a/{name}\n" for name in names))
        yield Shell(path, mirror, {name: push(path / "crane", f"{origin}/a/{name}") for name in names})


def push(crane: Path, image: str) -> str:
    """Push an image that contains its name; returns its digest."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        info = tarfile.TarInfo("name")
        info.size = len(image)
        tar.addfile(info, io.BytesIO(image.encode()))
    layer = crane.with_name("layer.tar")
    layer.write_bytes(stream.getvalue())
    return run([crane, "append", f"--new_layer={layer}", f"--new_tag={image}"]).strip().rpartition("@")[2]


@pytest.fixture(scope="module")
def mirrored(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """The mirror with all images, copied by the commands of the page."""
    done = shell.run(
        page_commands("air-gap.md", "## Mirror the images\n"), tmp_path_factory.mktemp("pusher"), PUSHER["pusher"]
    )
    assert not done.returncode, done.stderr
    return shell


@pytest.fixture(scope="module")
def puller(mirrored: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the credentials of the pull secret that the page creates."""
    home = tmp_path_factory.mktemp("puller")
    command = page_commands("air-gap.md", "## Install from the mirror\n").partition("\n")[2].rstrip()
    done = mirrored.run(f"{command} --dry-run=client -o json", home, PULLER["puller"])
    assert not done.returncode, done.stderr
    secret = json.loads(done.stdout)
    assert (secret["type"], secret["metadata"]["name"]) == ("kubernetes.io/dockerconfigjson", "registry")
    (home / "config.json").write_bytes(base64.b64decode(secret["data"][".dockerconfigjson"]))
    return home


def test_images_cannot_be_pushed_without_the_password(shell: Shell, tmp_path: Path) -> None:
    commands = page_commands("air-gap.md", "## Mirror the images\n")
    login = next(line for line in commands.splitlines() if "crane auth login" in line)
    for text, password in ((commands.replace(login, ""), ""), (commands, PULLER["puller"])):
        done = shell.run(text, tmp_path, password)
        assert done.returncode, done.stdout
        assert "401" in done.stderr


def test_images_of_each_installation_are_pulled_with_the_pull_secret_only(
    mirrored: Shell, puller: Path, tmp_path: Path
) -> None:
    air_gap.overlay(tmp_path)
    text = mirrored.run(f"kubectl kustomize {tmp_path}", puller)
    assert not text.returncode, text.stderr
    installations = {"kubectl": air_gap.parsed(text.stdout), "Helm": air_gap.of_chart(), "cache": [air_gap.cache()]}
    anonymous = tmp_path / "anonymous"
    anonymous.mkdir()
    for way, objects in installations.items():
        assert set(map(tuple, air_gap.pull_secrets(objects))) == {("registry",)}, way
        for image in air_gap.images(objects):
            expected = mirrored.digests[image.rpartition("/")[2]]
            assert mirrored.digest(image, puller) == expected, (way, image)
            assert not mirrored.digest(image, anonymous), (way, image)


def test_account_of_the_pull_secret_cannot_push(mirrored: Shell, puller: Path, tmp_path: Path) -> None:
    name = next(iter(mirrored.digests))
    shutil.copytree(puller, tmp_path / "home")
    done = mirrored.run(f"crane tag {air_gap.HOST}/{name} other", tmp_path / "home")
    assert done.returncode
    assert "403" in done.stderr
