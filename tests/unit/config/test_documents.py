"""Links in the documentation lead to a page or a heading, and its examples are valid."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard, cast

import click
import pytest
import yaml

from memcached_api.images import Images
from memcached_api.memcached.types import MEMCACHED
from memcached_api.registry import KINDS
from memcached_operator.__main__ import main as operator_command
from memcached_webhooks.__main__ import main as webhooks_command
from memcached_webhooks.kinds.memcached import warnings
from support.code_blocks import code_blocks
from unit.config.rendered import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
HEAD = {"apiVersion": "cache.example.com/v1", "kind": MEMCACHED.name, "metadata": {"name": "sessions"}}
PAGES_WITH_EXAMPLES = {
    *("README.md", "usage.md", "placing.md", "security.md", "tls.md", "auth.md", "migrating.md", "air-gap.md")
}
GROUPS = {kind.group for kind in KINDS}


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub derives them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_linked_files_and_anchors_exist(page: Path) -> None:
    links: list[tuple[str, str]] = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", page.read_text())
    targets = [(page.parent / path if path else page, anchor) for path, anchor in links]
    assert [path for path, _ in targets if not path.exists()] == []
    assert [(path, anchor) for path, anchor in targets if anchor and anchor not in anchors(path)] == []


def examples(page: Path) -> list[dict[str, Any]]:
    """The objects of our kinds in the YAML blocks of a page, which may show only the spec, or only `tls`.

    Not those of a kind with the same name in the group of another operator (migrating.md).
    """
    found = [each for block in code_blocks(page.read_text(), "yaml") for each in yaml.safe_load_all(block)]
    found = [{"spec": each} if each.keys() == {"tls"} else each for each in found]
    objects = [HEAD | each for each in found if "kind" in each or "spec" in each]
    ours = [each for each in objects if each["kind"] in {kind.name for kind in KINDS}]
    return [each for each in ours if str(each["apiVersion"]).partition("/")[0] in GROUPS]


def test_examples_are_valid() -> None:
    kinds = {kind.name: kind for kind in KINDS}
    found = {page: [kinds[each["kind"]].validate(each) for each in examples(page)] for page in PAGES}
    assert {page.name for page, errors in found.items() if errors} >= PAGES_WITH_EXAMPLES
    assert {page: errors for page, errors in found.items() if any(errors)} == {}


def unknown(value: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """The fields that a schema does not have; the API server prunes them."""
    if isinstance(value, list):
        return [field for item in cast("list[Any]", value) for field in unknown(item, schema.get("items", {}), path)]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    items = [(f"{path}.{name}", part, schema["properties"].get(name)) for name, part in cast("Any", value).items()]
    found = [field for name, part, known in items if known is not None for field in unknown(part, known, name)]
    return [*(name for name, _, known in items if known is None), *found]


@cache
def schemas_of(group: str, name: str) -> dict[str, Any]:
    """The schema of each version of a kind."""
    (kind,) = (each for each in KINDS if (each.group, each.name) == (group, name))
    crd = yaml.safe_load((ROOT / f"config/crd/bases/{group}_{kind.plural}.yaml").read_text())
    return {each["name"]: each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"]}


def test_examples_have_known_fields() -> None:
    for page in PAGES:
        for example in examples(page):
            group, _, version = str(example["apiVersion"]).partition("/")
            schemas = schemas_of(group, example["kind"])
            assert (page.name, unknown(example["spec"], schemas[version]["properties"]["spec"])) == (page.name, [])


def test_first_example_has_no_warning() -> None:
    assert warnings(examples(ROOT / "README.md")[0], None, Images("memcached:1")) == []


@pytest.mark.parametrize("command", [operator_command, webhooks_command], ids=["operator", "webhooks"])
def test_every_flag_is_documented(command: click.Command) -> None:
    text = (ROOT / "docs/operating.md").read_text()
    flags = {option.opts[0] for option in command.params} - {"--version", "--help"}
    assert [flag for flag in sorted(flags) if f"`{flag}`" not in text] == []


def test_named_tests_exist() -> None:
    named: dict[str, set[str]] = {}
    for page in PAGES:
        for file, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text()):
            named.setdefault(file, set()).add(test)
    for file, tests in named.items():
        functions = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if is_function(node)}
        assert (file, tests - functions) == (file, set())
    assert len(named) >= 20


def is_function(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    """True for a function."""
    return isinstance(node, ast.FunctionDef)
