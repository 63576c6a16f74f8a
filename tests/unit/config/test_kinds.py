"""A kind consists of its own files and one registration for each program; nothing else refers to it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crds import config
from crds.registered import REGISTERED
from memcached_api.images import Images
from memcached_api.kinds import Kind
from memcached_api.registry import KINDS
from memcached_operator.kinds import kinds
from unit.config.rendered import ROOT

SOURCES = [path for root in ("api", "operator", "webhooks") for path in sorted((ROOT / root).rglob("*.py"))]
REGISTRATIONS = {"memcached_api.registry", "memcached_operator.kinds"}
PROGRAMS = {f"memcached_operator.{name}" for name in ("app", "__main__")} | {"memcached_webhooks.__main__"}
"""Use the image of memcached, which is an option of both programs."""
MAX_FILES = 8
NAMES = [kind.name.lower() for kind in KINDS]


def module(path: Path) -> str:
    """The name of the module in a file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts[1:]).removesuffix(".__init__")


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, and the names that it imports from them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def kind_of(name: str) -> str | None:
    """The kind to which a module, or a name in it, belongs; None for those of all kinds."""
    found = re.match(r"memcached_(?:api|operator|webhooks\.kinds)\.(\w+)", name)
    return found[1] if found and found[1] in NAMES else None


def test_names_belong_to_their_kind() -> None:
    names = ("memcached_api.memcached.types.MEMCACHED", "memcached_webhooks.kinds.appservice", "memcached_api.image")
    assert [kind_of(name) for name in names] == ["memcached", "appservice", None]


@pytest.mark.parametrize("path", SOURCES, ids=module)
def test_only_the_kind_itself_and_registrations_import_a_kind(path: Path) -> None:
    if module(path) in REGISTRATIONS | PROGRAMS:
        return
    others = [name for name in imported(path) if kind_of(name) not in (None, kind_of(module(path)))]
    assert others == [], "move what kinds share to a package below them"


@pytest.mark.parametrize("path", [path for path in SOURCES if kind_of(module(path))], ids=module)
def test_kinds_do_not_import_registrations_or_programs(path: Path) -> None:
    assert [name for name in imported(path) if name.rpartition(".")[0] in REGISTRATIONS | PROGRAMS] == []


def test_every_kind_of_the_api_has_one_controller() -> None:
    controllers = [(each.resource.group, each.resource.kind) for each in kinds(Images())]
    assert controllers == [(kind.group, kind.name) for kind in KINDS]


def test_admission_modules_have_the_name_of_a_kind() -> None:
    modules = {path.stem for path in (ROOT / "webhooks/memcached_webhooks/kinds").glob("*.py")} - {"__init__"}
    assert modules <= set(NAMES), "this module is never used"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_manually_written_configuration_does_not_name_a_kind(kind: Kind[Any]) -> None:
    generated = {ROOT / path for path in config.files(REGISTERED, ROOT)}
    written = {path for path in (ROOT / "config").rglob("*") if path.is_file()} - generated
    names = re.compile(rf"\b({kind.plural}|{kind.name.lower()}-(admin|editor|viewer)-role)\b")
    assert [str(path) for path in written if names.search(path.read_text())] == []


def listed_files() -> list[str]:
    """The files that docs/architecture.md lists for a new kind."""
    page = (ROOT / "docs/architecture.md").read_text()
    section = page.partition("## How to add a kind\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([^`]+)`", section, flags=re.MULTILINE)


def test_documentation_lists_at_most_8_files_for_a_new_kind() -> None:
    assert 0 < len(listed_files()) <= MAX_FILES
    assert {"api/memcached_api/registry.py", "operator/memcached_operator/kinds.py"} <= set(listed_files())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_both_kinds_have_the_listed_files(kind: Kind[Any]) -> None:
    values = {"kind": kind.name.lower(), "group": kind.group.partition(".")[0], "version": kind.versions[0]}
    paths = [re.sub(r"<(\w+)>", lambda found: values[found[1]], path) for path in listed_files()]
    assert [path for path in paths if not (ROOT / path).exists() and not (ROOT / f"{path}.py").exists()] == []
