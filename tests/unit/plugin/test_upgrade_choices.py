"""`upgrade`: the image, the caches and the owners that it accepts, and what it makes of other texts."""

from itertools import product
from typing import Any

import pytest

from kubectl_memcached.errors import ExitCode
from kubectl_memcached.model import images, owners, units, upgrading
from memcached_api.image import is_older
from memcached_api.known_problems import corrected, known_problems, text
from memcached_api.memcached.warm_up import timeout_seconds
from unit.plugin.conftest import Run
from unit.plugin.fleet import CRASH, NEW, OLD, PULL, Fleet, cr, runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(monkeypatch)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.b:c/d-e_f", "a.b:c/d-e_f"),
        ("all is well. Run this", "'all is well. Run this'"),
        ("x\ny", "'x\\ny'"),
        ("x" * 64, f"'{'x' * 40}…'"),
    ],
)
@pytest.mark.parametrize("operation", ["Apply", "Update"])
def test_name_of_a_field_manager_is_not_read_as_a_sentence(name: str, shown: str, operation: str) -> None:
    found = cr("a", [name])
    found["metadata"]["managedFields"][0]["operation"] = operation
    reason = owners.obstacle(found, NEW, take_ownership=False)
    assert reason.startswith(f"{shown} has set its image. Set ")


@pytest.mark.parametrize("name", ["edit", "patch", "set", "replace", "create"])
def test_image_of_a_single_command_is_changed(name: str, run: Run) -> None:
    fleet = Fleet(cr("a", [f"kubectl-{name}"]))
    assert (run(fleet, "upgrade", "a", "--yes").code, len(fleet.calls)) == (0, 1)


@pytest.mark.parametrize("image", ["", "a b", "1.6.45", "memcached", "localhost:5000/memcached", "a@sha256:x", "a:b:c"])
def test_new_image_has_a_tag_or_a_digest(image: str, run: Run) -> None:
    result = run(Fleet(cr("a")), "upgrade", "a", "--yes", "--to", image)
    assert (result.code, "--to needs an image with a tag or a digest" in result.error) == (ExitCode.USAGE, True)


@pytest.mark.parametrize("image", ["memcached:1.6.45-alpine", f"localhost:5000/a/b@sha256:{'0' * 64}", "a:x@sha256:0"])
def test_new_image_can_be_another_one(image: str, run: Run) -> None:
    fleet = Fleet(cr("a"))
    assert (run(fleet, "upgrade", "a", "--yes", "--to", image).code, fleet.crs["a"]["spec"]["image"]) == (0, image)


@pytest.mark.parametrize(
    ("image", "words", "code", "changes"),
    [
        ("memcached:1.6.45", ("a", f"--to={NEW}"), 0, 0),
        ("memcached:1.6.45-alpine", ("a", f"--to={NEW}-alpine"), 0, 0),
        ("memcached:1.6.45-alpine", ("a", f"--to={NEW}"), 0, 1),
        (NEW, ("-A", f"--to={OLD}"), 1, 0),
        (NEW, ("--selector=", f"--to={OLD}", "-A"), 1, 0),
        (NEW, ("a", f"--to={OLD}"), 0, 1),
        (OLD, ("-A", f"--to={NEW}"), 0, 1),
    ],
)
def test_new_image_is_compared_with_the_release_of_the_cache(
    image: str, words: tuple[str, ...], code: int, changes: int, run: Run
) -> None:
    fleet = Fleet(cr("a", image=image))
    result = run(fleet, "upgrade", "--yes", *words)
    assert (result.code, len(fleet.calls)) == (code, changes)
    assert ("skipped: its release is newer: name the cache to go back" in result.output) == (code == 1)


def test_cache_can_be_named_as_in_the_table_and_counts_once(run: Run) -> None:
    fleet = Fleet(cr("a"), cr("b"))
    result = run(fleet, "upgrade", "shop/a", "a", "a", "--yes")
    assert (result.code, fleet.calls) == (0, [("a", [])])
    assert result.output.splitlines()[-1] == f"1 of 1 upgraded to {NEW}."


@pytest.mark.parametrize("name", ["a/b/c", "/a", "shop/", "-/", "A"])
def test_name_of_a_cache_is_checked(name: str, run: Run) -> None:
    assert run(Fleet(cr("a")), "upgrade", "--yes", "--", name).code == ExitCode.USAGE
    assert run(Fleet(cr("a")), "upgrade", "-A", "--yes", f"--except={name}").code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("namespace", "words", "code", "calls"),
    [
        ("shop", ("-A", "--except=a"), 0, ["b"]),
        ("", ("--selector=", "a", "b", "--except=a"), 0, ["b"]),
        ("", ("-A", "--except=a"), ExitCode.USAGE, []),
        ("web", ("-A", "--except=a"), ExitCode.MISSING, []),
    ],
)
def test_cache_that_is_left_out_is_in_the_namespace_of_the_user(
    namespace: str, words: tuple[str, ...], code: int, calls: list[str], run: Run
) -> None:
    fleet = Fleet(cr("a"), cr("b"), namespace=namespace)
    assert (run(fleet, "upgrade", "--yes", *words).code, [name for name, _ in fleet.calls]) == (code, calls)


def test_error_without_a_rest_does_not_say_how_to_go_on(run: Run) -> None:
    result = run(Fleet(cr("a"), broken={"a": PULL}), "upgrade", "a", "--yes")
    assert result.error.endswith(f"run kubectl memcached upgrade -n shop a --to {OLD}.")


TAGS = ("1.6", "1.6.38", "1.6.41", "1.6.42-alpine", "1.6.43", "1.6.44", "1.6.45", "2.0.0", "1.6.38rc1", "1.6.38.1")
IMAGES = [
    *(f"memcached:{tag}" for tag in TAGS),
    *("", "memcached", f"memcached@sha256:{'0' * 64}", f"{OLD}@sha256:{'0' * 64}", OLD, NEW),
    *("index.docker.io/memcached:1.6.9", "localhost/memcached:1.6.38", "quay.io/x/memcached:1.6.9"),
]


@pytest.mark.parametrize("image", IMAGES)
def test_known_problems_are_those_of_the_operator(image: str) -> None:
    for auth, warm, disk in product([None, {"secretName": "x"}], [False, True], [None, {"size": "1Gi"}]):
        found = cr("a", image=image, auth=auth, cache={"warmRestart": warm, "extstore": disk})
        problems = known_problems(image, auth=auth is not None, warm_restart=warm, extstore=disk is not None)
        expected = text(corrected(problems)) if problems else ""
        assert (upgrading.corrected_in(found), bool(upgrading.remedy(found, ()))) == (expected, bool(problems))


def test_older_release_is_that_of_admission() -> None:
    """If both know it: the plugin needs complete releases, and admission the same spelling of the repository."""
    for new, old in product(IMAGES, IMAGES):
        found, expected = images.is_older(new, old), is_older(new, old)
        assert None in (found, expected) or found == expected, (new, old)
    assert (images.is_older(OLD, NEW), images.is_older("memcached:1.6.9", OLD), images.is_older(NEW, OLD)) == (1, 1, 0)


@pytest.mark.parametrize(
    ("size", "rollout", "limit"),
    [
        (3, {"warmUp": {}}, "48m"),
        (3, {"warmUp": {"timeout": "1h30m"}}, "4h33m"),
        (3, {"warmUp": {"timeout": "5m"}, "minReadySeconds": 60}, "21m"),
        (None, {"warmUp": {}}, "16m"),
        (None, {}, "15m"),
        (0, {"warmUp": {}}, "15m"),
        (3, {"warmUp": None}, "15m"),
        (20, {}, "20m"),
        (3, {"minReadySeconds": 600}, "33m"),
    ],
)
def test_time_of_a_cache_follows_from_its_pods(size: int | None, rollout: dict[str, Any], limit: str) -> None:
    found = cr("a", rollout=rollout, size=size)
    assert units.duration(upgrading.time_limit(found)) == limit
    assert timeout_seconds(None) == upgrading.WARM_UP


@pytest.mark.parametrize("limit", ["", "0s", "15", "1m1h", "-1m"])
def test_time_limit_is_a_duration(limit: str, run: Run) -> None:
    assert run(Fleet(cr("a")), "upgrade", "a", "--yes", f"--timeout={limit}").code == ExitCode.USAGE


def test_cache_that_is_left_out_is_one_of_the_caches(run: Run) -> None:
    result = run(Fleet(cr("a")), "upgrade", "-A", "--yes", "--except", "shop/b")
    assert (result.code, result.error) == (ExitCode.MISSING, "shop/b of --except is not one of the caches.")


class _Digests(Fleet):
    """A webhook of the cluster adds the digest to the images of pods."""

    def _pods(self, selector: str) -> list[dict[str, Any]]:
        found = super()._pods(selector)
        for each in found:
            each["spec"]["containers"][0]["image"] += "@sha256:" + "a" * 64
        return found


@pytest.mark.parametrize("reason", [PULL, CRASH])
def test_image_that_breaks_a_cache_stops_the_upgrade_also_with_digests(run: Run, reason: str) -> None:
    fleet = _Digests(*(cr(name) for name in "abc"), broken=dict.fromkeys("abc", reason))
    result = run(fleet, "upgrade", "-A", "--yes")
    assert [name for name, _ in fleet.calls] == ["a"]
    assert "To return it" in result.error
