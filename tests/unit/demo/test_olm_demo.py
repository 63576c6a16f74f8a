"""Each step with OLM checks its result; a failure is reported in one sentence."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from demo.errors import DemoError
from demo.olm.objects import FIRST, SECOND

from bundle.release import project_version
from demo import cli, scenes
from demo.olm import installing, objects, removal, upgrading
from demo.stage import Stage
from unit.demo.fakes import FakeKubectl, failed, screen

READY = {"status": {"connectionState": {"lastObservedState": "READY"}}}
POD = {"metadata": {"uid": "a"}, "status": {"containerStatuses": [{"restartCount": 0}]}}
WITH_CA = {"webhooks": [{"name": "w", "clientConfig": {"caBundle": "x"}}] * 4}


def stage(outputs: Mapping[str, Any]) -> Stage:
    return Stage(FakeKubectl(outputs), screen(), Path("sample.yaml"), "cache", 3)


def plan(name: str, release: str, phase: str = "RequiresApproval") -> dict[str, Any]:
    """An InstallPlan; an empty phase means that OLM has not written its status."""
    spec = {"clusterServiceVersionNames": [release], "approved": phase not in ("", "RequiresApproval")}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase} if phase else {}}


def csv(phase: str, message: str = "") -> dict[str, Any]:
    return {"metadata": {"name": FIRST}, "status": {"phase": phase, "message": message}}


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda: installing.check_not_installed([{"metadata": {"namespace": "x"}}]),
            "already installed in x: run `make undeploy`",
        ),
        (lambda: objects.check_catalog({}), r"\(no CatalogSource\); run `make demo SCENES=olm`"),
        (lambda: installing.check_webhooks([]), "^0 of 4 webhooks have a CA bundle$"),
        (
            lambda: installing.check_webhooks([{"webhooks": [{"name": "w", "clientConfig": {}}] * 4}]),
            r"^0 of 4 webhooks have a CA bundle \(w, w, w, w without\)$",
        ),
        (lambda: upgrading.check_unchanged({}, {}), "no pods to compare"),
        (
            lambda: upgrading.check_unchanged({"a": 0, "b": 0}, {"a": 0, "b": 1}),
            "1 of 2 pods were replaced or restarted",
        ),
        (lambda: upgrading.check_unchanged({"a": 0}, {"c": 0}), "1 of 1 pods were replaced or restarted"),
    ],
    ids=["installed", "no catalog", "no webhooks", "no CA bundle", "no pods", "restarted", "replaced"],
)
def test_failed_check_raises_one_sentence(run: Callable[[], object], message: str) -> None:
    with pytest.raises(DemoError, match=message):
        run()


def test_correct_objects_pass() -> None:
    installing.check_not_installed([])
    objects.check_catalog(READY)
    installing.check_webhooks([WITH_CA])
    upgrading.check_unchanged({"a": 0}, {"a": 0})


def test_install_plan_is_found_by_release_while_it_requires_approval() -> None:
    plans = [plan("old", FIRST, "Complete"), plan("new", SECOND)]
    assert objects.plan_for(plans, SECOND) == "new"
    assert objects.plan_for(plans, FIRST) == ""
    assert objects.plan_for([plan("new", SECOND, phase="")], SECOND) == "", "OLM has not written its status yet"


@pytest.mark.parametrize(
    ("found", "done", "text", "problem"),
    [
        (None, False, f"{FIRST}: no phase yet", ""),
        (csv("Installing", "waiting"), False, f"{FIRST}: Installing", ""),
        (csv("Failed", "no such image"), False, f"{FIRST}: Failed", "no such image"),
        (csv("Succeeded", "ok"), True, f"{FIRST}: Succeeded", ""),
    ],
)
def test_installation_progress(found: Any, done: bool, text: str, problem: str) -> None:
    assert objects.installed(found, FIRST) == (done, text, problem)


@pytest.mark.parametrize(
    ("releases", "owners", "done"),
    [([FIRST, SECOND], [FIRST], False), ([SECOND], [FIRST], False), ([SECOND], [], False), ([SECOND], [SECOND], True)],
)
def test_old_release_is_removed_with_its_certificate(releases: list[str], owners: list[str], done: bool) -> None:
    secrets = [{"metadata": {"ownerReferences": [{"name": owner} for owner in owners]}}]
    assert upgrading.old_release_removed([{"metadata": {"name": name}} for name in releases], secrets).done is done


def test_fingerprint_has_uids_and_restart_counts() -> None:
    assert objects.fingerprint([POD, {"metadata": {"uid": "b"}}]) == {"a": 0, "b": 0}


def test_subscription_starts_at_this_release_with_manual_approval() -> None:
    _, group, subscription = yaml.safe_load_all(objects.subscription(FIRST))
    assert group["spec"] == {}
    assert subscription["spec"]["startingCSV"] == f"memcached-operator.v{project_version()}"
    assert subscription["spec"]["installPlanApproval"] == "Manual"


def test_approval_patches_the_pending_install_plan() -> None:
    kubectl = FakeKubectl({"get -n memcached-operator-system installplans": {"items": [plan("new", SECOND)]}})
    installing.approve(Stage(kubectl, screen(), Path("sample.yaml")), SECOND)
    assert kubectl.commands[-1].startswith("patch -n memcached-operator-system installplan new")


def test_remaining_pods_fail_the_step() -> None:
    with pytest.raises(DemoError, match="some of its pods are not"):
        removal.cleans_up(stage({"get -n demo pods": {"items": [POD]}}))


def test_demo_ends_at_the_first_failed_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(on: Stage) -> None:
        FakeKubectl({"get": failed("error: no cluster")}).must(["get", "nodes"])

    steps: tuple[scenes.Step, ...] = (("First", "", failing), ("Second", "", lambda _: pytest.fail("not reached")))
    monkeypatch.setitem(scenes.SCENES, "olm", replace(scenes.SCENES["olm"], steps=steps))
    assert cli.main(["--scenes", "olm"]) == 1
    assert "Step 1 failed: `kubectl get nodes` failed: no cluster." in capsys.readouterr().err
