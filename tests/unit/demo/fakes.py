"""Fakes for the demo: a kubectl with prepared output, a clock and a terminal."""

import io
import json
from collections.abc import Mapping
from typing import Any, cast

from demo.kubectl import Done, Kubectl, Object

from demo.screen import Screen


class FakeKubectl(Kubectl):
    """Returns the output for the first key that the command contains; records the commands.

    The outputs of a list are returned in order; the last one is repeated.
    """

    def __init__(self, outputs: Mapping[str, Any], namespace: str = "demo") -> None:
        super().__init__(namespace)
        self.outputs = {key: _list(each) for key, each in outputs.items()}
        self.commands: list[str] = []

    def run(self, words: list[str], stdin: str | None = None, seconds: float = 0) -> Done:
        """Return the prepared output; a command without one succeeds and prints nothing."""
        del stdin, seconds
        line = " ".join(words)
        self.commands.append(line)
        for key, each in self.outputs.items():
            if key in line:
                output = each.pop(0) if len(each) > 1 else each[0]
                return output if isinstance(output, Done) else Done(0, _text(output), "")
        return Done(0, "", "")


def _list(output: Any) -> list[Any]:
    return list(cast("list[Any]", output)) if isinstance(output, list) else [output]


def _text(output: Any) -> str:
    return output if isinstance(output, str) else json.dumps(output)


def failed(message: str) -> Done:
    """A command that failed with this message."""
    return Done(1, "", f"{message}\n")


class Clock:
    """A clock that advances only in `sleep`."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds


class Terminal(io.StringIO):
    """A string buffer that is a terminal."""

    def isatty(self) -> bool:
        return True


def screen(out: io.StringIO | None = None, clock: Clock | None = None) -> Screen:
    """A screen of three steps."""
    return Screen(3, out if out is not None else io.StringIO(), clock or Clock())


def memcached(size: int = 3, ready: int = 3, nodes: tuple[str, ...] = ("a", "b", "c"), **changes: str) -> Object:
    """A ready Memcached named cache; `changes` sets the status of conditions by type, and `message` their message."""
    message = changes.pop("message", "All components are healthy")
    states = {"Available": "True", "Progressing": "False", "Degraded": "False"} | changes
    return {
        "metadata": {"name": "cache", "generation": 2},
        "spec": {"size": size, "containerPort": 11211},
        "status": {
            "readyReplicas": ready,
            "nodes": list(nodes),
            "conditions": [
                {"type": name, "status": status, "observedGeneration": 2, "message": message}
                for name, status in states.items()
            ],
        },
    }


def pod(name: str, *addresses: str) -> Object:
    """A pod with addresses."""
    return {"metadata": {"name": name}, "status": {"podIPs": [{"ip": address} for address in addresses]}}
