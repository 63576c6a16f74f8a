"""The parts of the demo that do not need a cluster: .ci/run runs its steps."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from demo import __main__ as demo
from demo import cache, reading
from demo.reading import Progress
from demo.screen import Screen
from demo.stage import PROBLEM_SECONDS, DemoError, Done, Stage, Step


def memcached(size: int = 3, nodes: str = "abc", generation: int = 2, **states: str) -> dict[str, Any]:
    """A ready Memcached with three pods; `states` change the status of its conditions."""
    current = {"Available": "True", "Progressing": "False", "Degraded": "False"} | states
    conditions = [
        {"type": name, "status": state, "observedGeneration": 2, "message": f"{name} is {state}"}
        for name, state in current.items()
    ]
    return {
        "metadata": {"name": "cache", "generation": generation},
        "spec": {"size": size},
        "status": {"readyReplicas": 3, "nodes": list(nodes), "conditions": conditions},
    }


NEW: dict[str, Any] = {**memcached(), "status": {}}


def test_ready_memcached_is_done() -> None:
    text = "3 of 3 pods ready, Available=True, Progressing=False, Degraded=False"
    assert reading.progress(memcached()) == (True, text, "")


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (memcached(size=4), ""),
        (memcached(nodes="ab"), ""),
        (memcached(generation=3), ""),
        (memcached(Progressing="True"), ""),
        (memcached(Degraded="True"), "Degraded is True"),
        (NEW, ""),
    ],
)
def test_any_other_memcached_is_not_done(found: dict[str, Any], problem: str) -> None:
    progress = reading.progress(found)
    assert (progress.done, progress.problem) == (False, problem)


def test_deleted_pod_must_leave_the_status() -> None:
    found = reading.progress(memcached(), deleted="bz")
    assert (found.done, found.text.rpartition(", ")[2]) == (False, "still in the status: b")


def test_install_plan_is_found_by_release_while_it_requires_approval() -> None:
    def plan(name: str, phase: str) -> dict[str, Any]:
        spec = {"clusterServiceVersionNames": ["one"]}
        return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase} if phase else {}}

    plans = [plan("done", "Complete"), plan("no status yet", ""), plan("waits", "RequiresApproval")]
    assert (reading.plan_for(plans, "one"), reading.plan_for(plans, "two")) == ("waits", "")


@pytest.mark.parametrize(("releases", "owner", "done"), [("12", "1", False), ("2", "1", False), ("2", "2", True)])
def test_old_release_is_removed_with_its_certificate(releases: str, owner: str, done: bool) -> None:
    certificates = [{"metadata": {"ownerReferences": [{"name": owner}]}}]
    assert reading.replaced("2", [{"metadata": {"name": name}} for name in releases], certificates).done is done


class FakeStage(Stage):
    """Returns the output for the first key that the command contains, by default nothing; its clock only sleeps."""

    def __init__(self, outputs: Mapping[str, Done] | None = None) -> None:
        self.now = 0.0
        self.out = io.StringIO()
        self.outputs = outputs or {}
        super().__init__("demo", Screen(2, self.out, lambda: self.now), Path("sample.yaml"), "cache", self.advance)

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds

    def run(self, line: str, stdin: str = "", seconds: float = 0) -> Done:
        """The prepared result."""
        return next((each for key, each in self.outputs.items() if key in line), Done(0, "", ""))


def test_wait_shows_changes_and_reports_a_timeout_with_the_last_state() -> None:
    stage = FakeStage()
    with pytest.raises(DemoError, match=r"^waiting for it timed out after 5 s; last state: 1 of 2$"):
        stage.wait("it", lambda: Progress(False, "1 of 2"), 5)
    assert stage.out.getvalue() == "    ... 1 of 2\n"


def test_only_a_lasting_problem_ends_the_wait() -> None:
    stage = FakeStage()
    with pytest.raises(DemoError, match=r"^waiting for it failed: no image$"):
        stage.wait("it", lambda: Progress(False, "", "no image"))
    assert stage.now == pytest.approx(PROBLEM_SECONDS, abs=1)
    stage = FakeStage()
    half = PROBLEM_SECONDS / 2
    assert (
        stage.wait("it", lambda: Progress(stage.now > 30, "", "x" if stage.now % PROBLEM_SECONDS < half else "")) > 30
    )


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (Done(0, "created", ""), "accepted, but must be denied"),
        (Done(1, "", "failed calling webhook"), "not with the message 'must be at least 1'"),
    ],
)
def test_invalid_object_must_be_denied_with_the_remedy(result: Done, problem: str) -> None:
    with pytest.raises(DemoError, match=problem):
        cache.denies.run(FakeStage({"apply": result}))


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        ("get nodes", r"^no cluster responds \(no\); start one with `make cluster`"),
        ("get crd", "run `make deploy` first$"),
    ],
)
def test_missing_cluster_or_operator_is_reported_with_the_remedy(command: str, remedy: str) -> None:
    with pytest.raises(DemoError, match=remedy):
        cache.operator_runs.run(FakeStage({command: Done(1, "", "error: no")}))


def test_terminal_has_one_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "40"}.items():
        monkeypatch.setenv(name, value)
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    screen = Screen(1, out)
    screen.move("x" * 100)
    screen.say("done")
    assert out.getvalue() == f"\r\033[K    ... {'x' * 31}\r\033[K    done\n"


def fails(stage: Stage) -> None:
    """A step whose command fails."""
    FakeStage({"get": Done(1, "", "warning\nerror: no such thing\n")}).show("kubectl get pods")


def interrupted(stage: Stage) -> None:
    """A step during which the user presses Ctrl-C."""
    raise KeyboardInterrupt


def not_reached(stage: Stage) -> None:
    """A step that must not run."""
    pytest.fail("the demo continued")


@pytest.mark.parametrize(
    ("run", "code", "message"),
    [
        (fails, 1, "Step 1 failed: `kubectl get pods` failed: no such thing."),
        (interrupted, 130, "Interrupted. To clean up, run: kubectl delete namespace x memcached-operator-system"),
    ],
)
def test_demo_ends_at_the_first_failed_step(
    run: Any, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo.olm, "STEPS", (Step("First", "", run), Step("Second", "", not_reached)))
    assert demo.main(["--scenes=olm", "--namespace=x"]) == code
    assert capsys.readouterr().err.splitlines() == ["", message]
