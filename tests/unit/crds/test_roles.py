"""The controller's role: what follows from the kinds."""

from dataclasses import replace

import pytest

from crds.config.roles import manager_role
from crds.registered import REGISTERED

READ = {"pods": ["list", "watch"]}
WRITE = {"pods": ["delete", "list", "patch", "watch"], "pods/resize": ["patch"]}


@pytest.mark.parametrize(
    ("updating", "expected"),
    [((), READ), (("Memcached",), WRITE), (("Memcached", "AppService"), WRITE)],
    ids=["no kind", "one kind", "all kinds"],
)
def test_pods_may_be_written_only_if_a_kind_updates_them(updating: tuple[str, ...], expected: dict[str, list[str]]):
    kinds = [replace(each, updates_pods=each.kind.name in updating) for each in REGISTERED]
    rules = [rule for rule in manager_role(kinds)["rules"] if rule["resources"][0].startswith("pods")]
    assert {rule["resources"][0]: rule["verbs"] for rule in rules} == expected
    assert len(rules) == len(expected), "each resource is in one rule"


def test_memcached_is_the_kind_that_updates_pods():
    assert [each.kind.name for each in REGISTERED if each.updates_pods] == ["Memcached"]
