"""mkdocs.yml, as far as this project reads it itself."""

from collections.abc import Iterator
from typing import Any, cast

import yaml


class Loader(yaml.SafeLoader):
    """Reads the names of Python functions, which Zensical resolves, as texts."""


def _text(_: yaml.SafeLoader, name: str, __: yaml.Node) -> str:
    return name


Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", _text)  # pyright: ignore[reportUnknownMemberType]


def configuration(text: str) -> dict[str, Any]:
    """The settings in the text of mkdocs.yml."""
    return yaml.load(text, Loader)  # noqa: S506 (a SafeLoader)


def entries(nav: list[Any]) -> Iterator[tuple[str, str]]:
    """Title and page of each entry of a navigation, in its order."""
    for entry in nav:
        ((title, value),) = cast("dict[str, Any]", entry).items()
        if isinstance(value, list):
            yield from entries(cast("list[Any]", value))
        else:
            yield title, str(value)
