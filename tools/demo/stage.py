"""What all steps share: kubectl, the screen, and the Memcached that the story is about."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from demo import reading, waiting
from demo.errors import StoryError
from demo.kubectl import Done, Kubectl, Object, typed
from demo.screen import Screen
from demo.waiting import Look

SELECTOR = "app.kubernetes.io/managed-by=memcached-operator,app.kubernetes.io/instance="


@dataclass
class Stage:
    """One run of the story. `name` and `size` are those of the sample, once it is applied."""

    kubectl: Kubectl
    screen: Screen
    sample: Path
    name: str = ""
    size: int = 0

    def told(self, words: list[str], stdin: str | None = None) -> Done:
        """Show a command, run it, show what came of it. Raises StoryError where it failed."""
        self.screen.command(typed(words, stdin))
        done = self.kubectl.must(words, stdin)
        self.screen.result(done.err + done.out)
        return done

    def refused(self, words: list[str], reason: str, stdin: str | None = None) -> None:
        """Show a command that must fail and say why. Raises StoryError where it does not."""
        self.screen.command(typed(words, stdin))
        done = self.kubectl.run(words, stdin)
        self.screen.result(done.err + done.out)
        if not done.code:
            raise StoryError("this was accepted, but must be refused")
        if reason not in done.err:
            raise StoryError(f"this was refused for another reason than {reason!r}")

    def memcached(self) -> Object:
        """Our Memcached as it is now. Raises StoryError where it is gone."""
        found = self.kubectl.read("memcached", self.name)
        if found is None:
            raise StoryError(f"the Memcached {self.name} is gone")
        return found

    def pods(self) -> list[Object]:
        """Its pods, those that are on their way out included."""
        return self.kubectl.items(self.kubectl.here("get", "pods", "-l", f"{SELECTOR}{self.name}"))

    def settle(self, what: str, gone: Collection[str] = ()) -> float:
        """Wait until the Memcached is as declared, with no pod of `gone`; the seconds it took."""

        def look() -> Look:
            return reading.progress(self.memcached(), gone)

        seconds = waiting.wait(self.screen, look, what)
        self._check_nodes()
        return seconds

    def _check_nodes(self) -> None:
        """The status must name exactly the pods that live."""
        live = sorted(pod["metadata"]["name"] for pod in self.pods() if not pod["metadata"].get("deletionTimestamp"))
        named = reading.nodes(self.memcached())
        if named != live:
            raise StoryError(f"status.nodes names {', '.join(named)}, but the live pods are {', '.join(live)}")
