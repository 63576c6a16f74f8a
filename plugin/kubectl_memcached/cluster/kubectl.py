"""kubectl, which reaches the cluster with the user's contexts, logins and rights."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model.objects import Object, objects
from kubectl_memcached.model.printable import one_line

TIMEOUT: Final = 30
"""Seconds for one request, kubectl's option --request-timeout."""
_MARGIN: Final = 10
"""Seconds that kubectl may need in addition to the request, for example for an interactive login."""

WARNING: Final = "Warning:"
_KLOG: Final = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\s\]]+:\d+\] ")
"""The start of a line of klog, kubectl's library for logs: severity, month and day, time, thread, file and line."""
_PREFIX: Final = re.compile(r"^(?:error: |Error from server \(\w+\): )")
_FORBIDDEN: Final = re.compile(r"\(Forbidden\)|is forbidden:|cannot \w+ resource")
_RIGHT: Final = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?')
"""The part of a message of Forbidden that every authorizer shares, as the API server writes it."""
_NO_KIND: Final = re.compile(r"the server doesn't have a resource type \"([^\"]+)|no matches for kind \"([^\"]+)")
_UNAUTHORIZED: Final = re.compile(r"\(Unauthorized\)|You must be logged in")
_SERVED: Final = re.compile(r"^Error from server|error dialing backend|unable to upgrade connection", re.MULTILINE)
"""The API server has responded, perhaps because it cannot reach the kubelet of a node."""
_MISSING: Final = re.compile(r"\(NotFound\)|not found")
_UNREACHABLE: Final = re.compile(
    r"Unable to connect|connection to the server|dial tcp|no configuration has been provided|current-context|"
    r"context .* does not exist|i/o timeout|TLS handshake|x509:|"
    r"[Ee]rror in configuration|context was not found|"
    r"couldn't get current server API group list|Client\.Timeout|getting credentials|no such host|connection refused"
)


def failure(stderr: str, what: str) -> PluginError:
    """The error of a kubectl that failed, from its messages. `what`: the action, as in `read the pods`."""
    lines = _messages(stderr)
    message, reason = "\n".join(lines), _PREFIX.sub("", lines[-1])
    if _FORBIDDEN.search(message):
        return PluginError(
            f"You may not {what}: {_right(message) or reason}. docs/plugin.md lists the permissions.",
            ExitCode.FORBIDDEN,
        )
    if _UNAUTHORIZED.search(message) or (_UNREACHABLE.search(message) and not _SERVED.search(message)):
        return PluginError(
            f"kubectl cannot reach the cluster: {reason}. Check --context and KUBECONFIG.", ExitCode.CLUSTER
        )
    if missing := _NO_KIND.search(message):
        return _no_kind(missing[1] or missing[2], what)
    code = ExitCode.MISSING if _MISSING.search(message) else ExitCode.CLUSTER
    return PluginError(f"kubectl cannot {what}: {reason}", code, reason)


def _messages(stderr: str) -> list[str]:
    """The lines of standard error without warnings, and without lines of klog if there are others."""
    lines = [line for line in stderr.strip().splitlines() if line and not line.startswith(WARNING)]
    others = [line for line in lines if not _KLOG.match(line)]
    return others or [_KLOG.sub("", line) for line in lines] or ["it gave no reason"]


def _right(message: str) -> str:
    """The missing permission, as a part of a sentence. Empty if the message does not name it."""
    if not (found := _RIGHT.search(message)):
        return ""
    verb, path, group, namespace = found.groups("")
    resource, slash, subresource = path.partition("/")
    full = f"{resource}.{group}" if group else resource
    where = f"in namespace {namespace}" if namespace else "in the whole cluster"
    return f"you lack the permission `{verb}` of `{full}{slash}{subresource}` {where}"


def _no_kind(name: str, what: str) -> PluginError:
    """The error if the API server does not have a kind, which is named in the plural or not."""
    if name.lower().startswith("memcached") and "prox" not in name.lower():
        sentence = "This cluster has no Memcacheds: the operator is not installed, or --context is another cluster."
    else:
        sentence = f"kubectl cannot {what}: this cluster has no resource type {name}"
    return PluginError(sentence, ExitCode.MISSING)


@dataclass(frozen=True)
class Kubectl:
    """kubectl with the options --kubeconfig, --context and --namespace, which may be empty."""

    program: str
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""

    def options(self, namespace: str = "") -> list[str]:
        """The options of every command. `namespace`: replaces the user's."""
        named = namespace or self.namespace
        return [*self.cluster_options, *([f"--namespace={named}"] if named else [])]

    @property
    def cluster_options(self) -> list[str]:
        """The options that select the cluster and the user."""
        named = {"--kubeconfig": self.kubeconfig, "--context": self.context}
        return [f"{name}={value}" for name, value in named.items() if value]

    def run(self, what: str, *words: str, namespace: str = "", limited: bool = True) -> str:
        """The output of kubectl. `limited`: whether the command has --request-timeout. Raises PluginError."""
        output, warnings = self.change(what, *words, namespace=namespace, limited=limited)
        for line in warnings:  # from admission: the cost of the change
            sys.stderr.write(f"{WARNING} {one_line(line)}\n")
        return output

    def change(
        self, what: str, *words: str, namespace: str = "", limited: bool = True, stdin: str | None = None
    ) -> tuple[str, list[str]]:
        """The output of kubectl, and the warnings of the API server. Raises PluginError."""
        limit = [f"--request-timeout={TIMEOUT}s"] if limited else []
        command = [self.program, *words, *limit, *self.options(namespace)]
        try:
            done = subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                errors="replace",
                timeout=TIMEOUT + _MARGIN,
            )
        except subprocess.TimeoutExpired:
            raise PluginError(
                f"kubectl cannot {what}: it did not exit within {TIMEOUT + _MARGIN} s", ExitCode.CLUSTER
            ) from None
        except OSError as error:
            raise PluginError(f"{self.program} cannot be started: {error.strerror}", ExitCode.CLUSTER) from None
        if done.returncode:
            raise failure(done.stderr, what)
        lines = [line for line in done.stderr.splitlines() if line.startswith(WARNING)]
        return done.stdout, [line.removeprefix(WARNING).strip() for line in lines]

    def get(self, what: str, resource: str, name: str, *options: str, namespace: str = "") -> Object:
        """An object, as `kubectl get -o json` prints it. Raises PluginError.

        `name`: can be any text of the cluster, such as a reference. kubectl never reads it as an option.
        """
        if name.startswith("-"):
            raise PluginError(f"kubectl cannot {what}: {name!r} is not a name", ExitCode.MISSING)
        return parsed(self.run(what, "get", resource, name, *options, "-o=json", namespace=namespace), what)

    def list(self, what: str, resource: str, *options: str, namespace: str = "") -> list[Object]:
        """The objects of a list. Raises PluginError."""
        output = self.run(what, "get", resource, *options, "-o=json", namespace=namespace)
        return objects(parsed(output, what), "items")


def parsed(output: str, what: str) -> Object:
    """The object in the output of kubectl. Raises PluginError."""
    try:
        document: Any = json.loads(output)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise PluginError(f"kubectl cannot {what}: its output is not JSON", ExitCode.CLUSTER)
    return document  # pyright: ignore[reportUnknownVariableType]


def kubectl(options: Sequence[str]) -> Kubectl:
    """The kubectl in PATH with these options: kubeconfig, context, namespace. Raises PluginError."""
    program = shutil.which("kubectl")
    if program is None:
        raise PluginError("kubectl is not in PATH: install it, or add its directory to PATH.", ExitCode.CLUSTER)
    return Kubectl(program, *options)
