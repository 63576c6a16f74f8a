"""Writing a cluster's files: configuration rendered from config/, tokens, keys and kubeconfigs."""

import json
import string
from pathlib import Path
from typing import Any

from cluster.binaries.packages import cni_directory, find
from cluster.images.recipes import PAUSE
from cluster.paths import HERE, State
from cluster.plan import Plan
from cluster.run.accounts import accounts, kubeconfig, new_token, signing_key, tokens_csv
from cluster.run.components import Component, Programs

TEMPLATES = HERE / "config"
COMMON = {"audit-policy.yaml": "audit-policy.yaml"}
BY_MODE = {
    "control-plane": {"kwok.yaml": "kwok.yaml"},
    "node": {
        "containerd.toml": "containerd.toml",
        "cni.conflist": "cni/pods.conflist",
        "kubelet.yaml": "kubelet.yaml",
        "Corefile": "Corefile",
    },
}
"""Template → place in the state's config directory."""


def values(plan: Plan, state: State) -> dict[str, str]:
    """The variables of the templates."""
    return {
        "state": str(state.dir),
        "config": str(state.config),
        "registries": str(state.registries),
        "socket": str(state.containerd_socket),
        "pause_image": PAUSE,
        "runc": find("runc") or "runc",
        "cni_plugins": str(cni_directory() or ""),
        "pod_cidr": plan.pod_cidr,
        "node_address": plan.node_address,
        "cgroup": plan.cgroup,
    }


def render(template: str, known: dict[str, str]) -> str:
    """Substitute ${name}; raises KeyError for an unknown name."""
    return string.Template(template).substitute(known)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file; creates its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def write_configuration(plan: Plan, state: State) -> None:
    """Render every template of the mode."""
    known = values(plan, state)
    for template, place in {**COMMON, **BY_MODE[plan.mode]}.items():
        write(state.config / place, render((TEMPLATES / template).read_text(), known))


def write_secrets(plan: Plan, state: State) -> None:
    """Tokens and the service accounts' key, created once for each cluster."""
    if (state.config / "tokens.csv").exists():
        return
    tokens = {account: new_token() for account in accounts(plan.node_name)}
    write(state.config / "service-accounts.key", signing_key(), 0o600)
    write(state.config / "tokens.json", json.dumps({who.file: token for who, token in tokens.items()}), 0o600)
    write(state.config / "tokens.csv", tokens_csv(tokens), 0o600)


def write_kubeconfigs(plan: Plan, state: State) -> None:
    """One kubeconfig per account; requires the API server's certificate."""
    authority = (state.certificates / "apiserver.crt").read_bytes()
    tokens: dict[str, str] = json.loads((state.config / "tokens.json").read_text())
    for name, token in tokens.items():
        write(state.config / f"{name}.kubeconfig", kubeconfig(plan.server, token, authority), 0o600)
    write(state.kubeconfig, kubeconfig(plan.server, tokens["admin"], authority), 0o600)


def read_components(state: State) -> dict[str, Any]:
    """The supervisor's components, by name: the cluster's and those added to it."""
    return json.loads(state.components_file.read_text())


def write_components(known: list[Component], state: State) -> None:
    """Add components to those that the supervisor can run."""
    every = read_components(state) | {each.name: each.to_json() for each in known}
    write(state.components_file, json.dumps(every, indent=1))


def forget_component(name: str, state: State) -> None:
    """Remove a stopped component from those that the supervisor can run."""
    rest = {each: spec for each, spec in read_components(state).items() if each != name}
    write(state.components_file, json.dumps(rest, indent=1))


def node_programs(folder: Path) -> Programs:
    """Our own programs and the system's containerd."""
    return Programs(folder, find("containerd") or "containerd")
