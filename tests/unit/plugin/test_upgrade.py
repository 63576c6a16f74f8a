"""`upgrade` and `status -A`: which caches they change, in which order, and where they stop."""

import json
import re
import shlex
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_memcached.cluster.kubectl import failure
from kubectl_memcached.commands import upgrade
from kubectl_memcached.model import owners, upgrading
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.memcached.images import problem_notice
from unit.plugin.conftest import Run
from unit.plugin.fleet import CRASH, LATE, LOST, NEW, OLD, PULL, TIMEOUT, UNFIXED, Fleet, cr, degraded, message, runner
from unit.plugin.samples import memcached

Object = dict[str, Any]

COMMAND = "run kubectl memcached upgrade -n shop a --to"
APPLY = f"has set its image. Set `image: {NEW}` in the manifest and run kubectl apply"
NOT_SERVED = 'error: the server doesn\'t have a resource type "memcacheds"'
NO_SUCH_PATH = "Error from server (NotFound): the server could not find the requested resource"


def commands(text: str) -> list[list[str]]:
    """The words of each `kubectl memcached upgrade` that a text prints, with --yes."""
    found = re.findall(r"kubectl memcached (upgrade -n \S+ \S+ --to [^\s,`]+?)(?:[,`]|\. )", text)
    return [[*each.split(), "--yes"] for each in found]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(monkeypatch)


def test_caches_are_upgraded_one_after_the_other_with_canaries_first(run: Run) -> None:
    fleet = Fleet(cr("a"), cr("b"), cr("c", labels={"canary": "yes"}))
    result = run(fleet, "upgrade", "-A", "--canary", "canary=yes", "--yes")
    assert (result.code, fleet.calls) == (0, [("c", []), ("a", []), ("b", [])])
    assert {each["spec"]["image"] for each in fleet.crs.values()} == {NEW}
    assert result.output.splitlines()[-1] == f"3 of 3 upgraded to {NEW}."
    assert run(fleet, "upgrade", "-A", "--yes").code == 0
    assert len(fleet.calls) == 3, "a second run changes nothing"


def test_at_once_limits_the_caches_that_are_not_ready(run: Run) -> None:
    fleet = Fleet(*(cr(name) for name in "abcd"))
    assert run(fleet, "upgrade", "-A", "--yes", "--at-once=2").code == 0
    assert max(len(unready) for _, unready in fleet.calls) == 1


def test_first_degraded_cache_stops_the_upgrade(run: Run) -> None:
    fleet = Fleet(cr("a"), cr("b"), cr("c"), broken={"b": PULL})
    result = run(fleet, "upgrade", "-A", "--yes")
    assert [name for name, _ in fleet.calls] == ["a", "b"]
    assert (result.code, fleet.crs["c"]["spec"]["image"]) == (1, OLD)
    assert result.error == (
        f"shop/b: {message(PULL)}. To return it, run kubectl memcached upgrade -n shop b --to {OLD}. "
        "1 cache unchanged. To go on, run the same command again, or with --except shop/b to leave it out"
    )
    (option,) = re.findall(r"--except \S+", result.error)
    assert run(fleet, "upgrade", "-A", "--yes", *option.split()).code == 0
    assert [name for name, _ in fleet.calls] == ["a", "b", "c"]


def test_degraded_cache_does_not_stop_the_others_if_the_image_works_in_another_one(run: Run) -> None:
    fleet = Fleet(cr("a"), cr("b"), cr("c"), broken={"b": PULL})
    assert run(fleet, "upgrade", "-A", "--yes").code == 1
    again = run(fleet, "upgrade", "-A", "--yes")
    assert (again.code, again.error, [name for name, _ in fleet.calls]) == (1, "", ["a", "b", "c"])
    assert f"skipped: it is degraded: {message(PULL)}" in " ".join(again.output.split())


def test_image_without_a_tag_has_no_way_back(run: Run) -> None:
    """`--to` needs one."""
    fleet = Fleet(cr("a", image="docker.io/library/memcached"), broken={"a": PULL})
    result = run(fleet, "upgrade", "a", f"--to={NEW}", "--yes")
    assert (result.code, "To return it" in result.error) == (1, False)


@pytest.mark.parametrize("image", ["memcached:1.6.45", "memcached:1.6.45-alpine"])
def test_degraded_cache_with_another_name_of_the_image_does_not_stop_the_others(image: str, run: Run) -> None:
    found = cr("a", image=image)
    found["status"] = degraded(CRASH)
    fleet = Fleet(found, cr("b"))
    result = run(fleet, "upgrade", "-A", "--yes")
    assert (result.code, result.error, [name for name, _ in fleet.calls]) == (1, "", ["b"])


@pytest.mark.parametrize(("container", "changed"), [("agent", {}), ("memcached", {"metadata": {"generation": 100}})])
@pytest.mark.parametrize("reason", [PULL, CRASH, LATE])
def test_cache_that_becomes_degraded_for_another_cause_is_late(
    reason: str, container: str, changed: Object, run: Run
) -> None:
    for at_once, image in ((1, OLD), (2, NEW)):
        fleet = Fleet(cr("a"), cr("b"), broken={"a": reason}, container=container, meanwhile={"a": changed})
        result = run(fleet, "upgrade", "-A", "--yes", f"--at-once={at_once}")
        assert (result.code, fleet.crs["b"]["spec"]["image"]) == (1, image), "it keeps its place of --at-once"
        assert f"shop/a is late: it is degraded: {message(reason, container)}" in result.output.splitlines()


@pytest.fixture
def minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on for a minute when it is read."""
    monkeypatch.setattr(upgrade, "time", SimpleNamespace(monotonic=count(0.0, 60.0).__next__, sleep=bool))


STOPPED = (
    "shop/a is not ready, and --at-once 1 allows no other change. 1 cache unchanged. To go on, run the same command "
    "again, or with --except shop/a to leave it out"
)


@pytest.mark.usefixtures("minutes")
@pytest.mark.parametrize(
    ("words", "size", "limit"), [((), 2, "15m"), ((), 3, "48m"), (("--timeout=1h30m",), 3, "1h30m")]
)
def test_cache_that_is_not_ready_in_time_is_late_and_stops_the_others(
    words: tuple[str, ...], size: int, limit: str, run: Run
) -> None:
    rollout: Object = {"rollout": {"warmUp": {}}} if size == 3 else {}
    fleet = Fleet(cr("a", size=size, **rollout), cr("b"), slow=["a"])
    result = run(fleet, "upgrade", "-A", "--yes", *words)
    assert (result.code, result.error, fleet.crs["b"]["spec"]["image"]) == (1, STOPPED, OLD)
    assert any(
        line.startswith(f"shop/a is late: it is not ready after {limit}: message of Rolling Out")
        for line in result.output.splitlines()
    )
    again = run(fleet, "upgrade", "-A", "--yes", *words)
    assert (again.code, again.error, len(fleet.calls)) == (1, STOPPED, 1), "the next run waits for it first"
    (option,) = re.findall(r"--except \S+", again.error)
    assert run(fleet, "upgrade", "-A", "--yes", *option.split()).code == 0
    assert fleet.crs["b"]["spec"]["image"] == NEW


@pytest.mark.usefixtures("minutes")
@pytest.mark.parametrize(
    ("at_once", "slow", "begun"),
    [(1, "a", "a"), (1, "d", "abcd"), (2, "a", "abcde"), (2, "bd", "abcd"), (3, "abc", "abc")],
)
def test_no_more_caches_than_at_once_are_not_ready(at_once: int, slow: str, begun: str, run: Run) -> None:
    fleet = Fleet(*(cr(name) for name in "abcde"), slow=slow)
    result = run(fleet, "upgrade", "-A", "--yes", f"--at-once={at_once}", "-o", "json")
    assert (result.code, "".join(name for name, _ in fleet.calls)) == (1, begun)
    assert max(len(unready) for _, unready in fleet.calls) < at_once
    states = {each["name"]: each["state"] for each in json.loads(result.output)["caches"]}
    expected = {name: "late" if name in slow else "done" for name in begun}
    assert states == {**dict.fromkeys("abcde", "change"), **expected}


@pytest.mark.usefixtures("minutes")
@pytest.mark.parametrize(("at_once", "begun"), [(1, []), (2, ["c"])])
def test_caches_that_another_run_has_begun_count_together(at_once: int, begun: list[str], run: Run) -> None:
    running = [cr(name, image=NEW) for name in "ab"]
    for found in running:
        found["status"] = memcached(None, {"Progressing": "True", "Ready": "False"}, Progressing="RollingOut")["status"]
    fleet = Fleet(*running, cr("c"), slow="a")
    result = run(fleet, "upgrade", "-A", "--yes", f"--at-once={at_once}")
    assert (result.code, [name for name, _ in fleet.calls]) == (1, begun)
    assert any(line.startswith("shop/b is ready") for line in result.output.splitlines())


@pytest.mark.usefixtures("minutes")
def test_late_cache_that_becomes_ready_is_done(run: Run) -> None:
    fleet = Fleet(*(cr(name) for name in "abcdef"), reads={"a": 9})
    result = run(fleet, "upgrade", "-A", "--yes", "--at-once=2")
    assert (result.code, result.output.splitlines()[-1]) == (0, f"6 of 6 upgraded to {NEW}.")
    begins = [line for line in result.output.splitlines() if line.startswith("shop/a is ")]
    assert [" ".join(line.split()[2:3]).strip(":") for line in begins] == ["late", "ready"]


def test_complete_cache_that_an_interrupted_run_still_owns_is_given_up(run: Run) -> None:
    fleet = Fleet(cr("a", [owners.MANAGER], image=NEW), cr("b", [owners.MANAGER, "kubectl-edit"], image=NEW))
    assert run(fleet, "upgrade", "-A", "--yes").code == 0
    assert (fleet.disowned, fleet.calls) == (["a"], [])


@pytest.mark.parametrize("option", ["--context=prod", "--kubeconfig=/home/a b/config"])
def test_each_printed_command_reaches_the_same_cluster(option: str, run: Run) -> None:
    paused, other = cr("a", rollout={"paused": True}), cr("a", image="quay.io/x/memcached:1.6.38")
    newer, variant = cr("a", image="memcached:1.6.46"), cr("a", image="memcached:1.6")
    words = ("upgrade", "-A", "--yes", "-o", "json")
    results = [run(Fleet(found, cluster_options=[option]), *words) for found in (paused, other, newer, variant)]
    results += [run(Fleet(cr("a"), cluster_options=[option]), "status", "-A", "-o", "json")]
    results += [run(Fleet(cr("a"), broken={"a": PULL}, cluster_options=[option]), *words)]
    command = rf"run `?kubectl memcached \w+ -n shop a .*{re.escape(shlex.quote(option))}"
    for result in results:
        assert re.search(command, result.error or result.output)


def test_interrupted_upgrade_goes_on_with_the_cache_that_it_has_begun(run: Run) -> None:
    fleet = Fleet(cr("a"), cr("b"), cr("c"), interrupt=3)
    interrupted = run(fleet, "upgrade", "-A", "--yes")
    assert interrupted.output.splitlines()[-1] == (
        "Interrupted. The operator goes on with shop/a. 2 caches unchanged. To go on, run the same command again"
    )
    assert [name for name, _ in fleet.calls] == ["a"]
    result = run(fleet, "upgrade", "-A", "--yes")
    assert (result.code, [name for name, _ in fleet.calls]) == (0, ["a", "b", "c"])
    assert [unready for _, unready in fleet.calls] == [[], [], []], "it waits for the first one"


@pytest.mark.parametrize("unread", [TIMEOUT, NOT_SERVED, NO_SUCH_PATH])
def test_failed_reads_stop_the_upgrade_only_if_they_last(
    unread: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(Fleet(cr("a"), unreadable=range(4, 10), unread=unread), "upgrade", "a", "--yes").code == 0
    monkeypatch.setattr(upgrade, "PATIENCE", -1.0)
    result = run(Fleet(cr("a"), cr("b"), unreadable=range(5, 100), unread=unread), "upgrade", "a", "b", "--yes")
    error = failure(unread, "read Memcached a")
    assert (result.code, result.error) == (
        error.code,
        f"{str(error).rstrip('.')}. The operator goes on with shop/a. 1 cache unchanged. To go on, run the same "
        "command again, or with --except shop/a to leave it out",
    )


def test_lost_reply_to_a_change_is_not_a_skipped_cache(run: Run) -> None:
    fleet = Fleet(cr("a"), cr("b"), lost="a")
    assert run(fleet, "upgrade", "-A", "--yes").code == 0
    assert fleet.calls == [("a", []), ("b", [])], "it waits for the first one"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (None, "it was deleted"),
        ({"metadata": {"uid": "other"}}, "it was deleted, and another one has its name"),
        ({"metadata": {"deletionTimestamp": "2026-11-27T00:00:00Z"}}, "it is being deleted"),
        ({"spec": {"image": OLD}}, f"another client has set its image to {OLD}"),
        (
            {"spec": {"rollout": {"paused": True}}},
            "its rollout is paused: run kubectl memcached resume -n shop a first",
        ),
    ],
)
def test_cache_that_another_client_changes_meanwhile_does_not_stop_the_others_once_it_is_ready(
    changed: Object | None, reason: str, run: Run
) -> None:
    fleet = Fleet(cr("a"), cr("b"), meanwhile={"a": changed})
    result = run(fleet, "upgrade", "-A", "--yes")
    assert (result.code, result.error, fleet.crs["b"]["spec"]["image"]) == (1, "", NEW)
    state = "late" if "paused" in reason else "skipped"
    assert f"shop/a is {state}: {reason}" in result.output.splitlines()
    assert fleet.calls[1:] == [("b", ["a"] if "deleted" in reason and changed else [])], "a deleted one does not count"


def test_message_of_the_cluster_is_one_line_that_does_not_control_the_terminal(run: Run) -> None:
    result = run(Fleet(cr("a")), "upgrade", "a", "--yes")
    assert "  shop/a: message of Rolling Out\N{REPLACEMENT CHARACTER}[2J" in result.output.splitlines()


def test_canary_that_is_skipped_stops_the_upgrade(run: Run) -> None:
    fleet = Fleet(cr("a"), cr("c", ["kustomize-controller"], labels={"canary": "yes"}))
    result = run(fleet, "upgrade", "-A", "--canary", "canary=yes", "--yes")
    assert (result.code, fleet.calls) == (1, [])
    assert "No canary has the image. shop/c is skipped: kustomize-controller sets its image" in result.error


@pytest.mark.parametrize("names", [("a", "web/b"), ("web/b", "shop/a"), ("shop/a", "shop/c", "web/b")])
@pytest.mark.parametrize("namespace", ["", "shop", "web", "other"])
def test_canaries_are_found_in_the_namespaces_of_the_named_caches(
    namespace: str, names: tuple[str, ...], run: Run
) -> None:
    canary, other = cr("b", labels={"canary": "yes"}), cr("d", labels={"canary": "yes"})
    canary["metadata"]["namespace"] = other["metadata"]["namespace"] = "web"
    fleet = Fleet(cr("a"), canary, cr("c"), other, namespace=namespace)
    words = ("upgrade", *names, "--yes", "--canary")
    result = run(fleet, *words, "canary=yes")
    assert (result.code, fleet.calls[0]) == (0, ("b", []))
    assert "d" not in dict(fleet.calls), "it is not one of the named caches"
    error = "None of the caches has the labels canary=no of --canary."
    assert run(fleet, *words, "canary=no").error == error


def test_one_canary_with_the_image_is_enough(run: Run) -> None:
    canary: Object = {"canary": "yes"}
    fleet = Fleet(cr("a"), cr("b", labels=canary), cr("c", labels=canary, rollout={"paused": True}))
    assert run(fleet, "upgrade", "-A", "--canary", "canary=yes", "--yes").code == 1
    assert fleet.calls == [("b", []), ("a", [])]


def test_cache_that_another_run_has_begun_comes_before_the_canaries(run: Run) -> None:
    fleet = Fleet(cr("a"), cr("c", labels={"canary": "yes"}), interrupt=4)
    run(fleet, "upgrade", "a", "--yes")
    assert run(fleet, "upgrade", "-A", "--canary", "canary=yes", "--yes").code == 0
    assert fleet.calls == [("a", []), ("c", [])]


@pytest.mark.parametrize("broken", [{"deletionTimestamp": "2026-11-27T00:00:00Z"}, {"status": {}}])
def test_cache_with_the_image_that_nobody_completes_does_not_stop_the_others(broken: Object, run: Run) -> None:
    found = cr("a", image=NEW)
    found["status"]["conditions"][3]["status"] = "False"
    found["metadata"] |= {name: value for name, value in broken.items() if name != "status"}
    found["status"] = broken.get("status", found["status"])
    fleet = Fleet(found, cr("b"))
    assert (run(fleet, "upgrade", "-A", "--yes").code, fleet.crs["b"]["spec"]["image"]) == (1, NEW)


def test_paused_cache_is_not_upgraded_although_it_is_ready(run: Run) -> None:
    found = cr("a", image=NEW, rollout={"paused": True})
    found["status"] |= memcached(None, None, Progressing="Paused")["status"] | {"updatedReplicas": 0}
    result = run(Fleet(found), "upgrade", "-A", "--yes")
    assert (result.code, "its rollout is paused" in " ".join(result.output.split())) == (1, True)


def test_list_does_not_promise_what_admission_does_not_say(run: Run) -> None:
    fleet = Fleet(cr("a"), silent=True)
    (listed,) = json.loads(run(fleet, "upgrade", "a", "--dry-run", "-o", "json").output)["caches"]
    assert listed["itemsKept"] is None
    assert "not known: admission does not say it" in run(fleet, "upgrade", "a", "--dry-run").output


def test_progress_counts_each_dry_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []

    def progress(_: str, number: int) -> AbstractContextManager[SimpleNamespace]:
        return nullcontext(SimpleNamespace(step=lambda: steps.append(number)))

    monkeypatch.setattr(upgrade, "progress", progress)
    assert run(Fleet(*(cr(name) for name in "abc"), denied="ac"), "upgrade", "-A", "--dry-run").code == 1
    assert steps == [3, 3, 3]


def test_result_of_an_upgrade_that_has_stopped_is_written_as_json(run: Run) -> None:
    result = run(Fleet(cr("a"), cr("b"), broken={"a": PULL}), "upgrade", "-A", "--yes", "-o", "json")
    states = [(each["name"], each["state"]) for each in json.loads(result.output)["caches"]]
    assert (result.code, states) == (1, [("a", "failed"), ("b", "change")])


@pytest.mark.parametrize("reason", [PULL, CRASH, LATE])
def test_cache_whose_image_does_not_work_stops_each_run_and_gets_another_one(reason: str, run: Run) -> None:
    fleet = Fleet(cr("a"), cr("b"), broken={"a": reason})
    stopped = run(fleet, "upgrade", "-A", "--yes")
    assert (stopped.code, run(fleet, "upgrade", "-A", "--yes").code) == (1, 1)
    assert fleet.calls == [("a", [])], "a repeated run must not give the same image to the next cache"
    (back,) = commands(stopped.error)
    assert run(fleet, *back).code == 0
    assert fleet.crs["a"]["spec"]["image"] == OLD


@pytest.mark.parametrize("image", [OLD, NEW])
@pytest.mark.parametrize("reason", [PULL, CRASH, LATE])
def test_cache_whose_problem_is_that_of_another_container_is_skipped(reason: str, image: str, run: Run) -> None:
    found = cr("a", image=image)
    found["status"] = degraded(reason, "agent")
    fleet = Fleet(found, cr("b"))
    result = run(fleet, "upgrade", "-A", "--yes")
    assert (result.code, [name for name, _ in fleet.calls]) == (1, ["b"])
    assert f"skipped: it is degraded: {message(reason, 'agent')}" in " ".join(result.output.split())


def test_new_image_that_crashes_as_the_old_one_did_stops_the_upgrade(run: Run) -> None:
    found = cr("a")
    found["status"] = degraded(CRASH, since="earlier")
    pods = Fleet(found).list("", "pods", "--selector=/instance=a,")
    step = upgrading.step(found, upgrading.Policy(NEW, is_default=True, by_name=True), pods)
    begun, begun_cr = upgrading.before(found, step, pods), {**found, "spec": {**found["spec"], "image": NEW}}
    assert (begun.known, upgrading.failure(begun_cr, begun, pods)) == ({"a-1/id"}, ""), "the pod is the old one"
    result = run(Fleet(found, broken={"a": CRASH}), "upgrade", "a", "--yes")
    assert (result.code, result.error.startswith(f"shop/a: {message(CRASH)}. To return it, ")) == (1, True)


@pytest.mark.parametrize("image", ["memcached:1.6.45", "memcached:1.6.45-alpine"])
def test_release_of_the_default_image_is_not_replaced(image: str, run: Run) -> None:
    running = cr("b", image=image)
    running["status"] = memcached(None, {"Progressing": "True", "Ready": "False"}, Progressing="RollingOut")["status"]
    fleet = Fleet(cr("a", image=image), running)
    assert (run(fleet, "upgrade", "-A", "--yes").code, fleet.calls) == (0, [])


@pytest.mark.parametrize("default", [f"{NEW}@sha256:{'0' * 64}", f"{NEW}-alpine"])
def test_default_image_without_a_plain_release_replaces_others(default: str, run: Run) -> None:
    fleet = Fleet(cr("a"), cr("b", image="memcached:1.6.45"), default=default)
    assert (run(fleet, "upgrade", "-A", "--yes").code, len(fleet.calls)) == (0, 2)


def test_commands_for_known_problems_help_where_the_default_image_has_them_too(run: Run) -> None:
    """An administrator can set the default image. A cache can also have none in its spec."""
    for image in (OLD, "docker.io/library/memcached:1.6.38", ""):
        (notice,) = problem_notice(MemcachedSpec(), image or OLD, {"namespace": "shop", "name": "a"})
        listed = run(Fleet(cr("a", image=image), default=OLD), "status", "-A").output
        assert ("known problems of its image" in listed) == bool(image)
        for text in (notice, *([listed] if image else [])):
            fleet = Fleet(cr("a", image=image or OLD), default=OLD)
            (words,) = commands(text)
            assert run(fleet, *words).code == 0
            assert fleet.crs["a"]["spec"]["image"].endswith("memcached:1.6.45")


def test_each_printed_command_keeps_the_variant_of_the_image(run: Run) -> None:
    image = "memcached:1.6.38-alpine"
    (notice,) = problem_notice(MemcachedSpec(image=image), image, {"namespace": "shop", "name": "a"})
    found = Fleet(cr("a", image=image))
    skipped = run(found, "upgrade", "a", "--dry-run", "-o", "json").output
    for text in (notice, skipped, run(found, "status", "-A").output):
        fleet = Fleet(cr("a", image=image))
        (words,) = commands(text)
        assert run(fleet, *words).code == 0
        assert fleet.crs["a"]["spec"]["image"] == "memcached:1.6.45-alpine"


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (cr("a", ["kustomize-controller"]), "kustomize-controller sets its image. Set it in what"),
        (cr("a", ["helm"]), "helm sets its image. Set it in what helm applies"),
        (cr("a", ["velero-server"]), "velero-server has set its image. Set it there"),
        (cr("a", image="memcached:1.6.46"), "its release is newer than the default: run kubectl memcached upgrade"),
        (cr("a", image="memcached:1.6.46-alpine"), "its release is newer than the default: run kubectl memcached"),
        (cr("a", image="memcached:1.6.38-alpine"), "its tag is not that of an older release"),
        (cr("a", image="memcached:1.6"), f"its tag is not that of an older release: {COMMAND} {NEW}, if that is right"),
        (cr("a", ["kubectl-client-side-apply"]), f"kubectl-client-side-apply {APPLY}"),
        (cr("a", ["kubectl"]), f"kubectl {APPLY}"),
        (cr("a", rollout={"paused": True}), "its rollout is paused: run kubectl memcached resume -n shop a first"),
        (
            cr("a", image="quay.io/x/memcached:1.6.38"),
            f"its image is from another repository: {COMMAND} quay.io/x/memcached:1.6.45",
        ),
        (
            cr("a", image="quay.io/x/memcached:1.6.38-alpine"),
            f"its image is from another repository: {COMMAND} quay.io/x/memcached:1.6.45-alpine",
        ),
    ],
)
def test_cache_that_is_not_ours_to_change_is_skipped_and_the_others_are_upgraded(
    found: Object, reason: str, run: Run
) -> None:
    fleet = Fleet(found, cr("b", ["kubectl-patch"]))
    result = run(fleet, "upgrade", "-A", "--yes")
    assert (result.code, [name for name, _ in fleet.calls]) == (1, ["b"])
    assert f"skipped: {reason}" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("found", "corrected", "words"),
    [
        (cr("a", rollout={"paused": True}), {"rollout": {"paused": False}}, ()),
        (cr("a", image="quay.io/x/memcached:1.6.38"), {}, (f"--to={NEW}",)),
        (cr("a", ["velero-server"]), {}, ("--take-ownership",)),
        (cr("a", ["kustomize-controller"]), {"image": NEW}, ()),
        (cr("a", ["kubectl-client-side-apply"]), {"image": NEW}, ()),
    ],
)
def test_cache_that_is_skipped_is_upgraded_after_the_remedy(
    found: Object, corrected: Object, words: tuple[str, ...], run: Run
) -> None:
    fleet = Fleet(found)
    assert run(fleet, "upgrade", "a", "--yes").code == 1
    found["spec"] |= corrected
    assert run(fleet, "upgrade", "a", "--yes", *words).code == 0
    assert found["spec"]["image"] == NEW


def test_pinned_default_has_no_owner_afterwards(run: Run) -> None:
    fleet = Fleet(cr("a"), cr("b", ["kubectl-edit"]))
    assert run(fleet, "upgrade", "-A", "--yes").code == 0
    assert fleet.disowned == ["a", "b"]
    assert owners.owners(fleet.crs["a"]) == []


def test_list_says_what_happens_to_the_items_before_anything_changes(run: Run) -> None:
    fleet = Fleet(cr("a", cache={"warmRestart": True}), cr("b"))
    listed = json.loads(run(fleet, "upgrade", "-A", "--dry-run", "-o", "json").output)
    assert [(each["name"], each["itemsKept"]) for each in listed["caches"]] == [("a", True), ("b", False)]
    result = run(fleet, "upgrade", "-A", text="n\n")
    assert (result.code, result.error, fleet.calls) == (1, "Nothing is changed.", [])
    assert f"{LOST}; {UNFIXED}" in " ".join(result.output.split())


@pytest.mark.parametrize("words", [(), ("a", "-A"), ("a", "--selector", "x=y")])
def test_caches_are_chosen_in_one_way(words: tuple[str, ...], run: Run) -> None:
    assert run(Fleet(cr("a")), "upgrade", *words).code == 2


def test_fleet_shows_unready_caches_first_and_the_known_problems_of_images(run: Run) -> None:
    failing = cr("c", image=NEW)
    failing["status"] = memcached(None, {"Degraded": "True"}, Degraded="PodsCrashing")["status"]
    result = run(Fleet(cr("b"), cr("a", image=NEW), failing), "status", "-A")
    lines = [line.split() for line in result.output.splitlines()]
    assert [line[0] for line in lines[1:4]] == ["shop/c", "shop/a", "shop/b"]
    assert "message of PodsCrashing" in result.output
    assert f"run `kubectl memcached upgrade -n shop b --to {NEW}`" in result.output
    assert result.output.splitlines()[-1] == "2 of 3 caches are ready, 1 has an image with known problems."
    assert result.code == 1
