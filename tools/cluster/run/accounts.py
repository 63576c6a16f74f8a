"""Users of the API server: static tokens, and a kubeconfig for each."""

import base64
import json
import secrets
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Account:
    """A user of the API server; `file` is the name of its kubeconfig."""

    file: str
    user: str
    groups: tuple[str, ...] = ()


def accounts(node: str) -> list[Account]:
    """The administrator and the components; the kubelet's user is the node's, so the Node authorizer applies."""
    return [
        Account("admin", "admin", ("system:masters",)),
        Account("controller-manager", "system:kube-controller-manager"),
        Account("scheduler", "system:kube-scheduler"),
        Account("kubelet", f"system:node:{node}", ("system:nodes",)),
        Account("proxy", "system:kube-proxy"),
        Account("dns", "system:cluster-dns", ("system:masters",)),
        Account("kwok", "system:kwok", ("system:masters",)),
    ]


def new_token() -> str:
    """A new random token of 192 bits."""
    return secrets.token_urlsafe(24)


def tokens_csv(tokens: dict[Account, str]) -> str:
    """The API server's --token-auth-file: token, user, uid, groups."""
    rows = [f'{token},{who.user},{who.user},"{",".join(who.groups)}"' for who, token in tokens.items()]
    return "\n".join(rows) + "\n"


def kubeconfig(server: str, token: str, authority: bytes) -> str:
    """A kubeconfig with one context named "cluster" (JSON, which is YAML too)."""
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "cluster",
        "clusters": [
            {
                "name": "cluster",
                "cluster": {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()},
            }
        ],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": "user"}}],
    }
    return json.dumps(content, indent=2) + "\n"


P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def signing_key() -> str:
    """A new P-256 key for service account tokens (PEM, SEC 1, without the optional public key)."""
    scalar = (secrets.randbelow(P256_ORDER - 1) + 1).to_bytes(32, "big")
    der = bytes.fromhex("30310201010420") + scalar + bytes.fromhex("a00a06082a8648ce3d030107")
    return f"-----BEGIN EC PRIVATE KEY-----\n{base64.b64encode(der).decode()}\n-----END EC PRIVATE KEY-----\n"
