"""Other API groups: which are valid, what is replaced, and that one setting is enough."""

import re

import pytest

from memcached_api.annotations import OWN_PREFIX
from memcached_api.registry import KINDS
from release.commit import groups, plan
from release.commit.groups import Groups
from release.errors import ReleaseError
from release.output.images import Names
from unit.release.trees import files

BEFORE = groups.current(files())
AFTER = groups.chosen("cache.acme.io")


def test_settings_are_the_groups_of_the_kinds() -> None:
    assert {kind.name: kind.group for kind in KINDS} == {
        "Memcached": BEFORE.cache,
        "MemcachedProxy": BEFORE.cache,
        "AppService": BEFORE.app,
    }
    assert f"{BEFORE.annotations}/" == OWN_PREFIX


@pytest.mark.parametrize(
    ("group", "app", "expected"),
    [
        ("cache.acme.io", "", Groups("cache.acme.io", "app.acme.io", "memcached-operator.acme.io")),
        ("acme.io", "", Groups("acme.io", "app.acme.io", "memcached-operator.acme.io")),
        ("a.b.acme.io", "", Groups("a.b.acme.io", "app.b.acme.io", "memcached-operator.b.acme.io")),
        ("cache.acme.io", "web.else.io", Groups("cache.acme.io", "web.else.io", "memcached-operator.acme.io")),
    ],
)
def test_other_names_follow_from_the_group(group: str, app: str, expected: Groups) -> None:
    assert groups.chosen(group, app) == expected


@pytest.mark.parametrize(
    ("group", "app", "problem"),
    [
        ("acme", "", "GROUP='acme' must be a domain name such as cache.acme.io"),
        ("Cache.acme.io", "", "must be a domain name"),
        ("-cache.acme.io", "", "must be a domain name"),
        (f"{'a' * 60}.{'b' * 60}.{'c' * 60}.io", "", "must be a domain name"),
        ("cache.k8s.io", "", "GROUP=cache.k8s.io is reserved for Kubernetes"),
        ("cache.acme.io", "x.kubernetes.io", "APP_GROUP=x.kubernetes.io is reserved for Kubernetes"),
        ("cache.acme.io", "cache.acme.io", "GROUP and APP_GROUP are both cache.acme.io"),
    ],
)
def test_invalid_groups(group: str, app: str, problem: str) -> None:
    with pytest.raises(ReleaseError, match=re.escape(problem)):
        groups.chosen(group, app)


@pytest.mark.parametrize("text", ["my-{cache}", "{cache}x", "web{app}", "{cache}-2", "registry.example.com"])
def test_other_names_stay(text: str) -> None:
    text = text.format(**vars(BEFORE))
    assert groups.replaced(text, BEFORE, AFTER) == text


def test_release_with_new_groups_replaces_no_other() -> None:
    local = Names("localhost/a/op", "localhost/a/op-agent")
    same = plan.planned(files(), "7.8.9", "2030-01-02", local, "", BEFORE)
    assert (same.groups, "replaces" in plan.tables(plan.changes(files(), same))["7.8.9"]) == (None, True)
    other = plan.planned(files(), "7.8.9", "2030-01-02", local, "", AFTER)
    assert (other.groups, "replaces" in plan.tables(plan.changes(files(), other))["7.8.9"]) == (AFTER, False)
