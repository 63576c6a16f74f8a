"""The text of the route handler, and its way into the packages."""

import tomllib
from pathlib import Path
from typing import Final

from memcached_operator.memcachedproxy.desired import handler as module
from memcached_operator.memcachedproxy.desired.handler import handler

ROOT: Final = Path(__file__).parents[3]
SOURCE: Final = Path(module.__file__).with_suffix(".lua")
MAX_SIZE: Final = 9728
"""Bytes. An annotation of each pod has the text."""


def strings(text: str) -> list[str]:
    """The string literals of a Lua program without comments, none of which has an escaped quote."""
    return text.split('"')[1::2]


def test_text_has_no_comments_and_the_same_strings() -> None:
    source = "\n".join(line.partition("-- ")[0] for line in SOURCE.read_text().splitlines())
    assert strings(handler()) == strings(source)
    assert "--" not in handler()
    assert len(handler().encode()) <= MAX_SIZE


def test_packages_contain_the_handler() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns: list[str] = project["tool"]["setuptools"]["package-data"]["*"]
    assert any(SOURCE.match(pattern) for pattern in patterns)
