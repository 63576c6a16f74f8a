"""The link between the host and a cluster's network namespace, as lists of commands."""

import ipaddress
import json
from typing import Any

from cluster.plan import Network, Plan
from cluster.shell import run

INSIDE = "eth0"


def host_commands(plan: Plan, pid: int) -> list[list[str]]:
    """Join the host to the namespace of process `pid`: a veth pair, and routes to pods and services through it."""
    link, via = plan.link, plan.node_address
    pair = ["ip", "link", "add", link, "type", "veth", "peer", "name", INSIDE, "netns", str(pid)]
    return [
        pair,
        ["ip", "address", "add", f"{plan.host_address}/30", "dev", link],
        ["ip", "link", "set", link, "up"],
        *(["ip", "route", "add", cidr, "via", via, "dev", link] for cidr in (plan.pod_cidr, plan.service_cidr)),
    ]


def inside_commands(plan: Plan) -> list[list[str]]:
    """Configure the other end. There is no default route: the cluster can reach nothing beyond this host."""
    # kube-proxy rewrites the destination, so this route is never used, but without a route the kernel sends
    # nothing.
    services = ["ip", "route", "add", plan.service_cidr, "dev", INSIDE, "src", plan.node_address]
    return [
        ["ip", "address", "add", f"{plan.node_address}/30", "dev", INSIDE],
        ["ip", "link", "set", INSIDE, "up"],
        services,
    ]


def join(plan: Plan, pid: int) -> None:
    """Create the link; `pid` is the supervisor's in the host's PID namespace."""
    if link_exists(plan.link):
        run(["ip", "link", "delete", plan.link])
    for command in host_commands(plan, pid):
        run(command)
    for command in inside_commands(plan):
        run(["nsenter", f"--net=/proc/{pid}/ns/net", *command])


def link_exists(name: str) -> bool:
    """Tell whether the host has an interface of this name."""
    links: list[dict[str, Any]] = json.loads(run(["ip", "-json", "link"]) or "[]")
    return any(link.get("ifname") == name for link in links)


def used_networks() -> list[Network]:
    """The destinations of the host's routes, except the default route."""
    routes: list[dict[str, Any]] = json.loads(run(["ip", "-json", "-4", "route", "show", "table", "all"]) or "[]")
    return [network for route in routes if (network := destination(route)) is not None]


def destination(route: dict[str, Any]) -> Network | None:
    """The destination of a route, or None for the default route."""
    text = str(route.get("dst", "default"))
    if text in {"default", "0.0.0.0/0"}:
        return None
    return ipaddress.IPv4Network(text, strict=False)
