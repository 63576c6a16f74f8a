"""A kind consists of its own files and one registration for each program; nothing else refers to it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crds import config
from crds.registered import REGISTERED
from memcached_api.kind import Kind
from memcached_api.registry import KINDS
from unit.config.rendered import ROOT

SOURCES = [path for root in ("api", "operator", "webhooks") for path in sorted((ROOT / root).rglob("*.py"))]
REGISTRATIONS = {"memcached_api.registry", "memcached_operator.kinds"}
PROGRAMS = {f"memcached_operator.{name}" for name in ("app", "__main__")} | {"memcached_webhooks.__main__"}
"""Use the image of memcached, which is an option of both programs."""
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


def test_only_the_kind_itself_and_registrations_import_a_kind() -> None:
    users = {module(path): imported(path) for path in SOURCES if module(path) not in REGISTRATIONS | PROGRAMS}
    found = {
        user: [name for name in names if kind_of(name) not in (None, kind_of(user))] for user, names in users.items()
    }
    assert {user: names for user, names in found.items() if names} == {}, (
        "move what kinds share to a package below them"
    )


def test_kinds_do_not_import_registrations_or_programs() -> None:
    users = {module(path): imported(path) for path in SOURCES if kind_of(module(path))}
    assert set(map(kind_of, users)) == set(NAMES)
    found = {
        user: {name.rpartition(".")[0] for name in names} & (REGISTRATIONS | PROGRAMS) for user, names in users.items()
    }
    assert {user: names for user, names in found.items() if names} == {}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_manually_written_configuration_does_not_name_a_kind(kind: Kind[Any]) -> None:
    generated = {ROOT / path for path in config.files(REGISTERED, ROOT)}
    written = {path for path in (ROOT / "config").rglob("*") if path.is_file()} - generated
    names = re.compile(rf"\b({kind.plural}|{kind.name.lower()}-(admin|editor|viewer)-role)\b")
    assert [str(path) for path in written if names.search(path.read_text())] == []
