"""Registrations from which no files can be generated."""

import pytest

from crds import config
from crds.__main__ import ROOT
from crds.config.component import component
from crds.registered import REGISTERED, registered
from memcached_api.memcached.types import MEMCACHED


def test_component_for_a_kind_whose_role_is_not_a_part_of_that_of_all_kinds_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"the role for cache[.]example[.]com alone has other rules than the role for all kinds"
    ):
        component((REGISTERED[2], REGISTERED[0]), "memcached", (ROOT / config.POLICY).read_text())


def test_kind_without_a_controller_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"Memcached has no controller: add it to .*/kinds.py"):
        registered((MEMCACHED,), ())


def test_policy_without_the_generated_parts_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"children.yaml has no text that matches .*resourceRules"):
        config.with_kinds("spec: {}\n", REGISTERED)
