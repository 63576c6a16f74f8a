"""A kubectl for the tests of the plugin: it responds from a directory, and records its command lines.

`python fake_kubectl.py ARGUMENTS` is the program; `FakeKubectl` prepares the directory. It uses only the standard
library, so that it starts quickly.
"""

import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

VARIABLE = "FAKE_KUBECTL"
"""The environment variable with the directory."""
ENDED = "ended"
"""Recorded by a port-forward that a signal stopped."""
ENDING = {signal.SIGTERM, signal.SIGINT}
STATE, CALLS = "state.json", "calls.jsonl"
FORBIDDEN = (
    'Error from server (Forbidden): {0} is forbidden: User "jo" cannot {1} resource "{0}" in API group "{2}" '
    'in the namespace "shop"'
)
FORBIDDEN_PORT = (
    'error: error upgrading connection: pods "sessions-0" is forbidden: User "jo" cannot create resource '
    '"pods/portforward" in API group "" in the namespace "shop"'
)
"""What kubectl 1.35 prints."""

WARNING = "Warning: this change replaces 2 pods\x1b\n"
"""Of admission, after a patch."""

Object = dict[str, Any]


class FakeKubectl:
    """The program `kubectl` in a directory for PATH.

    `objects`: resource → objects. `ports`: pod → port of the pod → port of this machine. `errors`: `VERB RESOURCE` →
    standard error. `outputs`: `VERB RESOURCE`, or `logs POD CONTAINER` → output. `pruned`: fields of the spec that the
    API server drops.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects: dict[str, list[Object]] = {}
        self.ports: dict[str, dict[int, int]] = {}
        self.errors: dict[str, str] = {}
        self.outputs: dict[str, str] = {}
        self.pruned: list[str] = []
        program = folder / "kubectl"
        # Not with the interpreter in the first line, which the kernel splits at spaces.
        program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-S", __file__])} "$@"\n')
        program.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """The variables with which this kubectl is found, after its state is written."""
        state = {name: getattr(self, name) for name in ("objects", "ports", "errors", "outputs", "pruned")}
        (self.folder / STATE).write_text(json.dumps(state))
        return {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}", VARIABLE: str(self.folder)}

    def calls(self) -> list[list[str]]:
        """The command lines so far."""
        file = self.folder / CALLS
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def forbid(self, verb: str, resource: str) -> None:
        """Make the API server reject a request. `resource`: with its group, as on the command line."""
        plural, _, group = resource.partition(".")
        message = FORBIDDEN_PORT if verb == "port-forward" else FORBIDDEN.format(plural, verb, group)
        self.errors[f"{verb} {resource}"] = message


def main(words: list[str]) -> None:
    """The program."""
    record(words)
    state = json.loads((Path(os.environ[VARIABLE]) / STATE).read_text())
    arguments = [word for word in words if not word.startswith("-")]
    verb, resource = arguments[0], arguments[1].partition("/")[0] if len(arguments) > 1 else ""
    container = next((word.partition("=")[2] for word in words if word.startswith("--container=")), "")
    key = f"{verb} {resource} {container}".rstrip() if verb == "logs" else f"{verb} {resource}"
    if key in state["errors"]:
        fail(state["errors"][key])
    if key in state["outputs"]:
        say(state["outputs"][key])
        return
    handlers = {"get": get, "patch": patch, "port-forward": forward, "logs": logs}
    handlers[verb](state, arguments, words)


def record(words: list[str]) -> None:
    """Add a line to the command lines."""
    with (Path(os.environ[VARIABLE]) / CALLS).open("a") as calls:
        calls.write(json.dumps(words) + "\n")


def say(line: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fail(message: str) -> NoReturn:
    """Exit as kubectl does."""
    sys.stderr.write(f"{message}\n")
    sys.exit(1)


def get(state: Mapping[str, Any], arguments: list[str], words: list[str]) -> None:
    """`kubectl get RESOURCE [NAME]`."""
    listed = state["objects"].get(arguments[1], [])
    if len(arguments) == 2:
        say(json.dumps({"kind": "List", "items": listed}))
        return
    template = next((word.removeprefix("-o=jsonpath=") for word in words if word.startswith("-o=jsonpath=")), "")
    obj = named(listed, arguments)
    say(re.sub(r"\{\.([\w.]+)\}", lambda match: field(obj, match[1]), template) or json.dumps(obj))


def field(obj: Object, path: str) -> str:
    """A field as kubectl's jsonpath prints it; empty without it."""
    name, _, rest = path.partition(".")
    value = obj.get(name, {} if rest else "")
    return field(value, rest) if rest else value if isinstance(value, str) else json.dumps(value)


def named(listed: list[Object], arguments: list[str]) -> Object:
    """The object with the name on the command line."""
    obj = next((obj for obj in listed if obj["metadata"]["name"] == arguments[2]), None)
    return obj or fail(f'Error from server (NotFound): {arguments[1]} "{arguments[2]}" not found')


def patch(state: Mapping[str, Any], arguments: list[str], words: list[str]) -> None:
    """`kubectl patch RESOURCE NAME --patch=JSON`: prints the changed object, and does not store it."""
    obj = named(state["objects"].get(arguments[1], []), arguments)
    change = json.loads(next(word.removeprefix("--patch=") for word in words if word.startswith("--patch=")))
    spec = merged(obj["spec"], change["spec"])
    sys.stderr.write(WARNING)
    say(json.dumps({**obj, "spec": {name: value for name, value in spec.items() if name not in state["pruned"]}}))


def merged(old: Object, new: Object) -> Object:
    """A JSON merge patch."""
    changed = {
        name: merged(old.get(name) or {}, cast("Object", value)) if isinstance(value, dict) else value
        for name, value in new.items()
    }
    return {**old, **changed}


def logs(state: Mapping[str, Any], arguments: list[str], words: list[str]) -> None:
    """`kubectl logs POD` without a prepared output."""
    say("")


def forward(state: Mapping[str, Any], arguments: list[str], words: list[str]) -> None:
    """`kubectl port-forward pod/NAME :PORT…`: the local ports are those of the real servers. It exits at SIGTERM."""
    ports = state["ports"].get(arguments[1].removeprefix("pod/"))
    if ports is None:
        fail(f'Error from server (NotFound): pods "{arguments[1]}" not found')
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    for word in arguments[2:]:
        remote = word.removeprefix(":")
        say(f"Forwarding from 127.0.0.1:{ports.get(remote, 1)} -> {remote}")
    signal.sigwait(ENDING)
    record([ENDED])


if __name__ == "__main__":
    main(sys.argv[1:])
