"""The table of changes in docs/warm.md has each field, once."""

import re

from memcached_api.memcached.types import MEMCACHED
from pages.effects import LEFT_OUT, blocks


def test_each_field_is_in_one_row() -> None:
    rows = [line.split("|")[1].partition(":")[0] for line in blocks()["changes"].splitlines()[2:]]
    shown = [
        f"spec.{name}"
        for row in rows
        if ", up" not in row and ", down" not in row
        for name in re.findall(r"`([\w.]+)`", row)
    ]
    for field in MEMCACHED.fields:
        found = [name for name in shown if field == name or field.startswith(f"{name}.")]
        assert len(found) == (field not in LEFT_OUT), (field, found)
