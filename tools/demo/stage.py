"""What all steps use: kubectl, as a user types it, and waiting while the user sees the progress."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from demo import reading
from demo.screen import Screen

Object = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
KUBECTL_SECONDS = 60.0
"""The timeout of one command; longer waits repeat a command."""
WAIT_SECONDS = 180.0
"""The default timeout of a wait: on a cluster that pulls its images, the pull takes most of it."""
PROBLEM_SECONDS = 10.0
"""How long a problem may persist until a wait fails: some disappear by themselves."""
POLL_SECONDS = 0.3


class DemoError(Exception):
    """A step failed: the message is one sentence that says how, and where it helps, the remedy."""


class Step(NamedTuple):
    """A step of a demo: its title, a sentence about it, and what it does."""

    title: str
    about: str
    run: Callable[["Stage"], None]


def step(title: str, about: str) -> Callable[[Callable[["Stage"], None]], Step]:
    """Decorator that makes a function a step."""
    return lambda run: Step(title, about, run)


class Done(NamedTuple):
    """The result of one command."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The last line of kubectl's errors, without its prefix."""
        lines = [line for line in self.err.strip().splitlines() if line.strip()]
        return lines[-1].strip().removeprefix("error: ") if lines else f"exit code {self.code}"


@dataclass
class Stage:
    """One run of a demo. `name`: of the Memcached, once the sample is applied. Commands are complete shell lines."""

    namespace: str
    screen: Screen
    sample: Path
    name: str = ""
    sleep: Callable[[float], None] = time.sleep

    @property
    def here(self) -> str:
        """kubectl with the namespace of the demo."""
        return f"kubectl -n {self.namespace}"

    @property
    def target(self) -> str:
        """The Memcached, for kubectl."""
        return f"memcached/{self.name}"

    def run(self, line: str, stdin: str = "", seconds: float = KUBECTL_SECONDS) -> Done:
        """Run a command that may fail. Raises DemoError if there is no kubectl, or on a timeout."""
        try:
            done = subprocess.run(
                shlex.split(line), input=stdin, capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT
            )
        except FileNotFoundError as error:
            raise DemoError("kubectl is not on the PATH; `make demo` uses its own") from error
        except subprocess.TimeoutExpired as error:
            raise DemoError(f"`{line}` did not finish within {seconds:.0f} s") from error
        return Done(done.returncode, done.stdout, done.stderr)

    def must(self, line: str, stdin: str = "") -> Done:
        """Run a command that must succeed. Raises DemoError with kubectl's error."""
        done = self.run(line, stdin)
        if done.code:
            raise DemoError(f"`{line}` failed: {done.complaint}")
        return done

    def show(self, line: str, stdin: str = "", denied: str = "") -> str:
        """Show a command, run it and show its output, which is returned.

        Raises DemoError if it fails. `denied`: it must fail with this in its message.
        """
        self.screen.command(line, stdin)
        done = self.run(line, stdin) if denied else self.must(line, stdin)
        self.screen.result(done.err + done.out)
        if denied and not done.code:
            raise DemoError("this was accepted, but must be denied")
        if denied not in done.err:
            raise DemoError(f"this was denied, but not with the message {denied!r}")
        return done.out

    def read(self, line: str, stdin: str = "") -> Object:
        """The JSON that a command prints; empty for no output."""
        return json.loads(self.must(f"{line} -o json", stdin).out.strip() or "{}")

    def items(self, line: str) -> list[Object]:
        """The objects that a `get` returns."""
        return self.read(line)["items"]

    def memcached(self) -> Object:
        """The current Memcached. Raises DemoError if it does not exist."""
        found = self.read(f"{self.here} get {self.target} --ignore-not-found")
        if not found:
            raise DemoError(f"the Memcached {self.name} does not exist any more")
        return found

    def pods(self) -> list[Object]:
        """Its pods, including those being deleted."""
        labels = f"app.kubernetes.io/managed-by=memcached-operator,app.kubernetes.io/instance={self.name}"
        return self.items(f"{self.here} get pods -l {labels}")

    def wait(self, what: str, check: Callable[[], reading.Progress], seconds: float = WAIT_SECONDS) -> float:
        """Check until it is done; returns the seconds it took. Raises DemoError on a timeout or a lasting problem."""
        begun = self.screen.clock()
        well = begun
        while not (found := check()).done:
            now = self.screen.clock()
            self.screen.move(f"{found.text} ({now - begun:.0f} s)" if self.screen.live else found.text)
            well = well if found.problem else now
            if now - well >= PROBLEM_SECONDS:
                raise DemoError(f"waiting for {what} failed: {found.problem}")
            if now - begun >= seconds:
                raise DemoError(f"waiting for {what} timed out after {seconds:.0f} s; last state: {found.text}")
            self.sleep(POLL_SECONDS)
        return self.screen.clock() - begun

    def wait_ready(self, what: str, deleted: Collection[str] = ()) -> float:
        """Wait until the Memcached is as its spec says and lists exactly its live pods; returns the seconds it took."""
        seconds = self.wait(what, lambda: reading.progress(self.memcached(), deleted))
        live = sorted(pod["metadata"]["name"] for pod in self.pods() if not pod["metadata"].get("deletionTimestamp"))
        listed = reading.nodes(self.memcached())
        if listed != live:
            raise DemoError(f"status.nodes lists {', '.join(listed)}, but the live pods are {', '.join(live)}")
        return seconds
