"""README.md, CONTRIBUTING.md and docs/ agree with the code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from prometheus_client import CollectorRegistry

from cluster.versions import OLDEST_KUBERNETES, SUPPORTED
from memcached_api import conditions
from memcached_api.kinds import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_api.registry import KINDS
from memcached_api.values import nested_field
from memcached_operator.__main__ import main as operator_command
from memcached_operator.metrics import REGISTRY
from memcached_webhooks.__main__ import main as webhooks_command
from memcached_webhooks.kinds.memcached import placing_defaults
from memcached_webhooks.metrics import Metrics
from unit.config.rendered import ROOT

README = (ROOT / "README.md").read_text()
USAGE = (ROOT / "docs/usage.md").read_text()
OPERATING = (ROOT / "docs/operating.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = [page for page in PAGES if page.parent.name == "decisions" and page.name != "README.md"]
STANDARD_PREFIXES = ("python_", "process_")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_linked_files_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not link.startswith("http") and not (page.parent / link).exists()] == []


def _anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub derives them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_linked_anchors_exist(page: Path) -> None:
    links: list[tuple[str, str]] = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text())
    missing = [link for link in links if link[1] not in _anchors((page.parent / link[0]) if link[0] else page)]
    assert missing == []


def test_pages_are_short() -> None:
    lines = {page: len(page.read_text().splitlines()) for page in PAGES}
    assert lines[ROOT / "README.md"] <= 120
    assert [page.name for page in DECISIONS if lines[page] > 60] == []


def test_every_decision_has_all_sections() -> None:
    decisions = [page.read_text() for page in DECISIONS]
    for heading in ("**Context.**", "**Decision.**", "**Figures.**", "**Consequences.**"):
        assert all(text.count(heading) == 1 for text in decisions)


def _examples(page: str) -> list[dict[str, Any]]:
    """The objects in the YAML blocks of a page."""
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    return [each for block in blocks for each in yaml.safe_load_all(block)]


def test_readme_example_is_valid() -> None:
    (example,) = _examples("README.md")
    assert (example["kind"], MEMCACHED.validate(example)) == (MEMCACHED.name, [])


def test_usage_examples_are_valid() -> None:
    examples = _examples("docs/usage.md")
    assert [example["kind"] for example in examples] == [kind.name for kind in KINDS]
    assert [kind.validate(example) for kind, example in zip(KINDS, examples, strict=True)] == [[]] * len(KINDS)


def _specs(page: str) -> list[dict[str, Any]]:
    """The Memcacheds in the YAML blocks of a page, which may show only the spec, or only `tls`."""
    head = {"apiVersion": "cache.example.com/v1", "kind": MEMCACHED.name, "metadata": {"name": "sessions"}}
    examples = [{"spec": each} if each.keys() == {"tls"} else each for each in _examples(page)]
    objects = [head | each for each in examples if "kind" in each or "spec" in each]
    return [each for each in objects if each["kind"] == MEMCACHED.name]


@pytest.mark.parametrize(
    ("page", "number"), [("docs/placing.md", 5), ("docs/security.md", 1), ("docs/tls.md", 3), ("docs/auth.md", 1)]
)
def test_other_examples_are_valid(page: str, number: int) -> None:
    examples = _specs(page)
    assert (len(examples), [MEMCACHED.validate(example) for example in examples]) == (number, [[]] * number)


def test_documented_defaults_of_new_objects_are_those_of_admission() -> None:
    fields = {f"spec/{path}": value for path, value in placing_defaults(None).items()}
    (documented, *_) = _examples("docs/placing.md")
    assert {path: nested_field(documented, *path.split("/")) for path in fields} == fields
    assert sum(1 for _ in _leaves(documented)) == sum(1 for _ in _leaves(fields))


def _leaves(value: Any) -> Iterator[Any]:
    """The values within objects; lists are values."""
    if isinstance(value, dict):
        for each in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(each)
    else:
        yield value


def test_autoscaler_example_scales_a_memcached() -> None:
    (example,) = _examples("docs/scaling.md")
    assert (example["apiVersion"], example["kind"]) == ("autoscaling/v2", "HorizontalPodAutoscaler")
    target = {"apiVersion": "cache.example.com/v1", "kind": MEMCACHED.name, "name": example["metadata"]["name"]}
    assert example["spec"]["scaleTargetRef"] == target
    commands = [text for text in (ROOT / "docs/scaling.md").read_text().split("'") if "scaleTargetRef" in text]
    assert [yaml.safe_load(command)["spec"]["scaleTargetRef"] for command in commands if command[0] == "{"] == [target]


def test_tested_versions_are_documented_and_the_oldest_is_min_kube_version() -> None:
    tested = [version.removeprefix("v") for version in SUPPORTED]
    for page in ("README.md", "docs/install.md"):
        assert [version for version in tested if version not in (ROOT / page).read_text()] == []
    base = yaml.safe_load((ROOT / "config/manifests/bases/memcached-operator.clusterserviceversion.yaml").read_text())
    assert base["spec"]["minKubeVersion"] == OLDEST_KUBERNETES.removeprefix("v")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_is_documented(kind: Kind[Any]) -> None:
    missing = [field for field in kind.spec.__struct_encode_fields__ if f"`{field}" not in USAGE]
    assert missing == []


def test_table_of_reasons_exists_once() -> None:
    reasons = {reason for meanings in conditions.MEANINGS.values() for reason in meanings}
    types = "|".join(conditions.TYPES)
    rows = {
        reason: re.compile(rf"^\|( *`?({types})[^|]*\|)? *`{reason}` *\|", flags=re.MULTILINE) for reason in reasons
    }
    found = {reason: [page.name for page in PAGES if row.search(page.read_text())] for reason, row in rows.items()}
    assert found == {reason: ["api.md"] for reason in reasons}
    assert "](docs/api.md#conditions)" in README
    assert all("](api.md#conditions)" in text for text in (USAGE, OPERATING))


@pytest.mark.parametrize("command", [operator_command, webhooks_command], ids=["operator", "webhooks"])
def test_every_flag_is_documented(command: click.Command) -> None:
    flags = {option.opts[0] for option in command.params} - {"--version", "--help"}
    assert flags
    assert [flag for flag in sorted(flags) if f"`{flag}`" not in OPERATING] == []


@pytest.mark.parametrize("registry", [REGISTRY, Metrics().registry], ids=["operator", "webhooks"])
def test_every_metric_is_documented(registry: CollectorRegistry) -> None:
    names = [metric.name for metric in registry.collect()]
    documented = set(re.findall(r"[a-z]+(?:_[a-z]+)+", OPERATING))
    ours = [name for name in names if not name.startswith(STANDARD_PREFIXES)]
    assert ours
    assert [name for name in ours if not _is_documented(name, documented)] == []


def _is_documented(name: str, documented: set[str]) -> bool:
    """Whether the page has the full name, with or without `_total`, or the end of the name after `…`."""
    return any(f"{name}{end}" in documented for end in ("", "_total")) or any(
        f"…{name[at:]}{end}" in OPERATING for at in range(len(name)) for end in ("`", "_total`") if name[at] == "_"
    )
