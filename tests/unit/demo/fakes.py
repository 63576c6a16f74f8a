"""A kubectl with prepared output, and a screen that writes into a string."""

import io
import json
from collections.abc import Mapping
from typing import Any, cast

from demo.kubectl import Done, Kubectl, Object
from demo.screen import Screen


class FakeKubectl(Kubectl):
    """Returns the output of the first key that occurs in the command; records the commands.

    A list of outputs is used one by one, and its last item is repeated.
    """

    def __init__(self, answers: Mapping[str, Any], namespace: str = "demo") -> None:
        super().__init__(namespace)
        self.answers = {key: _list(each) for key, each in answers.items()}
        self.asked: list[str] = []

    def run(self, words: list[str], stdin: str | None = None, seconds: float = 0) -> Done:
        """Return the prepared output; other commands succeed without output."""
        del stdin, seconds
        line = " ".join(words)
        self.asked.append(line)
        for key, each in self.answers.items():
            if key in line:
                answer = each.pop(0) if len(each) > 1 else each[0]
                return answer if isinstance(answer, Done) else Done(0, _text(answer), "")
        return Done(0, "", "")


def _list(answer: Any) -> list[Any]:
    return list(cast("list[Any]", answer)) if isinstance(answer, list) else [answer]


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)


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
    """A string that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def screen(out: io.StringIO | None = None, clock: Clock | None = None) -> Screen:
    """A screen of three steps."""
    return Screen(3, out if out is not None else io.StringIO(), clock or Clock())


def memcached(size: int = 3, ready: int = 3, nodes: tuple[str, ...] = ("a", "b", "c"), **changes: str) -> Object:
    """A ready Memcached named cache; `changes` sets the status of conditions, `message` that of all of them."""
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
