"""What all steps share: kubectl, the screen, and the Memcached of the demo."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from demo import reading, waiting
from demo.errors import DemoError
from demo.kubectl import Done, Kubectl, Object, typed
from demo.screen import Screen
from demo.waiting import Progress

SELECTOR = "app.kubernetes.io/managed-by=memcached-operator,app.kubernetes.io/instance="


@dataclass
class Stage:
    """One run of the demo. `name` and `size` are those of the sample, once it is applied."""

    kubectl: Kubectl
    screen: Screen
    sample: Path
    name: str = ""
    size: int = 0

    def show(self, words: list[str], stdin: str | None = None) -> Done:
        """Show a command, run it and show its output. Raises DemoError if it fails."""
        self.screen.command(typed(words, stdin))
        done = self.kubectl.must(words, stdin)
        self.screen.result(done.err + done.out)
        return done

    def show_denied(self, words: list[str], reason: str, stdin: str | None = None) -> None:
        """Show a command that must be denied for this reason. Raises DemoError otherwise."""
        self.screen.command(typed(words, stdin))
        done = self.kubectl.run(words, stdin)
        self.screen.result(done.err + done.out)
        if not done.code:
            raise DemoError("this was accepted, but must be denied")
        if reason not in done.err:
            raise DemoError(f"this was denied, but not with the message {reason!r}")

    def memcached(self) -> Object:
        """The current Memcached. Raises DemoError if it does not exist."""
        found = self.kubectl.read("memcached", self.name)
        if found is None:
            raise DemoError(f"the Memcached {self.name} does not exist any more")
        return found

    def pods(self) -> list[Object]:
        """Its pods, including those being deleted."""
        return self.kubectl.items(self.kubectl.here("get", "pods", "-l", f"{SELECTOR}{self.name}"))

    def wait_ready(self, what: str, deleted: Collection[str] = ()) -> float:
        """Wait until the Memcached is as its spec says, without the deleted pods; returns the seconds it took."""

        def check() -> Progress:
            return reading.progress(self.memcached(), deleted)

        seconds = waiting.wait(self.screen, check, what)
        self._check_nodes()
        return seconds

    def _check_nodes(self) -> None:
        """The status must list exactly the live pods."""
        live = sorted(pod["metadata"]["name"] for pod in self.pods() if not pod["metadata"].get("deletionTimestamp"))
        listed = reading.nodes(self.memcached())
        if listed != live:
            raise DemoError(f"status.nodes lists {', '.join(listed)}, but the live pods are {', '.join(live)}")
