"""The digest of figures depends on the code that the measurement runs, and on nothing else."""

import shutil
from pathlib import Path

import pytest

from pages.figures import FIGURES, PRODUCT, ROOT, digest, outdated

COPIED = (
    *PRODUCT,
    "docs",
    "requirements",
    "tests/bench",
    "tests/insight",
    "tests/faults/campaigns",
    "tools/go/etcd",
    "tools/go/kwok",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the digests depend on."""
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "images"))
    return tmp_path


def changed(tree: Path) -> set[str]:
    """The figures whose digest is not that of the tree of these tests."""
    return {name for name in FIGURES if digest(name, tree) != digest(name)}


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("operator/memcached_operator/__main__.py", "X = 1", {"bench", "soak"}),
        ("api/memcached_api/quantity.py", "X = 1", {"bench", "soak"}),
        ("webhooks/memcached_webhooks/review.py", "X = 1", {"bench"}),
        ("agent/memcached_agent/insight/schedule.py", "X = 1", {"insight"}),
        ("tests/bench/rounds.py", "X = 1", {"bench"}),
        ("tests/faults/campaigns/soak.py", "X = 1", {"soak"}),
        ("requirements/runtime.txt", "new==1.0 \\", {"bench", "insight", "soak"}),
        ("operator/memcached_operator/__main__.py", "# a comment", set[str]()),
        ("api/memcached_api/quantity.py", '"""A text."""', set[str]()),
        ("tests/bench/report.py", "X = 1", set[str]()),
        ("operator/memcached_operator/unused.py", "X = 1", set[str]()),
    ],
)
def test_change_of_what_is_measured_changes_the_digest(path: str, text: str, names: set[str], tree: Path) -> None:
    with (tree / path).open("a") as file:
        file.write(f"\n{text}\n")
    assert changed(tree) == names


def test_image_that_a_release_writes_does_not_change_the_digest(tree: Path) -> None:
    file = tree / "api/memcached_api/images.py"
    before = file.read_text()
    file.write_text(before.replace("memcached-operator-agent:", "another-agent:"))
    assert file.read_text() != before
    assert changed(tree) == set()


def test_outdated_figures_are_named_with_the_command_that_measures_them(tree: Path) -> None:
    for name, figures in FIGURES.items():
        (tree / figures.file).write_text(f'{{"sources": "{digest(name, tree)}"}}')
    assert outdated(tree) == []
    (tree / FIGURES["bench"].file).write_text('{"sources": "0123456789ab"}')
    (found,) = outdated(tree)
    assert found.startswith("the figures in docs/performance.md were measured with other sources: run `make bench`")
