"""Which programs are built, their cache keys, and how images are packed."""

import hashlib
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.binaries import builds
from cluster.binaries.families import (
    CONTROL_PLANE,
    COREDNS_FAMILY,
    KUBERNETES_FAMILY,
    KWOK_FAMILY,
    METRICS_SERVER_FAMILY,
    OLDEST_FAMILY,
    Family,
    wanted,
)
from cluster.binaries.toolchain import new_enough, version_of
from cluster.images import BASE, BUILD, PAUSE
from cluster.images.archive import layer, pack_files, write_archive
from cluster.images.build import Tool, build_command, pip_settings
from cluster.images.recipes import MEMCACHED, PAUSE_IMAGE, Image, images_key
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


def test_kwok_only_without_a_node() -> None:
    assert KWOK_FAMILY in [family for family, _ in wanted("control-plane")]
    assert KWOK_FAMILY not in [family for family, _ in wanted("node")]


@pytest.mark.parametrize("mode", [None, "node", "control-plane"])
def test_metrics_server_is_built_on_demand(mode: Mode | None) -> None:
    assert METRICS_SERVER_FAMILY not in [family for family, _ in wanted(mode)]
    (package,) = METRICS_SERVER_FAMILY.programs.values()
    assert f"\ntool {package}\n" in (METRICS_SERVER_FAMILY.module / "go.mod").read_text()


def test_control_plane_has_the_requested_version() -> None:
    found = {name: family for family, programs in wanted("control-plane", "v1.30.0") for name in programs}
    assert {name for name, family in found.items() if family == OLDEST_FAMILY} == set(CONTROL_PLANE)
    assert found.keys() == {name for _, programs in wanted("control-plane") for name in programs}


@pytest.mark.parametrize(
    ("family", "version", "minor"), [(KUBERNETES_FAMILY, "v1.35.4", 35), (OLDEST_FAMILY, "v1.30.0", 30)]
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


def test_archive(tmp_path: Path) -> None:
    shared = pack_files(tmp_path / "shared.tar", {"bin/program": b"content"})
    own = pack_files(tmp_path / "own.tar", {"etc/file": b"other"})
    images = [(Image(("one:1", "one:2"), {"User": "1"}), [shared]), (Image(("two:1",), {}), [shared, own])]
    write_archive(tmp_path / "images.tar", images)
    with tarfile.open(tmp_path / "images.tar") as archive:
        names = archive.getnames()
        assert len(names) == len(set(names)) == 5
        manifest = json.load(archive.extractfile("manifest.json") or pytest.fail("no manifest"))
        assert [each["RepoTags"] for each in manifest] == [["one:1", "one:2"], ["two:1"]]
        for each in manifest:
            config = (archive.extractfile(each["Config"]) or pytest.fail("no configuration")).read()
            assert each["Config"] == f"{hashlib.sha256(config).hexdigest()}.json"
            layers = [name.removesuffix(".tar") for name in each["Layers"]]
            assert json.loads(config)["rootfs"]["diff_ids"] == [f"sha256:{name}" for name in layers]


def test_equal_content_has_the_same_layer_digest(tmp_path: Path) -> None:
    one, two = (pack_files(tmp_path / name, {"a": b"1", "b": b"2"}) for name in ("one", "two"))
    assert one.sha256 == two.sha256 == layer(tmp_path / "one").sha256


def test_substitute_images_have_the_names_in_the_samples() -> None:
    names = {name for image in MEMCACHED for name in image.names}
    assert {f"docker.io/library/memcached:{tag}" for tag in ("1.6", "1.6.38", "1.6.39")} <= names
    assert all(image.config["User"] == "11211" for image in MEMCACHED)
    assert PAUSE_IMAGE.names == (PAUSE,)


def test_images_key_depends_on_the_pause_program() -> None:
    assert images_key("one") == images_key("one") != images_key("two")


PIP_CONFIG = ":env:.cert='/some/where.pem'\nglobal.index-url='https://mirror/simple'\ninstall.trusted-host='a\\nb'\n"


def test_pip_settings() -> None:
    settings = pip_settings(PIP_CONFIG).splitlines()
    assert settings[0] == "[global]"
    assert "index-url = https://mirror/simple" in settings
    assert "trusted-host = a b" in settings
    assert not any("some/where" in line for line in settings)


def test_build_commands() -> None:
    places = {Path("/tmp/home"): "/root"}
    arguments = (Path("Dockerfile"), Path("context"), "name:1", [f"BASE_IMAGE={BASE}", f"BUILD_IMAGE={BUILD}"], places)
    buildah = build_command(Tool("buildah", ("--storage-driver", "overlay")), *arguments)
    assert buildah[1:4] == ["--storage-driver", "overlay", "build"]
    assert "chroot" in buildah
    assert "/tmp/home:/root" in buildah
    assert buildah[-1] == "context"
    docker = build_command(Tool("docker"), *arguments)
    assert "--volume" not in docker, "docker cannot mount anything into a build"
    assert docker[-5:] == ["--build-arg", f"BASE_IMAGE={BASE}", "--build-arg", f"BUILD_IMAGE={BUILD}", "context"]
