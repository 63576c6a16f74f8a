"""Each remedy that the product gives is in tests/remedies.yaml, with the tests that apply it as it is written."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from memcached_api.remedies import Action, added, assigned, changed, corrected, lowered, raised, relaxed
from support.literals import literals

ROOT: Final = Path(__file__).parents[3]
LIST: Final[dict[str, Any]] = yaml.safe_load((ROOT / "tests/remedies.yaml").read_text())
REMEDIES: Final[dict[str, dict[str, str]]] = {
    file: {part: names for names, parts in by_names.items() for part in parts}
    for file, by_names in LIST["remedies"].items()
}
"""By file: a part of each remedy, and the short names of its tests, after `loses` if items are lost."""
UNTRIED: Final[dict[str, list[str]]] = LIST["untried"]
PAGES: Final = ("docs/troubleshoot.md", "docs/alerts.md")
SOURCES: Final = (
    *(f"operator/memcached_operator/{name}" for name in ("memcached", "appservice", "parts", "findings", "engine")),
    "agent/memcached_agent",
    "plugin/kubectl_memcached",
    "api/memcached_api/conditions.py",
    "webhooks/memcached_webhooks/kinds",
    "webhooks/memcached_webhooks/defaults.py",
    "operator/memcached_operator/memcachedproxy",
)
"""Where users get remedies. Those of admission are all tried by one test, and those of command lines are left out."""
VERBS: Final = (
    "add|change|correct|create|delete|exclude|free|give|issue|let|lower|raise|relax|remove|rename|renew|replace|request|"
    "restart|restore|run|set|stop|store|uncordon|upgrade|use|write"
)
RENDERED: Final[dict[str, Callable[..., Action]]] = {
    each.__name__: each for each in (added, assigned, changed, corrected, lowered, raised, relaxed)
}
"""The functions whose texts follow from fields."""
IMPERATIVE: Final = re.compile(rf"(?:^|[.;:] |, or |\bor |\bTo [^.]+, )(?:{VERBS})\b ", re.IGNORECASE)
LOSES: Final = re.compile(
    r"\b(?:delete|replace) the pods?\b|(?<!not )\bset \S*restartedAt|\breplaces the pods\b", re.IGNORECASE
)
LOSS: Final = re.compile(r"\b(?:lose|lost)\b")


def rows(page: str) -> Iterator[str]:
    """The rows of tables with remedies, except mere links, and the remedy of each alert after its name."""
    heading, columns = "", list[str]()
    for line in (ROOT / page).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        has_remedy = columns[-1:] in (["Fix"], ["Remedy"]) and cells and not set(line) <= set("|-")
        if has_remedy and not re.fullmatch(r"See [^.]*", cells[-1]):
            yield f"{heading}: {' | '.join(cells)}"
        columns = [] if not cells else columns or cells
        heading = line.lstrip("# ") if line.startswith("#") else heading
    for section in re.split(r"^### ", (ROOT / page).read_text(), flags=re.MULTILINE)[1:]:
        if "**Remedy.**" in section:
            text = section.partition("**Remedy.**")[2].partition("\n\n")[0]
            yield f"{section.partition(chr(10))[0]}: {' '.join(text.split())}"


def remedies_in(path: Path) -> Iterator[str]:
    """The texts of a module that tell users what to do. What is inserted is `{}`."""
    if "from memcached_api.remedies import" in (source := path.read_text()):
        yield from filter(None, map(rendered, ast.walk(ast.parse(source))))
    yield from filter(IMPERATIVE.search, literals(path))


def rendered(node: ast.AST) -> str:
    """The text of a remedy that is built from constant fields; empty for another node."""
    build = RENDERED.get(node.func.id) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
    if build is None or not isinstance(node, ast.Call):
        return ""
    return build(*(ast.literal_eval(arg) if isinstance(arg, ast.Constant) else "{}" for arg in node.args)).text


@cache
def texts() -> dict[str, list[str]]:
    """All texts with remedies by file."""
    found = {page: list(rows(page)) for page in PAGES}
    for source in SOURCES:
        paths = [ROOT / source] if source.endswith(".py") else sorted((ROOT / source).rglob("*.py"))
        found |= {str(path.relative_to(ROOT)): given for path in paths if (given := list(remedies_in(path)))}
    return found


def test_each_remedy_is_listed() -> None:
    missing = [
        f"{file}: {text}"
        for file, given in texts().items()
        for text in given
        if not any(part in text for part in (*REMEDIES.get(file, ()), *UNTRIED.get(file, ()), *LIST["others"]))
    ]
    assert missing == []


def test_each_listed_remedy_is_given() -> None:
    gone = [
        f"{file}: {part}"
        for file in REMEDIES.keys() | UNTRIED.keys()
        for part in (*REMEDIES.get(file, ()), *UNTRIED.get(file, ()))
        if not any(part in text for text in texts().get(file, ()))
    ]
    assert gone == []
    everything = [text for given in texts().values() for text in given]
    assert [part for part in LIST["others"] if not any(part in text for text in everything)] == []


@pytest.mark.parametrize("name", LIST["tests"])
def test_each_test_exists_and_is_named(name: str) -> None:
    path, _, function = LIST["tests"][name].partition("::")
    assert re.search(rf"^ *def {function}\(", (ROOT / "tests" / path).read_text(), re.MULTILINE)
    assert any(name in value.split() for parts in REMEDIES.values() for value in parts.values())


def test_each_remedy_names_known_tests() -> None:
    values = {value for parts in REMEDIES.values() for value in parts.values()}
    assert {name for value in values for name in value.split()} <= {*LIST["tests"], "loses"}
    assert [value for value in values if not value.removeprefix("loses").strip()] == []


def test_remedy_that_loses_items_says_so() -> None:
    for file, given in texts().items():
        for text in (each for each in given if not any(part in each for part in LIST["exempt"])):
            marked = any(part in text and "loses" in value for part, value in REMEDIES.get(file, {}).items())
            assert not LOSES.search(text) or marked, f"{file}: {text}"
            assert not marked or LOSS.search(text), f"{file}: {text}"
