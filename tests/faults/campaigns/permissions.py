"""T12, first part: each permission that config/rbac gives the operator is taken away and given back."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from faults.campaigns.drift import FOREIGN
from faults.case import Case, References
from faults.esr import VICTIM, calm, quiet, reached, within_rate
from faults.faulty import event, status
from faults.stage import RBAC, ROLES, Stage, until, user_of
from faults.workloads import BY_NAME, IMAGE, OTHER_IMAGE, PORTS, cache
from integration.control_plane import client_of
from memcached_api import conditions as c
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import MERGE_PATCH, ApiError, Client
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Object, Resource, nested_list
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.status.conditions import PROGRESS_PERIOD

ROLE = "role"
"""The name of the Role on a stage that has the rules of config/rbac/role.yaml."""
RECOVERY = 20.0
"""Seconds from the moment a permission is back until all is as it should be, beside the next reading of everything."""
TELLING = 30.0
"""Seconds until a user is told, on a busy machine."""
LASTS = 5.0
"""Seconds that a permission stays away after that."""
OBJECTS: Mapping[tuple[Resource, str], Mapping[str, Any]] = {
    (MEMCACHEDS, VICTIM): cache(size=2),
    (MEMCACHEDS, "lost"): cache(),
    (APPSERVICES, "app"): cache(**PORTS),
    (APPSERVICES, "app-lost"): cache(**PORTS),
    (APPSERVICES, "app-less"): cache(**PORTS),
}
"""Objects that are there before, by name."""
STRAY = "stray"
CHILDREN = (DEPLOYMENTS.plural, SERVICES.plural)


@dataclass(frozen=True)
class Grant:
    """One verb for one resource, perhaps a subresource; and in which of the rules it stands."""

    rule: int
    group: str
    resource: str
    verb: str

    @property
    def name(self) -> str:
        """As in the names of cases."""
        return f"{self.resource.replace('/', '-')}-{self.verb}"

    @property
    def words(self) -> str:
        """What a user who has to give it back must be told."""
        if self.resource.endswith("/finalizers"):
            return "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
        return f'cannot {self.verb} resource "{self.resource}"'

    @property
    def told_by_condition(self) -> bool:
        """Where an object can tell of it: what is about children is, what is about the object itself cannot be."""
        return self.resource.endswith("/finalizers") or (
            self.resource in CHILDREN and self.verb not in ("list", "watch")
        )

    def without(self, rules: Sequence[Object]) -> list[Object]:
        """The rules without this."""
        left = [dict(rule) for rule in rules]
        mine = left[self.rule]
        verbs = [verb for verb in mine["verbs"] if verb != self.verb]
        others = [each for each in mine["resources"] if each != self.resource]
        left[self.rule] = {**mine, "resources": [self.resource], "verbs": verbs}
        return [rule for rule in (*left, {**mine, "resources": others}) if rule["verbs"] and rule["resources"]]


def grants() -> Iterator[Grant]:
    """All there are: a new rule joins by itself."""
    for number, rule in enumerate(ROLES[ROLE]):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Grant(number, group, resource, verb)


async def revoked(stage: Stage, references: References, grant: Grant) -> None:
    """A permission is away while everything is done that needs any; then it is back."""
    expected = await references.of(BY_NAME["image"])
    stage.operator.start()
    await stage.watching()
    for (resource, name), spec in OBJECTS.items():
        await stage.create(resource, name, spec)
    for resource, name in OBJECTS:
        await stage.settled(resource, name)
    since = time.monotonic()
    await give(stage, grant.without(ROLES[ROLE]))
    await allowed(stage, grant, False)
    await everything(stage)
    await named(stage, grant)
    await asyncio.sleep(LASTS)
    await give(stage, ROLES[ROLE])
    await allowed(stage, grant, True)
    refused_in_rate(stage, since)
    await reached(stage, MEMCACHEDS, expected, RECOVERY + stage.settings.relist, loose=True)
    for resource, name in (*OBJECTS, (MEMCACHEDS, "made"), (APPSERVICES, "app-made")):
        await stage.settled(resource, name, RECOVERY)
        await _present(stage, DEPLOYMENTS, name)
    await stage.gone(SERVICES, "app-less")
    await stage.gone(DEPLOYMENTS, STRAY)
    # What is mere progress (names of pods, node ports) is told late.
    await asyncio.sleep(PROGRESS_PERIOD)
    await quiet(stage)
    calm(stage)


async def everything(stage: Stage) -> None:
    """Do what makes the operator use each of its permissions."""
    for stream in stage.proxy.open_watches():
        await stream.interrupt(event("ERROR", status(410, "Expired")))
    await stage.create(MEMCACHEDS, "made", cache())
    await stage.create(APPSERVICES, "app-made", cache(**PORTS))
    await stage.change(MEMCACHEDS, VICTIM, {}, {"image": OTHER_IMAGE})
    await stage.change(APPSERVICES, "app", {}, {"image": OTHER_IMAGE, "ports": [{"port": 81, "name": "http"}]})
    await stage.change(APPSERVICES, "app-less", {}, {"ports": None, "image": IMAGE})
    await _stray(stage)
    for resource in (DEPLOYMENTS, SERVICES):
        for name in ("lost", "app-lost"):
            await stage.delete(resource, name)


async def _stray(stage: Stage) -> None:
    """A Deployment that an object owns, and does not want: as one that an earlier release made."""
    child = await stage.get(DEPLOYMENTS, VICTIM) or {}
    meta = {name: child["metadata"][name] for name in ("labels", "ownerReferences")}
    spec = {**child["spec"], "replicas": 0}
    stray = {"metadata": {**meta, "name": STRAY}, "spec": spec}
    await stage.client.request("POST", DEPLOYMENTS.path(stage.namespace), stray)


async def named(stage: Stage, grant: Grant) -> None:
    """The missing permission is told of by name: in a condition where one can, in the log in any case."""

    async def look() -> bool:
        if grant.words not in stage.operator.text():
            return False
        return not grant.told_by_condition or await told(stage, grant.words)

    await until(look, TELLING, f"somebody is told {grant.words!r}")


async def told(stage: Stage, words: str, reason: str = c.APPLY_FAILED) -> bool:
    """Whether a condition of some object says so, with a reason."""
    for resource in (MEMCACHEDS, APPSERVICES):
        items, _ = await stage.client.list(resource, stage.namespace)
        for condition in (each for item in items for each in nested_list(item, "status", "conditions")):
            if words in condition["message"] and condition["reason"] == reason:
                return True
    return False


async def give(stage: Stage, rules: Sequence[Object]) -> None:
    """Have the operator's Role say these rules."""
    path = f"/apis/{RBAC}/v1/namespaces/{stage.namespace}/roles/{ROLE}"
    await stage.client.request("PUT", path, {"metadata": {"name": ROLE}, "rules": list(rules)})


async def allowed(stage: Stage, grant: Grant, wanted: bool) -> None:
    """Wait until the API server says that the operator may do it, or may not."""
    resource, _, subresource = grant.resource.partition("/")
    attributes = {
        "namespace": stage.namespace,
        "verb": grant.verb,
        "group": grant.group,
        "resource": resource,
        "subresource": subresource,
    }
    review = {"spec": {"user": user_of(stage.namespace), "resourceAttributes": attributes}}

    async def look() -> bool:
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        answer = await stage.client.request("POST", path, review)
        return answer["status"]["allowed"] is wanted

    await until(look, TELLING, f"{grant.name} is {'given' if wanted else 'taken'}")


def refused_in_rate(stage: Stage, since: float) -> None:
    """What is refused is not asked for too often: each object by itself, and each list and watch."""
    entries_ = [entry for entry in stage.proxy.journal.since(since) if entry.committed >= 400]
    for about in {entry.call.name or entry.call.what for entry in entries_}:
        within_rate([entry for entry in entries_ if (entry.call.name or entry.call.what) == about])


async def _present(stage: Stage, resource: Resource, name: str) -> None:
    # Its object cannot tell: while the operator may not read it, its status is that of before.
    await until(lambda: stage.get(resource, name), RECOVERY, f"there is a {resource.kind} {name}")


async def confined(stage: Stage, references: References) -> None:
    """The account of a running operator cannot change a foreign Deployment, which RBAC allows."""
    theirs = await stage.client.request("POST", DEPLOYMENTS.path(stage.namespace), FOREIGN[DEPLOYMENTS.kind])
    stage.operator.start()
    await stage.watching()
    await stage.create(MEMCACHEDS, "made", cache())
    await stage.settled(MEMCACHEDS, "made")
    connection = references.plane.connection
    account = replace(connection, headers={**connection.headers, "Impersonate-User": user_of(stage.namespace)})
    async with client_of(account) as stolen_token:
        path = DEPLOYMENTS.path(stage.namespace, VICTIM)
        for method, body in (("PATCH", {"spec": {"replicas": 1}}), ("DELETE", None)):
            await until(partial(_denied, stolen_token, method, path, body), TELLING, f"{method} is denied")
    live = await stage.get(DEPLOYMENTS, VICTIM)
    stage.holds(live and live["spec"] == theirs["spec"], "a foreign Deployment was changed")


async def _denied(stolen_token: Client, method: str, path: str, body: Object | None) -> bool:
    try:
        await stolen_token.request(method, path, body, MERGE_PATCH, {"dryRun": "All"})
    except ApiError as error:
        return "ValidatingAdmissionPolicy" in error.message
    return False


GATE = {"deployments-patch"}


def cases() -> list[Case]:
    """One per permission; and one about what no permission lets the operator do."""
    found = [
        Case(f"T12/rbac/{grant.name}", partial(revoked, grant=grant), gate=grant.name in GATE) for grant in grants()
    ]
    return [*found, Case("T12/policies/foreign-deployment", confined, gate=True)]
