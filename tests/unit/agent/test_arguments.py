"""When memcached is restarted with other arguments, and what is reported meanwhile."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from memcached_agent.metrics.exposition import render
from memcached_agent.options import Restart
from memcached_agent.pod.arguments import INEFFECTIVE, PENDING, REPEAT, Arguments

from .proc import CATCHES, process
from .samples import value

ITEMS = "/cache/items"
FIXED = ("-p", "11211", "-Y", "/auth/users", "-e", ITEMS)
IGNORED = "memcached was restarted but does not use the arguments of its pod; use an image"


class Pod:
    """A pod whose memcached runs with `-t 2`. `sent`: the processes that got SIGUSR1."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc = directory / "proc"
        self.proc.mkdir()
        self.file = directory / "args"
        self.now = 0.0
        self.sent: list[int] = []
        self.error: OSError | None = None
        monkeypatch.setattr(os, "kill", self._kill)
        self.write("-t 2")
        self.start(1, "-t", "2")
        self.agent = self.restarted()

    def restarted(self) -> Arguments:
        """Restart the agent."""
        self.agent = Arguments(Restart(str(self.file), ITEMS), lambda: self.now, str(self.proc))
        return self.agent

    def write(self, text: str) -> None:
        """Replace the file."""
        self.file.write_text(text)

    def start(self, number: int, *arguments: str, catches: int = CATCHES, fixed: tuple[str, ...] = FIXED) -> None:
        """Let this be the only memcached."""
        for each in self.proc.iterdir():
            shutil.rmtree(each)
        process(self.proc, number, "memcached", *fixed, *arguments, catches=catches)

    def step(self, seconds: float = 5) -> tuple[list[int], str, str]:
        """Let time pass; returns who got a signal, the problem, and why the pod is not ready."""
        self.now += seconds
        self.sent.clear()
        self.agent.step()
        return self.sent, self.agent.problem.sentence, self.agent.obstacle()

    def _kill(self, number: int, signum: int) -> None:
        assert signum == signal.SIGUSR1
        if self.error:
            raise self.error
        self.sent.append(number)


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    return Pod(tmp_path, monkeypatch)


READY: tuple[list[int], str, str] = ([], "", "")


def test_memcached_is_restarted_once_for_each_change(pod: Pod) -> None:
    assert pod.step() == READY
    for number, count in ((1, "4"), (2, "2"), (3, "4")):
        pod.write(f"-t {count}")
        assert pod.agent.obstacle() == PENDING, "not ready before the agent has sent the signal"
        assert pod.step() == ([number], "", PENDING)
        assert pod.step() == ([], "", PENDING), "it ends"
        pod.start(number + 1, "-t", count)
        assert pod.step() == READY
    text = render(pod.agent.metrics()).decode()
    assert value(text, "memcached_agent_memcached_signals_total") == 3
    assert value(text, "memcached_agent_arguments_in_effect") == 1


@pytest.mark.parametrize("text", ["-t 2", "-t 2\n", " -t  2 \n", "-t\t2\nmore lines"])
def test_file_is_read_as_the_shell_reads_it(pod: Pod, text: str) -> None:
    pod.write(text)
    assert pod.step() == READY


@pytest.mark.parametrize("arguments", ["", "-t", "-t 2 -c 5", "-t 22"])
def test_each_difference_counts(pod: Pod, arguments: str) -> None:
    pod.start(1, *arguments.split())
    assert pod.step() == ([1], "", PENDING)
    assert value(render(pod.agent.metrics()).decode(), "memcached_agent_arguments_in_effect") == 0


def test_process_that_does_not_end_gets_the_signal_again(pod: Pod) -> None:
    pod.write("-t 4")
    pod.step()
    pod.write("-t 8")
    assert pod.step(REPEAT - 1)[0] == [], "not for another change either"
    assert pod.step(1)[0] == [1]
    assert pod.step()[0] == []


def test_program_that_ignores_the_arguments_is_restarted_rarely(pod: Pod) -> None:
    """Such as a script that is called `memcached`, and starts it with others."""
    pod.write("-t 4")
    assert pod.step() == ([1], "", PENDING)
    pod.start(2, "-t", "2")
    for _ in range(3):
        sent, problem, obstacle = pod.step(REPEAT)
        assert (sent, problem.startswith(IGNORED), obstacle) == ([], True, problem)
    assert pod.step(INEFFECTIVE)[0] == [2]
    pod.start(3, "-t", "4")
    assert pod.step() == READY


def test_restart_of_the_agent_loses_nothing(pod: Pod) -> None:
    pod.write("-t 4")
    pod.restarted()
    assert pod.step() == ([1], "", PENDING)


EMPTY = (
    "/args is empty; restore the annotation memcached-operator.example.com/args of the pod. To replace the pod and "
    "lose its items, delete it"
)


UNUSABLE = {"": EMPTY, " \n-t 2": EMPTY, None: "/args cannot be read: No such file"}


@pytest.mark.parametrize(("text", "problem"), UNUSABLE.items())
def test_memcached_keeps_running_without_a_file(pod: Pod, text: str | None, problem: str) -> None:
    if text is None:
        pod.file.unlink()
    else:
        pod.write(text)
    sent, found, obstacle = pod.step()
    assert (sent, problem in found, obstacle) == ([], True, found)
    pod.write("-t 2")
    assert pod.step() == READY


def test_memcached_that_starts_gets_no_signal(pod: Pod) -> None:
    """Before it has a handler, the signal would end it, and its items with it."""
    pod.start(1, "-t", "4", catches=0)
    assert pod.step()[0] == []
    pod.start(1, "-t", "4")
    assert pod.step() == ([1], "", PENDING)


def test_memcached_of_another_user_is_a_problem_with_its_remedy(pod: Pod) -> None:
    pod.write("-t 4")
    pod.error = PermissionError()
    sent, problem, obstacle = pod.step()
    assert (sent, "runs as another user; set spec.podTemplate.spec.securityContext.runAsUser" in problem) == ([], True)
    assert obstacle == problem
    pod.error = None
    assert pod.step() == ([1], "", PENDING)


def test_memcached_that_is_not_visible_is_not_ready(pod: Pod) -> None:
    shutil.rmtree(pod.proc / "1")
    sent, problem, obstacle = pod.step()
    assert (sent, "no process of memcached with -e /cache/items" in problem, obstacle) == ([], True, problem)
    pod.start(1, "-t", "4", fixed=("-e", "/other"))
    assert pod.step()[0] == []
