"""The campaigns and their cases."""

from itertools import chain
from typing import Final

from faults.campaigns import (
    admission,
    bursts,
    certificates,
    certificates_issuer,
    cluster,
    drift,
    floods,
    foreign,
    fuzz,
    leaders,
    mounts,
    permissions,
    port,
    proxies,
    semantics,
    slots,
    soak,
    stale,
    tenants,
    traces,
    updates,
    watches,
    writes,
)
from faults.case import Case

MODULES: Final = (
    writes,
    watches,
    stale,
    drift,
    foreign,
    slots,
    proxies,
    semantics,
    mounts,
    admission,
    bursts,
    certificates,
    certificates_issuer,
    fuzz,
    port,
    leaders,
    permissions,
    cluster,
    updates,
    floods,
    tenants,
    soak,
    traces,
)
CAMPAIGNS: Final = {
    "crash": "the operator is killed before, during and after every write, and around a deletion",
    "lost-reply": "a write is executed, but its reply is lost",
    "rejected": "a write is rejected once, 3 times, 20 times, or for 60 s",
    "watch": "lists and watches fail",
    "stale": "stale lists, late events, and objects that are recreated while their watch is delayed",
    "missed": "the spec changes while the operator is down or receives no events",
    "drift": "another client changes, deletes or adopts a child",
    "pods": "pods do not start, because no node has room or a Secret is missing",
    "admission": "the webhook fails",
    "certificates": "the certificate files change, or the issuer's objects change",
    "fuzz": "random objects",
    "port": "floods, slow clients and hostile requests on the ports of the webhook",
    "election": "two operators at the same time",
    "permissions": "a permission of the operator is missing",
    "cluster": "quotas, limits, Pod Security, policies, namespaces and CRDs",
    "updates": "pods are updated in place, one at a time, with a simulated kubelet",
    "floods": "one tenant floods its namespace, and the operator has the memory limit of its pod",
    "tenants": "one tenant makes the operator work, and the objects of another one are reconciled in time",
    "soak": "random changes and faults for a long time",
    "traces": "what is written for each change, as in the simulation",
}
"""The content of each campaign. Its name is the first part of the names of its cases."""


def all_cases() -> dict[str, Case]:
    """All cases of all campaigns, by name."""
    return {case.name: case for case in chain.from_iterable(module.cases() for module in MODULES)}
