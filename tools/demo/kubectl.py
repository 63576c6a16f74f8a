"""Running kubectl as a user would, in the project's root."""

import json
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.errors import StoryError

Object = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]

SECONDS = 60.0
"""One kubectl command takes no longer: what is waited for longer is asked again and again."""


@dataclass(frozen=True)
class Done:
    """What became of one command."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The last line of what kubectl complained of, without its own prefix."""
        lines = [line for line in self.err.strip().splitlines() if line.strip()]
        return lines[-1].strip().removeprefix("error: ") if lines else f"exit code {self.code}"


class Kubectl:
    """kubectl with the namespace of the story."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def here(self, *words: str) -> list[str]:
        """The words of a command with our namespace in the second place, as people write it: `get -n ns pods`."""
        return [words[0], "-n", self.namespace, *words[1:]]

    def run(self, words: list[str], stdin: str | None = None, seconds: float = SECONDS) -> Done:
        """Run it, whatever comes of it. Raises StoryError where there is no kubectl or no answer."""
        try:
            done = subprocess.run(
                ["kubectl", *words], input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
                capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise StoryError("kubectl is not on the PATH; `make demo` brings its own") from error
        except subprocess.TimeoutExpired as error:
            raise StoryError(f"`{typed(words)}` gave no answer within {seconds:.0f} s") from error
        return Done(done.returncode, done.stdout, done.stderr)

    def must(self, words: list[str], stdin: str | None = None) -> Done:
        """Run a command that must succeed. Raises StoryError with kubectl's own words."""
        done = self.run(words, stdin)
        if done.code:
            raise StoryError(f"`{typed(words)}` failed: {done.complaint}")
        return done

    def read(self, kind: str, name: str) -> Object | None:
        """One object of our namespace, or None."""
        found = self.must(self.here("get", kind, name, "--ignore-not-found", "-o", "json")).out
        return json.loads(found) if found.strip() else None

    def items(self, words: list[str]) -> list[Object]:
        """The objects that a `get` finds."""
        return json.loads(self.must([*words, "-o", "json"]).out)["items"]


def typed(words: list[str], stdin: str | None = None) -> str:
    """A command as it is typed into a shell."""
    line = shlex.join(["kubectl", *words])
    return line if stdin is None else f"{line} <<'END'\n{stdin.rstrip()}\nEND"
