"""The creation of .venv; missing programs are reported in one sentence with the remedy."""

import ast
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from project import venv
from project.venv import VenvError
from unit.config.rendered import ROOT


@pytest.mark.parametrize(("version", "accepted"), [((3, 9), False), ((3, 10), False), ((3, 11), True), ((4, 0), True)])
def test_python_3_11_is_the_oldest(version: tuple[int, ...], accepted: bool) -> None:
    if accepted:
        venv.check_version(version, "python3")
        return
    with pytest.raises(VenvError) as caught:
        venv.check_version(version, "python3")
    assert str(caught.value) == (
        f"python3 is Python 3.{version[1]}, but 3.11 or newer is needed: "
        "install one and name it, for example `make venv PYTHON3=python3.13`"
    )


def test_old_python_can_parse_it() -> None:
    for name in ("__init__", "venv"):
        tree = ast.parse((ROOT / f"tools/project/{name}.py").read_text(), feature_version=(3, 8))
        imported = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
        imported |= {name.name for each in ast.walk(tree) if isinstance(each, ast.Import) for name in each.names}
        assert imported <= {*sys.stdlib_module_names} - {"tomllib"}


def test_stamp_changes_with_every_input() -> None:
    names = {venv.stamp_name(inputs) for inputs in ([b"a", b"b"], [b"a", b"c"], [b"x", b"b"])}
    assert len(names) == 3
    assert all(name.startswith(venv.STAMP) for name in names)


def test_unchanged_inputs_do_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / venv.stamp_name(venv.inputs())).touch()
    assert venv.main([str(tmp_path)]) == 0
    assert capfd.readouterr() == ("", "")
    assert len(list(tmp_path.iterdir())) == 1


def test_missing_module_is_reported_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(venv, "has_venv", lambda: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(VenvError, match=r"^Python's venv module is missing: install the package python3-venv and run"):
        venv.ensure_venv()


def test_failed_command_is_reported_in_one_sentence(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    words = [sys.executable, "-m", "project.venv", str(blocked / "venv")]
    done = subprocess.run(words, env={"PYTHONPATH": str(ROOT / "tools")}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")


def test_newer_version_of_a_dependency_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """pip before 23.3 tries the newest version of a dependency that is needed with an extra, in spite of the lock."""
    wheels = [wheel(tmp_path, "base", "1.0"), wheel(tmp_path, "user", "1.0", "Requires-Dist: base[extra]>=1.0")]
    wheel(tmp_path, "base", "2.0")
    pins = [f"{each.name.replace('-', '==', 1).split('-')[0]} --hash=sha256:{digest(each)}" for each in wheels]
    (tmp_path / "lock.txt").write_text("\n".join(pins))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    venv.run([sys.executable, "-m", "venv", str(tmp_path / "venv")])
    python = str(tmp_path / "venv/bin/python")
    venv.install(python, "--require-hashes", "-r", str(tmp_path / "lock.txt"))
    listed = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == ["base==1.0", "user==1.0"]


def wheel(folder: Path, name: str, version: str, *metadata: str) -> Path:
    """A package without modules."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", "Provides-Extra: extra", *metadata]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
