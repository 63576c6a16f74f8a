"""The story through OLM really checks: what is not as told ends it with one sentence."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bundle.release import project_version
from demo.errors import StoryError
from demo.stage import Stage
from olm_demo import cli, installing, leaving, objects, upgrading
from olm_demo.objects import FIRST, SECOND
from unit.demo.fakes import FakeKubectl, failed, screen

READY = {"status": {"connectionState": {"lastObservedState": "READY"}}}
POD = {"metadata": {"uid": "a"}, "status": {"containerStatuses": [{"restartCount": 0}]}}
ARMED = {"webhooks": [{"name": "w", "clientConfig": {"caBundle": "x"}}] * 4}


def stage(answers: Mapping[str, Any]) -> Stage:
    return Stage(FakeKubectl(answers), screen(), Path("sample.yaml"), "cache", 3)


def plan(name: str, release: str, phase: str = "RequiresApproval") -> dict[str, Any]:
    """A plan of OLM's; for a moment after its creation it has no phase."""
    spec = {"clusterServiceVersionNames": [release], "approved": phase not in ("", "RequiresApproval")}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase} if phase else {}}


def csv(phase: str, message: str = "") -> dict[str, Any]:
    return {"metadata": {"name": FIRST}, "status": {"phase": phase, "message": message}}


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (lambda: installing.check_free([{"metadata": {"namespace": "x"}}]), "already, in x: run `make undeploy`"),
        (lambda: objects.check_catalog({}), r"\(not served\); run `make olm-demo`"),
        (lambda: installing.check_webhooks([]), "armed 0 of 4 webhooks: the rest is missing"),
        (lambda: installing.check_webhooks([{"webhooks": [{"name": "w", "clientConfig": {}}] * 4}]), "armed 0 of 4"),
        (lambda: upgrading.same({}, {}), "no pods to be watched"),
        (lambda: upgrading.same({"a": 0, "b": 0}, {"a": 0, "b": 1}), "of 2 pods, 1 were replaced or restarted"),
        (lambda: upgrading.same({"a": 0}, {"c": 0}), "of 1 pods, 1 were replaced or restarted"),
    ],
    ids=["installed", "no catalogue", "no webhooks", "not trusted", "no pods", "restarted", "replaced"],
)
def test_what_is_not_as_told_is_one_sentence(run: Callable[[], object], sentence: str) -> None:
    with pytest.raises(StoryError, match=sentence):
        run()


def test_what_is_as_told_passes() -> None:
    installing.check_free([])
    objects.check_catalog(READY)
    installing.check_webhooks([ARMED])
    upgrading.same({"a": 0}, {"a": 0})


def test_a_plan_is_found_by_its_release_while_it_waits() -> None:
    plans = [plan("old", FIRST, "Complete"), plan("new", SECOND)]
    assert objects.plan_for(plans, SECOND) == "new"
    assert objects.plan_for(plans, FIRST) == ""
    assert objects.plan_for([plan("new", SECOND, phase="")], SECOND) == "", "OLM has not written it yet"


@pytest.mark.parametrize(
    ("found", "done", "text", "fault"),
    [
        (None, False, f"{FIRST}: not there yet", ""),
        (csv("Installing", "waiting"), False, f"{FIRST}: Installing", ""),
        (csv("Failed", "no such image"), False, f"{FIRST}: Failed", "no such image"),
        (csv("Succeeded", "ok"), True, f"{FIRST}: Succeeded", ""),
    ],
)
def test_how_far_a_release_is(found: Any, done: bool, text: str, fault: str) -> None:
    assert objects.installed(found, FIRST) == (done, text, fault)


@pytest.mark.parametrize(
    ("releases", "owners", "done"),
    [([FIRST, SECOND], [FIRST], False), ([SECOND], [FIRST], False), ([SECOND], [], False), ([SECOND], [SECOND], True)],
)
def test_the_old_release_is_gone_with_its_certificate(releases: list[str], owners: list[str], done: bool) -> None:
    secrets = [{"metadata": {"ownerReferences": [{"name": owner} for owner in owners]}}]
    assert upgrading.only_the_new([{"metadata": {"name": name}} for name in releases], secrets).done is done


def test_pods_are_known_by_uid_and_restarts() -> None:
    assert objects.fingerprint([POD, {"metadata": {"uid": "b"}}]) == {"a": 0, "b": 0}


def test_the_subscription_starts_at_this_release_and_asks_before_the_next() -> None:
    _, group, subscription = yaml.safe_load_all(objects.subscription(FIRST))
    assert group["spec"] == {}
    assert subscription["spec"]["startingCSV"] == f"memcached-operator.v{project_version()}"
    assert subscription["spec"]["installPlanApproval"] == "Manual"


def test_approving_patches_the_plan_that_waits() -> None:
    kubectl = FakeKubectl({"get -n memcached-operator-system installplans": {"items": [plan("new", SECOND)]}})
    installing.approve(Stage(kubectl, screen(), Path("sample.yaml")), SECOND)
    assert kubectl.asked[-1].startswith("patch -n memcached-operator-system installplan new")


def test_pods_left_behind_end_the_story() -> None:
    with pytest.raises(StoryError, match="pods of it are left"):
        leaving.cleans_up(stage({"get -n story pods": {"items": [POD]}}))


def test_the_story_ends_at_the_first_thing_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(on: Stage) -> None:
        FakeKubectl({"get": failed("error: no cluster")}).must(["get", "nodes"])

    monkeypatch.setattr(cli, "STEPS", (("First", "", broken),))
    assert cli.main([]) == 1
    assert "Not as told: `kubectl get nodes` failed: no cluster." in capsys.readouterr().err


def test_the_catalogue_is_told_which_releases_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--releases"]) == 0
    assert capsys.readouterr().out.split() == [each.removeprefix("memcached-operator.v") for each in (FIRST, SECOND)]
