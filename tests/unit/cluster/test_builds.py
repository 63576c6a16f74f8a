"""Which programs are built, their cache keys, and how images are packed."""

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.binaries import builds
from cluster.binaries.families import (
    CONTROL_PLANE,
    COREDNS_FAMILY,
    KUBERNETES_FAMILY,
    NEWEST_FAMILY,
    OLDEST_FAMILY,
    Family,
    wanted,
)
from cluster.binaries.toolchain import new_enough, version_of
from cluster.images import BASE, BUILD
from cluster.images.build import Build, Tool, build_command, pip_settings
from cluster.plan import Mode
from cluster.versions import SUPPORTED


@pytest.mark.parametrize(
    ("text", "version", "enough"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26, 8), True),
        ("go version go1.26.4 linux/amd64", (1, 26, 4), True),
        ("go version go1.26.3 linux/amd64", (1, 26, 3), False),
        ("go version go1.26 linux/arm64", (1, 26, 0), False),
        ("go version go1.19.8 linux/amd64", (1, 19, 8), False),
        ("go version go2.0.0 linux/amd64", (2, 0, 0), True),
        ("", (0, 0, 0), False),
    ],
)
def test_go_version(text: str, version: tuple[int, int, int], enough: bool) -> None:
    assert version_of(text) == version
    assert new_enough(text) is enough


@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("mode", [None, "node", "control-plane"])
def test_wanted_programs_exist(mode: Mode | None, version: str) -> None:
    for family, programs in wanted(mode, version):
        assert set(programs) <= set(family.programs)
        assert (family.module / "go.mod").exists()


@pytest.mark.parametrize(("version", "expected"), [("v1.30.0", OLDEST_FAMILY), ("v1.37.2", NEWEST_FAMILY)])
def test_control_plane_has_the_requested_version(version: str, expected: Family) -> None:
    found = {name: family for family, programs in wanted("control-plane", version) for name in programs}
    assert {name for name, family in found.items() if family == expected} == set(CONTROL_PLANE)
    assert found.keys() == {name for _, programs in wanted("control-plane") for name in programs}


@pytest.mark.parametrize(
    ("family", "version", "minor"),
    [(KUBERNETES_FAMILY, "v1.35.4", 35), (OLDEST_FAMILY, "v1.30.0", 30), (NEWEST_FAMILY, "v1.37.2", 37)],
)
def test_version_of_the_module_is_stamped(family: Family, version: str, minor: int) -> None:
    assert f"gitVersion={version} " in family.flags[-1] + " "
    assert f"gitMinor={minor} " in family.flags[-1] + " "
    assert f"k8s.io/kubernetes {version} " in (family.module / "go.mod").read_text()


def test_key_depends_on_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("cluster.binaries.families.GO_MODULES", tmp_path)
    module = tmp_path / "one"
    module.mkdir()
    (module / "go.mod").write_text("module one")
    family = Family("one", "one", {"one": "."})
    keys = [family.key(), replace(family, variables={"a": "b"}).key()]
    (module / "README.md").write_text("does not matter")
    assert family.key() == keys[0]
    for file in ("go.sum", "main.go"):
        (module / file).write_text("something")
        keys.append(family.key())
    assert len(set(keys)) == len(keys)


def test_programs_are_linked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = builds.directory(COREDNS_FAMILY) / "coredns"
    families = [(COREDNS_FAMILY, ("coredns",))]
    assert builds.missing(COREDNS_FAMILY, ["coredns"]) == ["coredns"]
    built.parent.mkdir(parents=True)
    built.touch()
    assert builds.missing(COREDNS_FAMILY, ["coredns"]) == []
    folder = builds.link_programs(families)
    assert (folder / "coredns").readlink() == built
    assert builds.link_programs(families) == folder


PIP_CONFIG = ":env:.cert='/some/where.pem'\nglobal.index-url='https://mirror/simple'\ninstall.trusted-host='a\\nb'\n"


def test_pip_settings() -> None:
    settings = pip_settings(PIP_CONFIG).splitlines()
    assert settings[0] == "[global]"
    assert "index-url = https://mirror/simple" in settings
    assert "trusted-host = a b" in settings
    assert not any("some/where" in line for line in settings)


def test_build_commands() -> None:
    places = {Path("/tmp/home"): "/root"}
    build = Build(Path("Dockerfile"), Path("context"), [f"BASE_IMAGE={BASE}", f"BUILD_IMAGE={BUILD}"])
    buildah = build_command(Tool("buildah", ("--storage-driver", "overlay")), build, "name:1", places)
    assert buildah[1:4] == ["--storage-driver", "overlay", "build"]
    assert "chroot" in buildah
    assert "/tmp/home:/root" in buildah
    assert buildah[-1] == "context"
    docker = build_command(Tool("docker"), build, "name:1", places)
    assert "--volume" not in docker, "docker cannot mount anything into a build"
    assert docker[-5:] == ["--build-arg", f"BASE_IMAGE={BASE}", "--build-arg", f"BUILD_IMAGE={BUILD}", "context"]
    stage = build_command(Tool("docker"), replace(build, target="agent", arguments=[]), "name:1", places)
    assert stage[1:] == ["build", "--file", "Dockerfile", "--tag", "name:1", "--target", "agent", "context"]
