"""Generated blocks of pages."""

from pathlib import Path

import pytest

from pages import security
from pages.blocks import filled
from unit.config.rendered import ROOT

PAGE = "before\n<!-- generated: a b -->\nold\n<!-- end -->\nafter <!-- end -->\n"


def test_block_is_replaced_and_the_rest_stays() -> None:
    text = filled(PAGE, {"a b": r"new \1"})
    assert text == PAGE.replace("old", r"new \1")
    assert filled(text, {"a b": "old"}) == PAGE


def test_page_without_a_block_is_an_error() -> None:
    with pytest.raises(LookupError, match="no block <!-- generated: c -->"):
        filled(PAGE, {"c": ""})


def test_limits_of_a_policy_without_the_account_in_a_message_are_an_error(tmp_path: Path) -> None:
    for path in [*security.ROLES, f"{security.POLICIES}/secrets.yaml"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text((ROOT / path).read_text().replace("message: memcached-operator", "message: it"))
    with pytest.raises(ValueError, match="not enough values"):
        security.blocks(tmp_path)
