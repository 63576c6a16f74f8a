"""Which programs are built, their cache keys, and how images are packed."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.binaries import builds
from cluster.binaries.families import (
    CONTROL_PLANE,
    CONTROL_PLANE_FAMILIES,
    COREDNS_FAMILY,
    KUBERNETES_FAMILY,
    Family,
    wanted,
)
from cluster.binaries.modules import outdated, requires, tools
from cluster.binaries.toolchain import new_enough, version_of
from cluster.images import BASE, BUILD
from cluster.images.build import Build, Tool, build_command, pip_settings
from cluster.plan import Mode
from cluster.versions import KUBERNETES, SUPPORTED


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


FAMILIES = {**CONTROL_PLANE_FAMILIES, KUBERNETES: KUBERNETES_FAMILY}


@pytest.mark.parametrize("version", SUPPORTED)
def test_control_plane_has_the_requested_version(version: str) -> None:
    found = {name: family for family, programs in wanted("control-plane", version) for name in programs}
    assert {name for name in CONTROL_PLANE if found[name] == FAMILIES[version]} == set(CONTROL_PLANE)
    assert found.keys() == {name for _, programs in wanted("control-plane") for name in programs}


@pytest.mark.parametrize("version", SUPPORTED)
def test_version_of_the_module_is_stamped(version: str) -> None:
    family = FAMILIES[version]
    assert f"gitVersion={version} " in family.flags[-1] + " "
    assert f"gitMinor={version.split('.')[1]} " in family.flags[-1] + " "
    assert requires(family.module / "go.mod", version)


@pytest.mark.parametrize("version", CONTROL_PLANE_FAMILIES)
def test_staging_modules_have_the_version_of_kubernetes(version: str) -> None:
    """All are required: Kubernetes requires them at v0.0.0, which does not exist."""
    text = (FAMILIES[version].module / "go.mod").read_text()
    found = dict(re.findall(r"^\t(k8s\.io/\S+) (v\S+)", text, flags=re.MULTILINE))
    named = re.findall(r"^\t(k8s\.io/[\w-]+)$", text, flags=re.MULTILINE)
    assert "k8s.io/apiserver" in named
    assert {found[name] for name in named} == {version.replace("v1", "v0", 1)}


REPLACED = [
    {"Old": {"Path": f"k8s.io/{name}"}, "New": {"Path": f"./staging/src/k8s.io/{name}"}}
    for name in ("api", "kubelet", "sample-apiserver")
] + [{"Old": {"Path": "example.com/a"}, "New": {"Path": "example.com/b"}}]


def test_module_of_a_control_plane_requires_the_staging_modules() -> None:
    found = tools("v1.31.14", REPLACED)
    assert found[:2] == ["k8s.io/api@v0.31.14", "k8s.io/kubelet@v0.31.14"]
    assert found[2:] == [f"k8s.io/kubernetes/cmd/{name}@v1.31.14" for name in CONTROL_PLANE]


def test_only_modules_of_other_versions_are_written() -> None:
    assert outdated() == []
    assert outdated({"v1.30.1": FAMILIES["v1.30.0"], "v1.30.0": FAMILIES["v1.30.0"]}) == ["v1.30.1"]


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
