"""The corner table, without memcached."""

import pytest

from corners import table
from corners.containers import container

ENTRIES = table.entries()
ACCEPTED = [entry for entry in ENTRIES if not table.errors(entry)]


def test_names_are_unique() -> None:
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)


def test_table_has_specs_on_both_sides_of_the_limits() -> None:
    assert len(ACCEPTED) >= 200
    assert len(ENTRIES) - len(ACCEPTED) >= 100


def test_webhook_gives_the_expected_results() -> None:
    expected = [(entry, table.errors(entry)) for entry in ENTRIES if entry.valid is not None]
    assert {entry.name: errors for entry, errors in expected if (errors == []) != entry.valid} == {}


@pytest.mark.parametrize("field", ["-I", "-c", "-t", "-M", "-vv", "--disable-cas"])
def test_commands_of_the_table_have_every_option(field: str) -> None:
    assert any(field in container(entry.spec).command for entry in ACCEPTED)
