"""Each permission of config/rbac is revoked and granted again."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from faults.campaigns.drift import FOREIGN
from faults.campaigns.updates.changes import CHANGES
from faults.campaigns.updates.kubelet import simulated_kubelet
from faults.campaigns.updates.run import SKIPPED, can_resize
from faults.case import Case, Reference, References, in_gate
from faults.esr import VICTIM, check_operator, check_quiet, check_rate, wait_for_state
from faults.faulty import event, status
from faults.sandbox import RBAC, ROLES, Sandbox, user_of, wait_until
from faults.state import CHILDREN
from faults.workloads import BY_NAME, IMAGE, MONITORED, OTHER_GUARDS, OTHER_IMAGE, PORTS, SLOTS, cache
from integration.control_plane import client_of
from memcached_api import conditions as c
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.engine.reporting.conditions import PROGRESS_PERIOD
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.client import MERGE_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import Key, Object, Resource, nested_list
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from support import mounting
from support.lists import listed

ROLE = "role"
"""Name of the sandbox's Role with the rules of config/rbac/role.yaml."""
RECOVERY = 20.0
"""Seconds after a permission is granted until the state is correct, in addition to the sync period."""
REPORT_TIMEOUT = 30.0
"""Seconds until a problem is reported, on a busy machine."""
DURATION = 5.0
"""Seconds for which the permission stays revoked after that."""
RESIZED = "slots-resized"
"""An object whose pods are updated in place, by a kubelet of their own."""
RESIZE = CHANGES["resources"]
FRONT: Mapping[str, Any] = {"memcachedRef": {"name": "slots"}, "size": 1, "image": IMAGE}
"""Proxies of the slots."""
OBJECTS: Mapping[tuple[Resource, str], Mapping[str, Any]] = {
    (MEMCACHEDS, VICTIM): cache(size=2),
    (MEMCACHEDS, "lost"): cache(size=2, **MONITORED),
    (MEMCACHEDS, "guarded"): cache(size=2, **MONITORED),
    (MEMCACHEDS, "guard-less"): cache(size=2, **MONITORED),
    (MEMCACHEDS, "slots"): cache(size=2, **SLOTS),
    (MEMCACHEDS, "slots-lost"): cache(size=2, **SLOTS),
    (MEMCACHEDS, RESIZED): {**RESIZE.first, "size": 1},
    (MEMCACHEDPROXIES, "front"): FRONT,
    (MEMCACHEDPROXIES, "front-lost"): FRONT,
    (APPSERVICES, "app"): cache(**PORTS),
    (APPSERVICES, "app-lost"): cache(**PORTS),
    (APPSERVICES, "app-less"): cache(**PORTS),
}
"""Objects that exist before, by resource and name."""
CREATED: Mapping[tuple[Resource, str], Mapping[str, Any]] = {
    (MEMCACHEDS, "created"): cache(size=2, **MONITORED),
    (MEMCACHEDS, "slots-created"): cache(size=2, **SLOTS),
    (MEMCACHEDPROXIES, "front-created"): FRONT,
    (APPSERVICES, "app-created"): cache(**PORTS),
}
"""Objects that are created while a permission is missing."""
MONITORING = {"podMonitor": {"interval": "1m"}, "rules": {"labels": {"team": "a"}}}
CHANGED: Mapping[tuple[Resource, str], tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    (MEMCACHEDS, VICTIM): ({}, {"image": OTHER_IMAGE}),
    (MEMCACHEDS, "guarded"): ({}, {**OTHER_GUARDS, "monitoring": MONITORING}),
    (MEMCACHEDS, "guard-less"): (MONITORED, {}),
    (MEMCACHEDS, "slots"): ({}, {"size": 3, "image": OTHER_IMAGE}),
    (MEMCACHEDS, RESIZED): (RESIZE.first, {**RESIZE.then, "size": 1}),
    (APPSERVICES, "app"): ({}, {"image": OTHER_IMAGE, "ports": [{"port": 81, "name": "http"}]}),
    (APPSERVICES, "app-less"): ({}, {"ports": None, "image": IMAGE}),
}
"""Objects whose spec changes meanwhile: from, and to."""
WAITING = "waiting"
"""An object whose pods have no node."""
UNWANTED = "stray"
UNWANTED_RESOURCES = {kinds.DEPLOYMENTS: VICTIM, kinds.STATEFULSETS: "slots", kinds.CONFIG_MAPS: "slots-connection"}
"""The resources of unneeded children, and the names of those that are copied."""
GUARD_RESOURCES = (kinds.POD_DISRUPTION_BUDGETS, kinds.NETWORK_POLICIES, kinds.POD_MONITORS, kinds.PROMETHEUS_RULES)
DELETED: Mapping[str, tuple[Resource, ...]] = {
    "lost": (kinds.DEPLOYMENTS, kinds.SERVICES, *GUARD_RESOURCES),
    "app-lost": (kinds.DEPLOYMENTS, kinds.SERVICES),
    "front-lost": (kinds.DEPLOYMENTS, kinds.SERVICES),
    "slots-lost": (kinds.STATEFULSETS,),
    "slots-lost-connection": (kinds.CONFIG_MAPS,),
}
"""The resources of children that are deleted meanwhile, by their name."""
ONE_OF_EACH = (VICTIM, "lost", "created", "slots", "app")
"""The objects of every case."""
SORTS: Mapping[str, str] = {
    **dict.fromkeys((each.plural for each in GUARD_RESOURCES), "guard"),
    **dict.fromkeys(("statefulsets", "configmaps", "pods/resize"), "slots"),
    **dict.fromkeys((f"memcachedproxies{part}" for part in ("", "/status", "/finalizers")), "front"),
    **dict.fromkeys(("appservices", "appservices/status", "appservices/finalizers"), "app"),
}
"""How the names of the objects begin that need a permission for a resource; all need those that are not here."""


@dataclass(frozen=True)
class Grant:
    """One verb for one resource or subresource, and the number of its rule."""

    rule: int
    group: str
    resource: str
    verb: str

    @property
    def name(self) -> str:
        """As in the names of cases."""
        return f"{self.resource.replace('/', '-')}-{self.verb}"

    @property
    def message(self) -> str:
        """The message that names the missing permission."""
        if self.resource.endswith("/finalizers"):
            return "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
        return f'cannot {self.verb} resource "{self.resource}"'

    @property
    def in_condition(self) -> bool:
        """Whether a condition reports it. Errors of the object itself are only in the log."""
        written = {*(child.plural for child in (*CHILDREN, kinds.CONFIG_MAPS)), "pods", "pods/resize"}
        return self.resource.endswith("/finalizers") or (
            self.resource in written and self.verb not in ("list", "watch")
        )

    def concerns(self, name: str) -> bool:
        """Whether the case has this object: it needs the permission, or is the one of its sort that does not."""
        return name in ONE_OF_EACH or name.startswith(SORTS.get(self.resource, ""))

    def without(self, rules: Sequence[Object]) -> list[Object]:
        """The rules without this permission."""
        remaining = [dict(rule) for rule in rules]
        changed = remaining[self.rule]
        verbs = [verb for verb in changed["verbs"] if verb != self.verb]
        others = [each for each in changed["resources"] if each != self.resource]
        remaining[self.rule] = {**changed, "resources": [self.resource], "verbs": verbs}
        return [rule for rule in (*remaining, {**changed, "resources": others}) if rule["verbs"] and rule["resources"]]


def grants() -> Iterator[Grant]:
    """All permissions. New rules get their cases automatically."""
    for number, rule in enumerate(ROLES[ROLE]):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Grant(number, group, resource, verb)


async def revoked(sandbox: Sandbox, references: References, grant: Grant) -> str | None:
    """Revoke a permission while everything happens that needs one, then grant it again."""
    if grant.resource == "pods/resize" and not await can_resize(sandbox):
        return SKIPPED
    expected = await references.of(BY_NAME["image"])
    async with simulated_kubelet(sandbox, f"app.kubernetes.io/instance={RESIZED}"):
        await _revoke_and_grant(sandbox, expected, grant)
    return None


async def _revoke_and_grant(sandbox: Sandbox, expected: Reference, grant: Grant) -> None:
    await sandbox.start()
    objects = {key: spec for key, spec in OBJECTS.items() if grant.concerns(key[1])}
    for (resource, name), spec in objects.items():
        await sandbox.create(resource, name, spec)
    for resource, name in objects:
        await sandbox.wait_ready(resource, name)
    waiting = await _pods_without_node(sandbox) if grant.concerns(WAITING) else []
    since = time.monotonic()
    await set_rules(sandbox, grant.without(ROLES[ROLE]))
    await wait_until_authorized(sandbox, grant, False)
    await use_permissions(sandbox, grant)
    for pod in waiting:
        await mounting.set_waiting(sandbox.client, pod)
    await wait_until_reported(sandbox, grant)
    await asyncio.sleep(DURATION)
    await set_rules(sandbox, ROLES[ROLE])
    await wait_until_authorized(sandbox, grant, True)
    check_rejection_rate(sandbox, since)
    await wait_for_state(sandbox, MEMCACHEDS, expected, RECOVERY + sandbox.settings.sync_period, loose=True)
    for resource, name in (key for key in (*OBJECTS, *CREATED) if grant.concerns(key[1])):
        await sandbox.wait_ready(resource, name, RECOVERY)
        for child in children_of(name):
            await _wait_until_exists(sandbox, child, name)
    await sandbox.wait_deleted(kinds.SERVICES, "app-less")
    for resource in GUARD_RESOURCES:
        await sandbox.wait_deleted(resource, "guard-less")
    for resource in UNWANTED_RESOURCES:
        await sandbox.wait_deleted(resource, UNWANTED)
    # Progress alone (names of pods, node ports) is written with a delay, and a longer one while a rollout is stuck.
    if waiting:
        await sandbox.delete(MEMCACHEDS, WAITING)
    await asyncio.sleep(PROGRESS_PERIOD)
    await check_quiet(sandbox)
    check_operator(sandbox)


def children_of(name: str) -> tuple[Resource, ...]:
    """The children that an object must have in the end."""
    if name.startswith("slots"):
        return (kinds.STATEFULSETS, kinds.SERVICES)
    services = () if name == "app-less" else (kinds.SERVICES,)
    return (kinds.DEPLOYMENTS, *services, *(GUARD_RESOURCES if name in ("created", "lost", "guarded") else ()))


async def use_permissions(sandbox: Sandbox, grant: Grant) -> None:
    """Cause the operator to use a permission and all those to write.

    Only the resource of this permission is listed and watched again: each list lets the operator reconcile all objects.
    """
    for stream in sandbox.proxy.open_watches(grant.resource):
        await stream.interrupt(event("ERROR", status(410, "Expired")))
    for (resource, name), spec in CREATED.items():
        if grant.concerns(name):
            await sandbox.create(resource, name, spec)
    for (resource, name), (before, after) in CHANGED.items():
        if grant.concerns(name):
            await sandbox.change(resource, name, before, after)
    await _create_unwanted(sandbox)
    for name, resources in DELETED.items():
        for resource in resources if grant.concerns(name) else ():
            await sandbox.delete(resource, name)


async def _pods_without_node(sandbox: Sandbox) -> list[Object]:
    """Create pods of an object that mount a Secret."""
    await sandbox.create(MEMCACHEDS, WAITING, cache(**mounting.NOWHERE))
    await wait_until(lambda: sandbox.get(kinds.DEPLOYMENTS, WAITING), REPORT_TIMEOUT, "the Deployment exists")
    await mounting.mount(sandbox.client, Key(kinds.DEPLOYMENTS, sandbox.namespace, WAITING))
    pods = partial(mounting.mounting_pods, sandbox.client, sandbox.namespace)
    return await wait_until(pods, REPORT_TIMEOUT, "a pod with the volume exists")


async def _create_unwanted(sandbox: Sandbox) -> None:
    """Create children that an object owns but does not need, as an earlier release may have done."""
    for resource, original in UNWANTED_RESOURCES.items():
        child = await sandbox.get(resource, original) or {}
        meta = {name: child["metadata"][name] for name in ("labels", "ownerReferences")}
        content = {"data": child["data"]} if "data" in child else {"spec": {**child["spec"], "replicas": 0}}
        unwanted = {"metadata": {**meta, "name": UNWANTED}, **content}
        await sandbox.client.request("POST", resource.path(sandbox.namespace), unwanted)


async def wait_until_reported(sandbox: Sandbox, grant: Grant) -> None:
    """Wait until the missing permission is reported: in the log, and in a condition if possible."""

    async def poll() -> bool:
        if grant.message not in sandbox.operator.log_text():
            return False
        return not grant.in_condition or await in_some_condition(sandbox, grant.message)

    await wait_until(poll, REPORT_TIMEOUT, f"{grant.message!r} is reported")


async def in_some_condition(sandbox: Sandbox, message: str) -> bool:
    """Whether a condition of any object has this text, and the reason of a write that failed."""
    for resource in (MEMCACHEDS, MEMCACHEDPROXIES, APPSERVICES):
        items, _ = await listed(sandbox.client, resource, sandbox.namespace)
        for condition in (each for item in items for each in nested_list(item, "status", "conditions")):
            if message in condition["message"] and condition["reason"] == c.APPLY_FAILED:
                return True
    return False


async def set_rules(sandbox: Sandbox, rules: Sequence[Object]) -> None:
    """Replace the rules of the operator's Role."""
    path = f"/apis/{RBAC}/v1/namespaces/{sandbox.namespace}/roles/{ROLE}"
    await sandbox.client.request("PUT", path, {"metadata": {"name": ROLE}, "rules": list(rules)})


async def wait_until_authorized(sandbox: Sandbox, grant: Grant, wanted: bool) -> None:
    """Wait until the API server's authorizer allows the operation, or does not."""
    resource, _, subresource = grant.resource.partition("/")
    attributes = {
        "namespace": sandbox.namespace,
        "verb": grant.verb,
        "group": grant.group,
        "resource": resource,
        "subresource": subresource,
    }
    review = {"spec": {"user": user_of(sandbox.namespace), "resourceAttributes": attributes}}

    async def poll() -> bool:
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        response = await sandbox.client.request("POST", path, review)
        return response["status"]["allowed"] is wanted

    await wait_until(poll, REPORT_TIMEOUT, f"{grant.name} is {'granted' if wanted else 'revoked'}")


def check_rejection_rate(sandbox: Sandbox, since: float) -> None:
    """Check that rejected requests are not repeated too often, for each object, list and watch.

    That a child is missing is no rejection: the operator reads it before each creation.
    """
    found = sandbox.proxy.requests.since(since)
    entries_ = [entry for entry in found if entry.committed >= 400 and entry.committed != 404]
    for about in {(entry.call.what, entry.call.name) for entry in entries_}:
        check_rate([entry for entry in entries_ if (entry.call.what, entry.call.name) == about])


async def _wait_until_exists(sandbox: Sandbox, resource: Resource, name: str) -> None:
    # The status does not show it: while the operator cannot read the object, the status is outdated.
    await wait_until(lambda: sandbox.get(resource, name), RECOVERY, f"{resource.kind} {name} exists")


async def policies_deny(sandbox: Sandbox, references: References) -> None:
    """With the account of a running operator, a foreign Deployment cannot be changed, although RBAC allows it."""
    original = await sandbox.client.request(
        "POST", kinds.DEPLOYMENTS.path(sandbox.namespace), FOREIGN[kinds.DEPLOYMENTS.kind]
    )
    await sandbox.start()
    await sandbox.create_ready(MEMCACHEDS, "created", cache())
    connection = references.plane.connection
    account = replace(connection, headers={**connection.headers, "Impersonate-User": user_of(sandbox.namespace)})
    async with client_of(account) as stolen_token:
        path = kinds.DEPLOYMENTS.path(sandbox.namespace, VICTIM)
        for method, body in (("PATCH", {"spec": {"replicas": 1}}), ("DELETE", None)):
            await wait_until(partial(_denied, stolen_token, method, path, body), REPORT_TIMEOUT, f"{method} is denied")
    live = await sandbox.get(kinds.DEPLOYMENTS, VICTIM)
    sandbox.check(live and live["spec"] == original["spec"], "a foreign Deployment was changed")


async def _denied(stolen_token: ApiClient, method: str, path: str, body: Object | None) -> bool:
    try:
        await stolen_token.request(method, path, body, MERGE_PATCH, {"dryRun": "All"})
    except ApiError as error:
        return "ValidatingAdmissionPolicy" in error.message
    return False


def cases() -> list[Case]:
    """One case per permission, and one for the admission policies."""
    found = [Case(f"permissions/{grant.name}", partial(revoked, grant=grant)) for grant in grants()]
    found = [*found, Case("permissions/foreign-deployment", policies_deny)]
    return in_gate(found, "permissions/foreign-deployment")
