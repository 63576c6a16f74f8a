"""The program of `fake_kubectl.FakeKubectl`: `python -S kubectl_program.py ARGUMENTS`.

Tests start it more than a thousand times, so it imports only what Python imports anyway.
"""
# ruff: noqa: PTH118, PTH123 - pathlib takes longer to import than all else

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    State = Mapping[str, Any]

VARIABLE = "FAKE_KUBECTL"
"""The environment variable with the directory."""
STATE, CALLS = "state", "calls"
"""Files there: the state as `marshal` writes it, and a list of words for each line."""
ENDED = "ended"
"""Recorded by a port-forward that a signal stopped."""
WARNING = "Warning: this change replaces 2 pods\x1b\n"
"""Of admission, after a patch."""


def main(words: "list[str]") -> None:
    """The program."""
    record(words)
    with open(os.path.join(os.environ[VARIABLE], STATE), "rb") as file:
        state = marshal.load(file)  # noqa: S302 - of these tests
    arguments = [word for word in words if not word.startswith("-")]
    verb, resource = arguments[0], arguments[1].partition("/")[0] if len(arguments) > 1 else ""
    key = f"{verb} {resource} {option(words, 'container')}".rstrip() if verb == "logs" else f"{verb} {resource}"
    if key in state["errors"]:
        fail(state["errors"][key])
    if key in state["outputs"]:
        say(state["outputs"][key])
        return
    handlers = {"get": get, "patch": patch, "port-forward": forward, "logs": logs}
    handlers[verb](state, arguments, words)


def option(words: "list[str]", name: str) -> str:
    """The value of an option; empty without it."""
    return next((word.partition("=")[2] for word in words if word.startswith(f"--{name}=")), "")


def record(words: "list[str]") -> None:
    """Add a line to the command lines."""
    with open(os.path.join(os.environ[VARIABLE], CALLS), "a") as calls:
        calls.write(f"{words!r}\n")


def say(line: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fail(message: str) -> "NoReturn":
    """Exit as kubectl does."""
    sys.stderr.write(f"{message}\n")
    sys.exit(1)


def get(state: "State", arguments: "list[str]", words: "list[str]") -> None:
    """`kubectl get RESOURCE [NAME]`."""
    if len(arguments) == 2:
        items = [text for _, text in state["objects"].get(arguments[1], [])]
        say(f'{{"kind": "List", "items": [{", ".join(items)}]}}')
        return
    text = named(state, arguments)
    template = next((word.removeprefix("-o=jsonpath=") for word in words if word.startswith("-o=jsonpath=")), "")
    say(printed(text, template) if template else text)


def printed(text: str, template: str) -> str:
    """The fields of an object as kubectl's jsonpath prints them; empty without them."""
    import json

    start, *parts = template.split("{.")
    for path, _, rest in (part.partition("}") for part in parts):
        found: Any = json.loads(text)
        for name in path.split("."):
            found = found.get(name, "") if found else ""
        start += (found if isinstance(found, str) else json.dumps(found)) + rest
    return start


def named(state: "State", arguments: "list[str]") -> str:
    """The object with the name on the command line, as JSON."""
    objects = dict(state["objects"].get(arguments[1], []))
    return objects.get(arguments[2]) or fail(f'Error from server (NotFound): {arguments[1]} "{arguments[2]}" not found')


def patch(state: "State", arguments: "list[str]", words: "list[str]") -> None:
    """`kubectl patch RESOURCE NAME --patch=JSON`: prints the changed object, and does not store it."""
    import json

    obj, change = json.loads(named(state, arguments)), json.loads(option(words, "patch"))
    spec = merged(obj["spec"], change["spec"])
    sys.stderr.write(WARNING)
    say(json.dumps({**obj, "spec": {name: value for name, value in spec.items() if name not in state["pruned"]}}))


def merged(old: "dict[str, Any]", new: "Any") -> "dict[str, Any]":
    """A JSON merge patch."""
    changed = {
        name: merged(old.get(name) or {}, value) if isinstance(value, dict) else value for name, value in new.items()
    }
    return {**old, **changed}


def logs(state: "State", arguments: "list[str]", words: "list[str]") -> None:
    """`kubectl logs POD` without a prepared output."""
    say("")


def forward(state: "State", arguments: "list[str]", words: "list[str]") -> None:
    """`kubectl port-forward pod/NAME :PORT…`: the local ports are those of the real servers. It exits at SIGTERM."""
    import signal

    ports, ending = state["ports"].get(arguments[1].removeprefix("pod/")), {signal.SIGTERM, signal.SIGINT}
    if ports is None:
        fail(f'Error from server (NotFound): pods "{arguments[1]}" not found')
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    for word in arguments[2:]:
        remote = word.removeprefix(":")
        say(f"Forwarding from 127.0.0.1:{ports.get(int(remote), 1)} -> {remote}")
    signal.sigwait(ending)
    record([ENDED])


if __name__ == "__main__":
    main(sys.argv[1:])
