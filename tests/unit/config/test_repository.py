"""Repository rules that no other tool enforces."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from unit.config.rendered import ROOT

SOURCES = [path for root in ("agent", "api", "operator", "webhooks") for path in sorted((ROOT / root).rglob("*.py"))]
PACKAGES = ("memcached_agent", "memcached_api", "memcached_operator", "memcached_process", "memcached_webhooks")
LOCKS = ("requirements/runtime.txt", "requirements/dev.txt")
CLIENTS_LOCK = "requirements/clients.txt"
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules["kubernetes"] = None
for name in {packages!r}:
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""


def imports(path: Path) -> set[str]:
    """The top-level packages that a file imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def requirements(lock: str) -> dict[str, list[str]]:
    """Each pinned requirement of a lock file with its hashes."""
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    return {line.split()[0]: re.findall(r"--hash=sha256:[0-9a-f]{64}", line) for line in lines}


def dockerfile_stages() -> list[str]:
    """The stages of the Dockerfile, without comments."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    return re.split(r"^FROM ", "\n".join(lines), flags=re.MULTILINE)[1:]


def test_operator_directory_is_not_a_package() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists(), "it would shadow the standard library's operator module"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_imports_the_kubernetes_package(path: Path) -> None:
    assert not imports(path) & {"kubernetes", "kubernetes_asyncio"}


def test_all_modules_import_without_the_kubernetes_package() -> None:
    code = IMPORT_ALL.format(packages=PACKAGES)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT / "tests")
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("lock", [*LOCKS, CLIENTS_LOCK])
def test_locks_pin_all_requirements_with_hashes_and_name_no_index(lock: str) -> None:
    pins = requirements(lock)
    assert [pin for pin, hashes in pins.items() if "==" not in pin or not hashes] == []
    assert not re.search(r"--(extra-)?index-url|--find-links|://", (ROOT / lock).read_text())


def test_locks_contain_every_dependency_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {
        LOCKS[0]: project["dependencies"],
        LOCKS[1]: project["dependencies"] + project["optional-dependencies"]["dev"],
    }
    for lock, dependencies in wanted.items():
        locked = {pin.split("==")[0] for pin in requirements(lock)}
        assert {re.split(r"[<>=!~\[; ]", each)[0].lower() for each in dependencies} <= locked
    assert "kubernetes" not in {pin.split("==")[0] for pin in requirements(LOCKS[0])}
    assert requirements(LOCKS[0]).items() <= requirements(LOCKS[1]).items(), "the lock files have different versions"


def test_lock_of_the_client_tests_has_their_libraries() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    locked = {pin.split("==")[0] for pin in requirements(CLIENTS_LOCK)}
    assert {re.split(r"[<>=]", each)[0] for each in groups["clients"]} == locked


def test_final_image_stage_has_no_tools_and_runs_as_non_root() -> None:
    *builders, final = dockerfile_stages()
    assert all("-m pip" in stage or "-m compileall" in stage for stage in builders)
    assert "--require-hashes" in builders[0]
    assert "-m pip" not in final
    assert "apt-get" not in final
    assert re.search(r"^USER 65532:65532$", final, flags=re.MULTILINE)
    assert re.search(r"^ENTRYPOINT \[\]$", final, flags=re.MULTILINE)
    assert "PYTHONDONTWRITEBYTECODE=1" in final


def test_image_contains_the_scripts_of_pyproject() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    parts = {name.removeprefix("memcached-") for name in scripts}
    assert scripts == {f"memcached-{part}": f"memcached_{part}.__main__:main" for part in parts}
    assert all(part in "\n".join(dockerfile_stages()) for part in parts)


def test_desired_state_and_status_do_not_read_the_clock() -> None:
    checked = [path for path in SOURCES if path.parent.name == "desired" or path.name in ("desired.py", "status.py")]
    calls = {
        (path.name, node.attr)
        for path in checked
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}
    }
    assert calls == set()


def test_files_have_at_most_500_lines() -> None:
    checked = [*SOURCES, *(ROOT / "tools").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    assert [str(path) for path in checked if len(path.read_text().splitlines()) > 500] == []


def test_no_folder_has_more_modules_than_a_reader_can_survey() -> None:
    checked = [*SOURCES, *(ROOT / "tools").rglob("*.py")]
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in checked)
    assert {folder: count for folder, count in folders.items() if count > 14} == {}, "split it into packages"
