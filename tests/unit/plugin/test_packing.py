"""The executable, its archive and krew's manifest."""

import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from kubectl_memcached.commands.completion import KUBECTL
from plugin.archives import PROGRAM, executable, manifest, tarball
from plugin.errors import PackingError
from plugin.sources import is_kept, pure, sources

STUB = {"kubectl_memcached/__init__.py": b"", "kubectl_memcached/__main__.py": b"def main():\n    print('runs')\n"}


def run(program: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run an executable archive."""
    command = [sys.executable, str(program), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_same_files_give_the_same_bytes() -> None:
    reverse = dict(reversed(STUB.items()))
    program = executable(STUB, "1.2.3")
    assert program == executable(reverse, "1.2.3") != executable(STUB, "1.2.4")
    assert tarball(program, b"license") == tarball(program, b"license")


def test_archive_has_what_krew_needs() -> None:
    with tarfile.open(fileobj=io.BytesIO(tarball(b"program", b"license"))) as tar:
        assert [(member.name, member.mode, member.mtime, member.uid) for member in tar] == [
            ("LICENSE", 0o644, 0, 0),
            (PROGRAM, 0o755, 0, 0),
        ]


def test_manifest_names_the_archive() -> None:
    content = yaml.safe_load(manifest("1.2.3", b"archive", "https://example.com/op"))
    (platform,) = content["spec"]["platforms"]
    assert content["spec"]["version"] == "v1.2.3"
    assert platform["sha256"] == hashlib.sha256(b"archive").hexdigest()
    assert platform["uri"] == "https://example.com/op/releases/download/v1.2.3/kubectl-memcached-1.2.3.tar.gz"


def test_executable_runs(tmp_path: Path) -> None:
    program = tmp_path / PROGRAM
    program.write_bytes(executable(STUB, "1"))
    assert run(program).stdout == "runs\n"


@pytest.mark.parametrize("words", [("--version",), ("status", "--help")])
def test_own_sources_are_complete(words: tuple[str, ...], tmp_path: Path) -> None:
    """With click and rich of this environment: only `make plugin` packs them."""
    program = tmp_path / PROGRAM
    program.write_bytes(executable(sources(), "1.2.3"))
    done = run(program, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert words[0] != "--version" or done.stdout == "kubectl memcached, version 1.2.3\n"


def test_name_of_kubectls_completion_completes(tmp_path: Path) -> None:
    program = tmp_path / KUBECTL
    program.write_bytes(executable(sources(), "1"))
    completions = run(program, "re").stdout.splitlines()
    assert [line.partition("\t")[0] for line in completions] == ["report", "restart", "resume", ":4"]


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("rich/table.py", True),
        ("rich/__pycache__/table.pyc", False),
        ("rich-15.dist-info/licenses/LICENSE", True),
        ("rich-15.dist-info/RECORD", False),
        ("bin/pygmentize", False),
        (".lock", False),
    ],
)
def test_files_of_packages(path: str, kept: bool) -> None:
    assert is_kept(Path(path)) == kept


def test_machine_code_cannot_be_packed() -> None:
    with pytest.raises(PackingError, match=r"a/b\.so is not pure Python"):
        pure({"a/b.so": b""})
