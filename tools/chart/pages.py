"""The tables of values in the chart's README and in the docs."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from chart.settings import SECTION_TEXTS, Setting
from pages.blocks import table

BLOCK: Final = "values"
"""The name of the generated block in both pages."""


def blocks(settings: Sequence[Setting]) -> dict[str, str]:
    """The generated block: a table of all values with their defaults."""
    return {BLOCK: table([("Value", "Default", "Meaning"), *_rows(settings)])}


def _rows(settings: Sequence[Setting]) -> Iterator[tuple[str, ...]]:
    section = ""
    for each in settings:
        name = each.path.rpartition(".")[0]
        if name and name != section:
            yield f"**`{name}`**", "", SECTION_TEXTS[name]
        section = name
        yield f"`{each.path}`", f"`{_text(each.default)}`", each.description + _choices(each)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _choices(setting: Setting) -> str:
    names: list[str] = setting.schema.get("enum", [])
    missing = [f"`{name}`" for name in names if f"`{name}`" not in setting.description]
    return f" One of {', '.join(missing)}." if missing else ""
