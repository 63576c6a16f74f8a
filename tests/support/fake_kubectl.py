"""A kubectl for the tests of the plugin: it responds from a directory, and records its command lines."""

import ast
import json
import marshal
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from support import kubectl_program
from support.kubectl_program import CALLS, STATE, VARIABLE

FORBIDDEN = (
    'Error from server (Forbidden): {0} is forbidden: User "jo" cannot {1} resource "{0}" in API group "{2}" '
    'in the namespace "shop"'
)
FORBIDDEN_PORT = (
    'error: error upgrading connection: pods "sessions-0" is forbidden: User "jo" cannot create resource '
    '"pods/portforward" in API group "" in the namespace "shop"'
)
"""What kubectl 1.35 prints."""

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
        program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-S", kubectl_program.__file__])} "$@"\n')
        program.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """The variables with which this kubectl is found, after its state is written."""
        state = {name: getattr(self, name) for name in ("ports", "errors", "outputs", "pruned")}
        state["objects"] = {
            resource: [(obj.get("metadata", {}).get("name"), json.dumps(obj)) for obj in objects]
            for resource, objects in self.objects.items()
        }
        (self.folder / STATE).write_bytes(marshal.dumps(state))
        return {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}", VARIABLE: str(self.folder)}

    def calls(self) -> list[list[str]]:
        """The command lines so far."""
        file = self.folder / CALLS
        return [ast.literal_eval(line) for line in file.read_text().splitlines()] if file.exists() else []

    def forbid(self, verb: str, resource: str) -> None:
        """Make the API server reject a request. `resource`: with its group, as on the command line."""
        plural, _, group = resource.partition(".")
        message = FORBIDDEN_PORT if verb == "port-forward" else FORBIDDEN.format(plural, verb, group)
        self.errors[f"{verb} {resource}"] = message
