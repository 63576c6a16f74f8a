"""Running kubectl in the project's root, as a user would."""

import json
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.errors import DemoError

Object = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]

SECONDS = 60.0
"""The timeout of one kubectl command; longer waits repeat a command."""


@dataclass(frozen=True)
class Done:
    """The result of one command."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The last line of kubectl's errors, without its prefix."""
        lines = [line for line in self.err.strip().splitlines() if line.strip()]
        return lines[-1].strip().removeprefix("error: ") if lines else f"exit code {self.code}"


class Kubectl:
    """kubectl with the namespace of the demo."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def here(self, *words: str) -> list[str]:
        """The words of a command with the namespace after the verb, as people write it: `get -n ns pods`."""
        return [words[0], "-n", self.namespace, *words[1:]]

    def run(self, words: list[str], stdin: str | None = None, seconds: float = SECONDS) -> Done:
        """Run a command that may fail. Raises DemoError if there is no kubectl, or on a timeout."""
        try:
            done = subprocess.run(
                ["kubectl", *words], input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
                capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise DemoError("kubectl is not on the PATH; `make demo` uses its own") from error
        except subprocess.TimeoutExpired as error:
            raise DemoError(f"`{typed(words)}` did not finish within {seconds:.0f} s") from error
        return Done(done.returncode, done.stdout, done.stderr)

    def must(self, words: list[str], stdin: str | None = None) -> Done:
        """Run a command that must succeed. Raises DemoError with kubectl's error."""
        done = self.run(words, stdin)
        if done.code:
            raise DemoError(f"`{typed(words)}` failed: {done.complaint}")
        return done

    def read(self, kind: str, name: str) -> Object | None:
        """One object of the namespace, or None."""
        found = self.must(self.here("get", kind, name, "--ignore-not-found", "-o", "json")).out
        return json.loads(found) if found.strip() else None

    def items(self, words: list[str]) -> list[Object]:
        """The objects that a `get` returns."""
        return json.loads(self.must([*words, "-o", "json"]).out)["items"]


def typed(words: list[str], stdin: str | None = None) -> str:
    """A command as it is typed into a shell."""
    line = shlex.join(["kubectl", *words])
    return line if stdin is None else f"{line} <<'END'\n{stdin.rstrip()}\nEND"
