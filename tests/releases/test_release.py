"""A release from its dry run to its verification: contents, equal digests, signatures, and what a forgery meets."""

import gzip
import io
import json
import shutil
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.errors import ClusterError
from cluster.shell import run
from release.commit.prepare import PATCH
from release.commit.repository import Repository
from release.commit.tree import Tree
from release.output import layouts
from release.output.artifacts import IMAGES, PREDICATE, PROVENANCE, Artifacts
from release.output.images import ARCHITECTURES, CHART, DATA, PARTS
from releases.conftest import VERSION

MACHINES = {"amd64": (62, "x86_64"), "arm64": (183, "aarch64")}
"""e_machine of ELF files, EM_X86_64 and EM_AARCH64, and the end of a wheel's platform."""
OURS = "opt/memcached-operator/"
"""What a release adds to its base image."""
TOOLS = ("bin/pip", "bin/pip3", "bin/gcc", "bin/cc", "bin/make", "bin/ld", "/pip/__init__.py", "/ensurepip/__init__.py")
"""Ends of paths of what builds or installs software."""


def test_dry_run_contains_everything_and_commits_nothing(repository: Tree, release: Artifacts) -> None:
    assert {path.as_posix() for path in release.files()} >= {
        "artifacthub-repo.yml",
        "images.txt",
        "install.yaml",
        f"memcached-operator-{VERSION}.tgz",
        f"kubectl-memcached-{VERSION}.tar.gz",
        "memcached.yaml",
        "provenance.intoto.json",
        *(release.bill(part, architecture) for part in PARTS for architecture in ARCHITECTURES),
    }
    release.check()
    platforms = {part: set(release.layout(part).platforms()) for part in release.names()}
    assert platforms == {part: set(ARCHITECTURES) for part in (*PARTS, *DATA)} | {CHART: set()}
    installer = (release.root / "install.yaml").read_text()
    assert {part: installer.count(f"@{release.layout(part).digest}") for part in PARTS} == {"operator": 2, "agent": 2}
    assert run(["git", "status", "--porcelain"], cwd=repository.root) == ""
    assert run(["git", "tag"], cwd=repository.root) == ""
    assert (release.root.parent / "notes.md").read_text().startswith("### Added")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_images_have_programs_of_their_architecture_and_no_tools(
    release: Artifacts, part: str, architecture: str
) -> None:
    layout = release.layout(part)
    image = layout.platforms()[architecture]
    machine, suffix = MACHINES[architecture]
    found = ours(layout, architecture)
    machines = {path: struct.unpack_from("<H", content, 18)[0] for path, content in found.items() if is_binary(content)}
    assert {path: each for path, each in machines.items() if each != machine} == {}
    wheels = {path: tags(content) for path, content in found.items() if path.endswith(".dist-info/WHEEL")}
    assert {
        path: each for path, each in wheels.items() if not all(tag.endswith((suffix, "-any")) for tag in each)
    } == {}
    assert bool(machines) == bool(wheels) == (part == "operator"), "the agent has the standard library only"
    assert [path for path, _ in layouts.files(layout, image, *TOOLS)] == []
    assert layout.config(image)["config"]["User"] == "65532:65532"


@pytest.mark.parametrize("part", PARTS)
def test_images_of_both_architectures_differ_in_binaries_only(release: Artifacts, part: str) -> None:
    """The image for amd64 is the one that the tests run."""
    first, second = (
        {path: content for path, content in ours(release.layout(part), each).items() if is_portable(path, content)}
        for each in ARCHITECTURES
    )
    assert [path for path in first.keys() | second.keys() if first.get(path) != second.get(path)] == []
    assert sum(path.endswith(".pyc") for path in first) > 10


def is_portable(path: str, content: bytes) -> bool:
    """Whether a file must be the same for all architectures; wheels describe how they were built."""
    return not is_binary(content) and (".dist-info/" not in path or path.endswith("/METADATA"))


def ours(layout: layouts.Layout, architecture: str) -> dict[str, bytes]:
    """The files that a release adds to the base image of an architecture."""
    return {
        path: content
        for path, content in layouts.files(layout, layout.platforms()[architecture], "")
        if path.startswith(OURS)
    }


def is_binary(content: bytes) -> bool:
    """Whether a file is a program or a library."""
    return content.startswith(b"\x7fELF")


def tags(wheel: bytes) -> list[str]:
    """The tags of a wheel, such as `cp313-cp313-manylinux_2_28_aarch64`."""
    return [line.removeprefix("Tag: ") for line in wheel.decode().splitlines() if line.startswith("Tag: ")]


@pytest.mark.parametrize("part", PARTS)
def test_bill_of_materials_lists_the_locked_versions(repository: Tree, release: Artifacts, part: str) -> None:
    lock = (repository.root / "requirements/runtime.txt").read_text().splitlines()
    locked = {line.split()[0].lower() for line in lock if "==" in line and "platform_python" not in line}
    for architecture in ARCHITECTURES:
        bill = json.loads((release.root / release.bill(part, architecture)).read_text())
        found = {part["name"].lower().replace("_", "-"): part["version"] for part in bill["components"]}
        assert found.pop("memcached-operator") == VERSION
        python = {f"{name}=={version}" for name, version in found.items()}
        assert bool(python & locked) == (part == "operator")
        if part == "operator":
            assert {"kopf", "aiohttp", "msgspec", "cryptography"} <= found.keys()


def test_build_of_the_tag_has_equal_digests(repository: Tree, release: Artifacts, tmp_path: Path) -> None:
    """The release is committed as DRY_RUN=false does it, and built again as the workflow does it."""
    run(["git", "clone", "--quiet", repository.root, tmp_path / "clone"])
    run(["git", "config", "user.name", "test"], cwd=tmp_path / "clone")
    run(["git", "config", "user.email", "test@example.com"], cwd=tmp_path / "clone")
    tagged = Repository(tmp_path / "clone")
    tagged.release(VERSION, (release.root.parent / PATCH).read_text())
    options = [f"--version={VERSION}", f"--output={tmp_path / 'again'}", "--fresh"]
    Tree(tagged.root, repository.python).run("-m", "release", "build", *options)
    again = Artifacts(tmp_path / "again/artifacts")
    assert (again.root / "images.txt").read_text() == (release.root / "images.txt").read_text()
    # Only the provenance names the commit.
    sums, expected = again.sums(), release.sums()
    assert {name for name in sums.keys() | expected.keys() if sums.get(name) != expected.get(name)} == {
        PREDICATE,
        PROVENANCE,
    }
    assert tagged.commit() in (again.root / PROVENANCE).read_text()


def test_uncommitted_changes_are_not_released(repository: Tree) -> None:
    (repository.root / "new").touch()
    try:
        with pytest.raises(ClusterError, match="the tree has uncommitted changes"):
            repository.run("-m", "release", "make", f"--version={VERSION}")
    finally:
        (repository.root / "new").unlink()


def test_version_is_not_released_twice(repository: Tree) -> None:
    run(["git", "tag", f"v{VERSION}"], cwd=repository.root)
    try:
        with pytest.raises(ClusterError, match=f"the tag v{VERSION} exists"):
            repository.run("-m", "release", "make", f"--version={VERSION}")
    finally:
        run(["git", "tag", "--delete", f"v{VERSION}"], cwd=repository.root)


INSECURE = ("--insecure-ignore-tlog", "--allow-http-registry")
"""The options of cosign for signatures without a log, in a registry without TLS."""

Verify = Callable[[str], None]


def downloaded(release: Artifacts, target: Path) -> Artifacts:
    """The files of a release as users download them from its page: in one directory, without the images."""
    found = Artifacts(target / "artifacts")
    found.root.mkdir(parents=True)
    for path in release.root.rglob("*"):
        if path.is_file() and path.relative_to(release.root).parts[0] != IMAGES:
            shutil.copy(path, found.root / path.name)
    return found


@pytest.fixture
def verify(repository: Tree, release: Artifacts, registry: str, keys: Path) -> Verify:
    """Publish the release, signed with a key; the function verifies it with another or the same key's public half."""
    shared = [f"--version={VERSION}", f"--output={release.root.parent}", f"--registry={registry}", "--plain-http"]
    repository.run("-m", "release", "publish", f"--key={keys / 'cosign.key'}", *shared)

    def verified(key: str) -> None:
        repository.run("-m", "release", "verify", f"--key={key}", *shared)

    return verified


def forged(image: bytes) -> bytes:
    """A layer with one more file."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        info = tarfile.TarInfo("forged")
        info.size = len(image)
        tar.addfile(info, io.BytesIO(image))
    return gzip.compress(stream.getvalue())


def test_release_is_verified_and_a_forgery_is_not(
    repository: Tree, release: Artifacts, registry: str, keys: Path, programs: Path, verify: Verify, tmp_path: Path
) -> None:
    public = str(keys / "cosign.pub")
    verify(public)
    files = downloaded(release, tmp_path / "downloaded")
    shared = [f"--output={files.root.parent}", f"--registry={registry}", "--plain-http"]
    repository.run("-m", "release", "verify", f"--version={VERSION}", f"--key={public}", *shared)

    other = tmp_path / "other"
    other.mkdir()
    run([programs / "cosign", "generate-key-pair"], cwd=other)
    with pytest.raises(ClusterError, match="`cosign verify` failed"):
        verify(str(other / "cosign.pub"))

    name = f"{registry}/{release.names()['agent'].partition('/')[2]}"
    (tmp_path / "layer.tar.gz").write_bytes(forged(b"forged"))
    append = ["append", "--insecure", f"--base={name}", f"--new_layer={tmp_path / 'layer.tar.gz'}", f"--new_tag={name}"]
    run([programs / "crane", *append, "--platform=linux/amd64"])
    with pytest.raises(ClusterError, match="no signatures found"):
        run([programs / "cosign", "verify", f"--key={public}", *INSECURE, name])
    with pytest.raises(ClusterError, match=rf"{name} is sha256:\w+, but {release.layout('agent').digest} was released"):
        verify(public)
    run([programs / "crane", "tag", "--insecure", f"{name}@{release.layout('agent').digest}", VERSION])
    verify(public)


def test_changed_file_of_a_release_is_not_verified(release: Artifacts, keys: Path, verify: Verify) -> None:
    file = release.root / "install.yaml"
    before = file.read_text()
    try:
        file.write_text(before.replace("replicas: 2", "replicas: 3"))
        with pytest.raises(ClusterError, match=r"not as released: install\.yaml"):
            verify(str(keys / "cosign.pub"))
        release.write_sums()
        with pytest.raises(ClusterError, match="`cosign verify-blob` failed"):
            verify(str(keys / "cosign.pub"))
    finally:
        file.write_text(before)
        release.write_sums()
