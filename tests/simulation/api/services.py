"""The addresses and ports that the API server allocates for Services (pkg/registry/core/service/storage)."""

import random
from collections.abc import Iterator
from typing import Any, Final

from memcached_operator.kube.resource import Object

NODE_PORTS: Final = range(30000, 32768)
NONE: Final = "None"


class Allocator:
    """Chooses values that are not in use."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def allocate(self, new: Object, old: Object | None, services: list[Object]) -> None:
        """Set the addresses and node ports that a Service lacks. `services`: all others."""
        spec = new["spec"]
        if spec["type"] == "ExternalName":
            return
        _set_policy(spec)
        if not spec.get("clusterIP"):
            used = {address for other in services for address in other["spec"].get("clusterIPs", ())}
            spec["clusterIP"] = next(address for address in self._addresses() if address not in used)
            spec["clusterIPs"] = [spec["clusterIP"]]
        if spec["type"] in ("NodePort", "LoadBalancer"):
            self._allocate_ports(spec, services)

    def _addresses(self) -> Iterator[str]:
        while True:
            yield f"10.96.{self._chance.randrange(256)}.{self._chance.randrange(1, 255)}"

    def _allocate_ports(self, spec: Object, services: list[Object]) -> None:
        used = {port.get("nodePort") for other in services for port in other["spec"].get("ports", ())}
        used |= {port.get("nodePort") for port in spec.get("ports", ())}
        for port in spec.get("ports", ()):
            if not port.get("nodePort"):
                port["nodePort"] = self._chance.choice([each for each in NODE_PORTS if each not in used])
                used.add(port["nodePort"])


def _set_policy(spec: Object) -> None:
    dual = spec.get("clusterIP") == NONE and not spec.get("selector")
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if dual else "SingleStack")
    if "ipFamilies" not in spec:
        single = spec["ipFamilyPolicy"] == "SingleStack" or not dual
        spec["ipFamilies"] = ["IPv4"] if single else ["IPv4", "IPv6"]


def complete(new: Object, old: Object | None) -> None:
    """Keep or set optional fields: patchAllocatedValues, normalizeClusterIPs, dropTypeDependentFields."""
    spec = new["spec"]
    if old is None:
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        return
    before = old["spec"]
    headless = "ExternalName" not in (spec["type"], before["type"])
    if headless:
        for name in ("clusterIP", "clusterIPs", "ipFamilyPolicy", "ipFamilies"):
            if not spec.get(name) and name in before:
                spec[name] = before[name]
        if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
    elif spec["type"] == "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilyPolicy", "ipFamilies"):
            if spec.get(name) == before.get(name):
                spec.pop(name, None)
    _complete_ports(spec, before)


def _has_node_ports(spec: Object) -> bool:
    return spec["type"] in ("NodePort", "LoadBalancer")


def _complete_ports(spec: Object, before: Object) -> None:
    if not _has_node_ports(before):
        return
    old_ports: dict[Any, int] = {port.get("name"): port.get("nodePort", 0) for port in before.get("ports", ())}
    new_ports: dict[Any, int] = {port.get("name"): port.get("nodePort", 0) for port in spec.get("ports", ())}
    if _has_node_ports(spec):
        used = set(old_ports.values()) & set(new_ports.values())
        for port in spec.get("ports", ()):
            known = old_ports.get(port.get("name"))
            if not port.get("nodePort") and known and known not in used:
                port["nodePort"] = known
        return
    if list(old_ports.values()) == list(new_ports.values()):
        for port in spec.get("ports", ()):
            port.pop("nodePort", None)
    for name in ("externalTrafficPolicy", "allocateLoadBalancerNodePorts", "healthCheckNodePort"):
        if spec.get(name) == before.get(name):
            spec.pop(name, None)
