"""Repository rules that no other tool enforces."""

import ast
import re
import tomllib
from collections import Counter
from typing import Any

import pytest
import yaml

from cluster.versions import OLDEST_KUBERNETES
from support import programs
from unit.config.rendered import ROOT

SOURCES = [path for root in ("agent", "api", "operator", "webhooks") for path in sorted((ROOT / root).rglob("*.py"))]
RUNTIME, DEV, CLIENTS, PLUGIN = (f"requirements/{name}.txt" for name in ("runtime", "dev", "clients", "plugin"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements(lock: str) -> dict[str, list[str]]:
    """Each pinned requirement of a lock file with its hashes."""
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    return {line.split()[0]: re.findall(r"--hash=sha256:[0-9a-f]{64}", line) for line in lines}


@pytest.mark.parametrize("lock", [RUNTIME, DEV, CLIENTS, PLUGIN])
def test_locks_pin_all_requirements_with_hashes_and_name_no_index(lock: str) -> None:
    assert [pin for pin, hashes in requirements(lock).items() if "==" not in pin or not hashes] == []
    assert not re.search(r"--(extra-)?index-url|--find-links|://", (ROOT / lock).read_text())


def test_lock_of_npm_names_no_registry() -> None:
    assert "://" not in (ROOT / "tests/clients/programs/node/package-lock.json").read_text()


def test_locks_contain_every_dependency_of_the_project() -> None:
    groups = PROJECT["dependency-groups"]
    wanted = {RUNTIME: PROJECT["project"]["dependencies"], DEV: groups["dev"], PLUGIN: groups["plugin"]}
    for lock, dependencies in wanted.items():
        locked = {pin.split("==")[0] for pin in requirements(lock)}
        assert {re.split(r"[<>=!~\[; ]", each)[0].lower() for each in dependencies} <= locked
    for lock in (RUNTIME, PLUGIN):
        assert requirements(lock).items() <= requirements(DEV).items(), "the lock files have different versions"


def stages() -> dict[str, tuple[str, str]]:
    """The stages of the Dockerfile by name, `operator` for the last one: each with its base and its commands."""
    stage = re.compile(r"^FROM (?:--platform=\S+ )?(\S+)(?: AS (\S+))?\n(.*?)(?=^FROM |\Z)", re.MULTILINE | re.DOTALL)
    found = stage.findall((ROOT / "Dockerfile").read_text())
    return {name or "operator": (base, commands) for base, name, commands in found}


def copied(commands: str) -> list[str]:
    """What the COPY commands of a stage copy: paths, or the stage that they come from."""
    sources = re.findall(r"^COPY (?:--from=(\S+) )?(.+) \S+$", commands, re.MULTILINE)
    return [stage or paths for stage, paths in sources]


def test_dependencies_are_built_from_hashed_requirements() -> None:
    commands = stages()["dependencies"][1]
    assert ("--require-hashes" in commands, "--only-binary :all:" in commands) == (True, True)
    # pip evaluates markers for the machine that builds, whatever its option --platform is.
    assert not re.search(r"; .*(platform_machine|sys_platform|platform_system)", (ROOT / RUNTIME).read_text())


def test_both_images_run_as_non_root_without_installers() -> None:
    found = stages()
    assert list(found)[-2:] == ["agent", "operator"]
    assert [found[each][0] for each in ("agent", "operator")] == ["runtime", "runtime"]
    assert (found["runtime"][0], copied(found["runtime"][1])) == ("scratch", ["pruned"])
    assert (found["base"], copied(found["pruned"][1])) == (("${BASE_IMAGE}", "\n"), ["base"])
    assert re.search(r"^USER 65532:65532$", found["runtime"][1], re.MULTILINE)
    shared = "".join(found[each][1] for each in ("runtime", "agent", "operator"))
    assert (shared.count("USER "), "-m pip" in shared) == (1, False)


def test_each_image_contains_its_own_packages_only() -> None:
    found = {name: copied(commands) for name, (_, commands) in stages().items()}
    assert (found["runtime"], found["project"]) == (["pruned"], ["pyproject.toml"])
    assert (found["agent"], found["agent-source"]) == (["agent-source"], ["agent"])
    assert (found["operator"], found["operator-source"]) == (
        ["dependencies", "operator-source"],
        ["api operator webhooks", "agent/memcached_tls"],
    )


def test_oldest_tested_kubernetes_is_min_kube_version() -> None:
    base = yaml.safe_load((ROOT / "config/manifests/bases/memcached-operator.clusterserviceversion.yaml").read_text())
    assert base["spec"]["minKubeVersion"] == OLDEST_KUBERNETES.removeprefix("v")


def test_dependabot_updates_every_go_module_of_the_tools() -> None:
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    directories = [
        name for each in updates if each["package-ecosystem"] == "gomod" for name in each.get("directories", [])
    ]
    assert sorted(directories) == sorted(
        f"/{path.parent.relative_to(ROOT)}" for path in ROOT.glob("tools/go/**/go.mod")
    )


def test_docs_name_the_tested_cert_manager() -> None:
    module = (ROOT / "tools/go/cert-manager/go.mod").read_text()
    (version,) = re.findall(r"github\.com/cert-manager/cert-manager v(\S+)", module)
    for page in ("install-kubectl.md", "tls.md"):
        assert f"cert-manager {version}" in (ROOT / "docs" / page).read_text()


MAX_PICTURE_BYTES = 150 * 1024


def test_repository_contains_only_text_and_small_pictures() -> None:
    listed = programs.output(["git", "ls-files", "-z"], cwd=ROOT)
    paths = [ROOT / name for name in listed.split("\0") if name]
    pictures = {path for path in paths if path.parent == ROOT / "docs/images" and path.suffix == ".png"}
    assert [path.name for path in pictures if path.stat().st_size > MAX_PICTURE_BYTES] == []
    paths = [path for path in paths if path not in pictures]
    assert [str(path) for path in paths if path.is_file() and b"\0" in path.read_bytes()[:8192]] == []


def test_desired_state_and_status_do_not_read_the_clock() -> None:
    checked = [path for path in SOURCES if path.parent.name == "desired" or path.name in ("desired.py", "status.py")]
    calls = {
        (path.name, node.attr)
        for path in checked
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}
    }
    assert calls == set()


def test_files_have_at_most_500_lines_and_folders_at_most_14_modules() -> None:
    product = [*SOURCES, *(ROOT / "tools").rglob("*.py")]
    checked = [*product, *(ROOT / "tests").rglob("*.py"), *(ROOT / "measure").rglob("*.py")]
    assert [str(path) for path in checked if len(path.read_text().splitlines()) > 500] == []
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in product)
    assert {folder: count for folder, count in folders.items() if count > 14} == {}, "split it into packages"
