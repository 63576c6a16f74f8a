"""The executable, its archive and krew's manifest."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kubectl_memcached.commands.completion import KUBECTL
from plugin.archives import PROGRAM, executable, manifest
from plugin.sources import is_kept, sources
from support import programs


def run(program: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run an executable archive."""
    command = [sys.executable, str(program), *words]
    return programs.run(command, timeout=60)


def test_manifest_names_the_archive() -> None:
    content = yaml.safe_load(manifest("1.2.3", b"archive", "https://example.com/op"))
    (platform,) = content["spec"]["platforms"]
    assert content["spec"]["version"] == "v1.2.3"
    assert platform["sha256"] == hashlib.sha256(b"archive").hexdigest()
    assert platform["uri"] == "https://example.com/op/releases/download/v1.2.3/kubectl-memcached-1.2.3.tar.gz"


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
