"""The kubectl plugin as a release packs it: two equal builds, krew's own check, and an installation by krew."""

import os
from pathlib import Path

import pytest

from cluster.public.programs import KREW_FAMILY, KUBERNETES_FAMILY, build_programs, directory, ensure_built
from cluster.shell import run
from plugin.archives import PLUGIN, PROGRAM, tarball_name
from release.commit.tree import Tree
from releases.conftest import VERSION
from support import programs as started

MANIFEST = f"{PLUGIN}.yaml"


@pytest.fixture(scope="module")
def packed(repository: Tree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make plugin` writes."""
    folder = tmp_path_factory.mktemp("plugin")
    repository.run("-m", "plugin", "package", f"--output={folder}")
    return folder


@pytest.fixture(scope="module")
def programs() -> Path:
    """The directory of krew and validate-krew-manifest."""
    ensure_built(KREW_FAMILY, list(KREW_FAMILY.programs))
    return directory(KREW_FAMILY)


def archive(folder: Path) -> Path:
    """The archive, of any version."""
    (found,) = folder.glob(tarball_name("*"))
    return found


def test_second_build_has_equal_bytes(repository: Tree, packed: Path, tmp_path: Path) -> None:
    repository.run("-m", "plugin", "package", f"--output={tmp_path}")
    names = sorted(path.name for path in packed.iterdir())
    assert names == sorted([archive(packed).name, PROGRAM, MANIFEST])
    assert [(tmp_path / name).read_bytes() == (packed / name).read_bytes() for name in names] == [True] * 3
    assert VERSION not in archive(packed).name, "the version is that of the tree"


def test_krew_accepts_the_manifest(packed: Path, programs: Path) -> None:
    """The check of krew's index, without its download of the archive: the release does not exist yet."""
    validate = [programs / "validate-krew-manifest", f"-manifest={packed / MANIFEST}", "-skip-install"]
    done = started.run(validate, timeout=300)
    assert done.returncode == 0, done.stderr


def test_krew_installs_the_plugin_that_kubectl_runs(packed: Path, programs: Path, tmp_path: Path) -> None:
    kubectl = build_programs([(KUBERNETES_FAMILY, ("kubectl",))])
    path = os.pathsep.join([str(tmp_path / "bin"), str(kubectl), os.environ["PATH"]])
    environment = {"KREW_ROOT": str(tmp_path), "PATH": path, "KREW_NO_UPGRADE_CHECK": "1"}
    files = [f"--manifest={packed / MANIFEST}", f"--archive={archive(packed)}"]
    run([programs / "krew", "install", *files], env=environment)
    installed = run(["kubectl", "memcached", "--version"], env=environment)
    assert installed.startswith("kubectl memcached, version ")
    # `krew list` needs krew's index, which this test does not download.
    assert (tmp_path / "receipts" / MANIFEST).is_file()
