"""One reconcile, for every kind: snapshot, plan, apply, status."""

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from memcached_api import conditions as c
from memcached_operator import metrics
from memcached_operator.engine.budget_lists import LIST_TIMEOUT, BudgetLists
from memcached_operator.engine.events.disruptions import Disruptions
from memcached_operator.engine.events.reader import Causes
from memcached_operator.engine.kind import Outcome, Plan, ReconciledKind
from memcached_operator.engine.next import AT_ONCE, NOTHING, Next, next_in
from memcached_operator.engine.reporting.conditions import is_reported
from memcached_operator.engine.reporting.lists import is_ready_to_plan, kept_status
from memcached_operator.engine.reporting.lists import problems as unlisted_problems
from memcached_operator.engine.reporting.posted_events import Recorder
from memcached_operator.engine.reporting.writer import StatusWriter
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.engine.runtime.tasks import Measured
from memcached_operator.engine.strays.finder import StrayFinder
from memcached_operator.engine.writes.apply import DEGRADED_THRESHOLD, Applier
from memcached_operator.engine.writes.failed_requests import Cooldown
from memcached_operator.engine.writes.ownership import is_controlled_by, may_be_adopted
from memcached_operator.engine.writes.pod_steps import PodSteps
from memcached_operator.engine.writes.result import Result
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.labels import NAME, SELECTOR, selector, selector_labels
from memcached_operator.kube.resource import PODS, Key, Object, key_of, nested_map
from memcached_operator.world.knowledge import Known, known_in
from memcached_operator.world.live import StaleError, ensure_exists, exact_version, get_live
from memcached_operator.world.other_budgets import NO_BUDGETS, OtherBudgets
from memcached_operator.world.pod import Pod, pod_of
from memcached_operator.world.sizes import head, smallest
from memcached_operator.world.snapshot import Item, Listed, Resize, Snapshot
from memcached_operator.world.store import Store

log = logging.getLogger(__name__)

RELIST_PERIOD = 10.0
"""Seconds until the pods are listed again, while one of them exists that no event may report."""


class Reconciler:
    """Reconciles the keys of the queue, for all kinds, with any number of workers.

    `knowledge`: what is known of each watched resource, which changes. `resize`: set when it is known.
    """

    resize: Resize | None = None

    def __init__(
        self,
        client: ApiClient,
        store: Store,
        queue: Queue[Key],
        kinds: Iterable[ReconciledKind],
        knowledge: Known | None = None,
    ) -> None:
        self._client = client
        self._store = store
        self._queue = queue
        self._kinds = {kind.resource: kind for kind in kinds}
        self._knowledge: Known = {} if knowledge is None else knowledge
        self.counts: dict[Key, tuple[int, ...]] = {}
        """Of each object, as of its last reconcile: a scrape of metrics must not decode them all."""
        self.waiting: dict[Key, int] = {}
        """The Unix time from which each object waits, as of its last reconcile."""
        self._deferred: set[Key] = set()
        self._begin = asyncio.Lock()
        own_kinds = {(kind.resource.group, kind.resource.kind) for kind in self._kinds.values()}
        self._budgets = BudgetLists(client, queue.add, own_kinds)
        self._applier = Applier(client, store, own_kinds)
        self._pod_steps = PodSteps(client, store)
        self._cooldown = Cooldown()
        self._recorder = Recorder(client)
        self._strays = StrayFinder(store)
        self._status = StatusWriter(client, store, self._recorder)
        self._causes = Causes(client, store, queue.add)
        self._disruptions = Disruptions(self._recorder)

    async def run(self, workers: int) -> None:
        """Run workers, queue timers, and the writer and the reader of Events until one fails.

        Raises its error in an ExceptionGroup.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run_timers(), name="queue timers")
            group.create_task(self._recorder.run(), name="events")
            group.create_task(self._causes.run(), name="causes")
            for number in range(workers):
                group.create_task(self.run_worker(), name=f"worker {number}")

    async def run_worker(self) -> None:
        """Run one worker: reconcile keys from the queue until cancelled."""
        while True:
            key = await self._next()
            work = Measured(self._reconcile_timed(key))
            try:
                await work
            finally:
                self._queue.done(key, work.busy)

    async def _next(self) -> Key:
        """The next key. Of all workers, one begins in a turn of the event loop.

        A reconcile without a request does not yield. A batch of them would delay everything else.
        """
        async with self._begin:
            await asyncio.sleep(0)
            return await self._queue.get()

    async def _reconcile_timed(self, key: Key) -> None:
        name = key.resource.kind.lower()
        started = time.monotonic()
        try:
            result = await self.reconcile(key)
        except ApiError as error:
            metrics.RECONCILE_ERRORS.labels(name).inc()
            delay = self._queue.retry(key, error.retry_after or 0)
            log.warning("%s: %s; retrying in %.1f s", key, error, delay)
            result = "error"
        except Exception:
            # A broad except at the outermost level: a defect that affects one object must not stop the others.
            metrics.RECONCILE_PANICS.labels(name).inc()
            delay = self._queue.retry(key)
            log.exception("%s: unexpected error, please report it; retrying in %.1f s", key, delay)
            result = "error"
        metrics.RECONCILES.labels(name, result).inc()
        metrics.RECONCILE_TIME.labels(name).observe(time.monotonic() - started)

    async def reconcile(self, key: Key) -> str:
        """Reconcile the children and the status of one object. Raises the ApiError that requires a retry."""
        cr = self._store.get(key)
        if cr is None or cr["metadata"].get("deletionTimestamp"):
            # Nothing to write: the garbage collector deletes the children. A later object of this name starts afresh.
            self._forget(key)
            return NOTHING.schedule(self._queue, key)
        try:
            following = await self._reconcile(self._kinds[key.resource], key, cr)
        except StaleError:
            # The plan is for a state that has passed. The store has the new one, whose event may be late or missed.
            following = AT_ONCE
        return following.schedule(self._queue, key)

    def _forget(self, key: Key) -> None:
        """Forget an object that does not exist any more."""
        self._deferred.discard(key)
        self.counts.pop(key, None)
        self.waiting.pop(key, None)
        for state in (self._status, self._causes, self._disruptions, self._strays):
            state.forget(key)
        self._applier.forget_deleted()

    def _measure(self, kind: ReconciledKind, key: Key, cr: Object, snapshot: Snapshot) -> None:
        """Keep the values of metrics about an object."""
        workload = next(filter(None, map(snapshot.children.get, kind.workload_keys(key))), None)
        self.counts[key] = kind.counts(cr, workload)
        since = kind.waiting_since(cr, workload)
        if since is None:
            self.waiting.pop(key, None)
        else:
            self.waiting[key] = since

    async def _reconcile(self, kind: ReconciledKind, key: Key, cr: Object) -> Next:
        """Reconcile an object that exists. Raises StaleError, and the ApiError of a request that must succeed."""
        unlisted = tuple(unlisted_problems(kind, key.namespace, self._knowledge))
        if not is_ready_to_plan(kind, key.namespace, self._knowledge):
            return await self._write_unlisted(kind, key, cr, unlisted)
        budgets = await self._other_budgets(kind, key, cr)
        if budgets is None:
            return next_in(LIST_TIMEOUT, keeps_backoff=True)
        revision = self._store.revision
        snapshot = replace(self._gather(kind, key, cr), other_budgets=budgets)
        plan = kind.plan(snapshot, datetime.now(UTC))
        result = await self._apply(kind, key, snapshot, plan)
        reverts = self._applier.reverts.report(cr, map(kind.key_of, plan.children or ()))
        problems = (*plan.problems, *result.problems, *reverts.problems, *unlisted)
        if result.wrote and not problems and len(self._queue) and key not in self._deferred:
            # Other objects are queued; write their children before this status. Only once: its spec may change often.
            self._deferred.add(key)
            return AT_ONCE
        self._deferred.discard(key)
        if self._store.revision != revision:
            if self._store.entry(key) is None:  # it was deleted meanwhile
                return AT_ONCE
            del snapshot  # two would take twice the memory
            snapshot = self._gather(kind, key, cr)
        self._measure(kind, key, cr, snapshot)
        # Blocked children and pending statuses have their own delays, independent of the backoff after an error.
        outcome = Outcome(problems, plan.notices, plan.update, (*plan.interventions, *reverts.interventions))
        # After a restart of this process, a status without the cause of a known problem would remove it for a moment.
        desired = None if plan.children is None else {*map(kind.key_of, plan.children)}
        strays, grace = self._strays.find(kind, key, snapshot, desired, problems)
        snapshot = replace(snapshot, strays=strays)
        is_delayed = self._causes.delays_status(key) or result.only_read
        delay, relisted = None, None
        if not is_delayed:
            snapshot, relisted = await self._with_listed(kind, key, snapshot, result)
            delay = await self._status.write(kind, key, snapshot, outcome, versioned=plan.versioned)
            if self._store.entry(key) is None:  # the write has found that it was deleted: its event is no news
                return AT_ONCE
        # A child that cannot be applied has its own delay. An earlier reconcile would only repeat its request.
        if_applied = None if result.errors or result.terminating else plan.requeue_if_applied
        return next_in(
            *(plan.requeue_after, if_applied, result.requeue_after, reverts.requeue_after, grace, relisted, delay),
            # A failed patch of the status, which was not due in this reconcile.
            keeps_backoff=self._status.has_failed(key) or result.only_read,
            # Only now, so that the status reports them, and the children without an error are applied.
            error=most_severe(result.errors) if result.errors else None,
        )

    async def _write_unlisted(self, kind: ReconciledKind, key: Key, cr: Object, problems: tuple[Problem, ...]) -> Next:
        """Write only that lists have failed. What is learned of them later enqueues the key. Raises ApiError."""
        if not problems:
            return Next("success", keeps_backoff=True)
        delay = await self._status.write(replace(kind, status=kept_status), key, Snapshot(cr), Outcome(problems))
        return next_in(delay, keeps_backoff=True)

    async def _other_budgets(self, kind: ReconciledKind, key: Key, cr: Object) -> OtherBudgets | None:
        """What the plan of an object knows of other owners' PodDisruptionBudgets.

        While another object lists them, this is what was known before. None without that: then, the object waits.
        Raises StaleError if it has changed meanwhile.
        """
        if not kind.needs_budgets(cr):
            return NO_BUDGETS
        known = self._budgets.current(key.namespace)
        if known is None and self._budgets.must_wait(key):
            return self._budgets.last(key.namespace)
        if known is None:
            entry = self._store.entry(key)
            known = await self._budgets.list(key.namespace)
            if self._store.entry(key) is not entry:
                raise StaleError
        return known

    def _gather(self, kind: ReconciledKind, key: Key, cr: Object) -> Snapshot:
        snapshot = gather(self._store, kind, cr, self._knowledge, self.resize)
        self._disruptions.observe(key, cr, (*snapshot.pods, *snapshot.ended), kind.loss)
        disruptions = self._disruptions.of(key, cr["metadata"]["uid"])
        snapshot = self._causes.add_to(snapshot, key, datetime.now(UTC))
        return replace(snapshot, disruptions=disruptions) if disruptions else snapshot

    def is_echo(self, key: Key, obj: Object) -> bool:
        """Whether an event has the status that is being written, before the reply."""
        return self._status.is_echo(key, obj)

    def observe_pod(self, key: Key, pod: Pod) -> None:
        """Report a pod of an object that Kubernetes itself has stopped. At the next reconcile, it may not exist."""
        kind, cr = self._kinds[key.resource], self._store.get(key)
        if cr is None or cr["metadata"].get("deletionTimestamp"):
            return
        for each in kind.workloads:
            workload = self._store.get(Key(each.resource, key.namespace, key.name))
            if workload is not None and is_controlled_by(workload, cr) and each.owns(pod.metadata, workload):
                self._disruptions.observe(key, cr, [pod], kind.loss)

    async def _find_workload(self, kind: ReconciledKind, key: Key, snapshot: Snapshot, plan: Plan) -> None:
        """Read a workload that had pods, and that neither the store nor the plan has.

        It may exist: without the operator's label, which another client can remove, it is not watched. Raises
        StaleError if it does, and ApiError.
        """
        known = {*snapshot.children, *snapshot.orphans, *map(kind.key_of, plan.children or ())}
        if nested_map(snapshot.cr, "status").get("replicas") and known.isdisjoint(kind.workload_keys(key)):
            await self._read_workload(kind, key, snapshot)

    async def _read_workload(self, kind: ReconciledKind, key: Key, snapshot: Snapshot) -> None:
        """Read the workload. Raises StaleError if it is another one than that of the snapshot, and ApiError."""
        for each in kind.workload_keys(key):
            live = await get_live(self._client, self._store, each)
            is_child = is_controlled_by(live, snapshot.cr) and self._store.entry(each) is not None
            if exact_version(live if is_child else None) != exact_version(snapshot.children.get(each)):
                raise StaleError

    async def _with_listed(
        self, kind: ReconciledKind, key: Key, snapshot: Snapshot, result: Result
    ) -> tuple[Snapshot, float | None]:
        """The snapshot with what the status needs of a list of the pods, and seconds until the next list; or None.

        Raises StaleError. `result`: gets an ApiError, with which the status does not change what depends on the list.
        """
        if kind.listed is None or not kind.listed.needed(snapshot):
            return snapshot, None
        try:
            found = replace(snapshot, listed=await self._list_pods(kind, key, snapshot, kind.listed))
        except ApiError as error:
            result.errors.append(error)
            return snapshot, None
        # Nothing reports the end of a pod that the store has no room for.
        return found, None if kind.listed.needed(found) else RELIST_PERIOD

    async def _list_pods(
        self, kind: ReconciledKind, key: Key, snapshot: Snapshot, listed: Listed[Item]
    ) -> frozenset[Item]:
        """What the status reads of all pods of the workload, also if that does not exist any more.

        Raises StaleError if the workload is another one than that of the snapshot: it can create other pods. And
        ApiError.
        """
        await self._read_workload(kind, key, snapshot)
        workload = {"metadata": {"name": key.name}}
        pages = self._client.list(PODS, key.namespace, selector(kind.app_name, key.name))
        found = {
            listed.reads(pod)
            async for page in pages
            for pod in filter(None, map(pod_of, page.items))
            if not pod.has_completed and any(each.owns(pod.metadata, workload) for each in kind.workloads)
        }
        return frozenset(found)

    async def _find_users(self, key: Key) -> str:
        """List the pods that may use what a plan removes: their events may be late, or their owner deleted before them.

        Returns why it is not known what one of them uses, as a sentence; empty if it is. Raises StaleError if one of
        them was not known, and ApiError.
        """
        found, unknown = False, ""
        for kind in self._kinds.values():
            for reference in (each for each in kind.pod_references if each.resource == key.resource):
                pages = self._client.list(PODS, key.namespace, f"{SELECTOR},{NAME}={kind.app_name}")
                async for page in pages:
                    for pod in page.items:
                        found |= self._is_new_user(key, pod)
                        unknown = unknown or reference.unknown(pod)
        if found:
            raise StaleError
        return unknown

    def _users_unlisted(self, key: Key, error: ApiError) -> Result:
        """The result while those pods cannot be listed."""
        result = Result(tolerant=self._queue.failures(key) + 1 < DEGRADED_THRESHOLD)
        result.fail(error, f"Pods that may use removed slots cannot be listed: {error}")
        return result

    def _is_new_user(self, key: Key, pod: Object) -> bool:
        """Whether a pod names an object, which was not known. Raises ApiError if there are too many pods to keep it."""
        pod_key = key_of(PODS, pod)
        if not self._store.names(pod_key, pod, key) or not self._store.put(PODS, pod, from_live_read=True):
            return False
        if self._store.entry(pod_key) is None:
            raise ApiError(0, "Unknown", f"the namespace has too many pods with the labels of this operator: {pod_key}")
        return True

    async def _apply(self, kind: ReconciledKind, key: Key, snapshot: Snapshot, plan: Plan) -> Result:
        await self._find_workload(kind, key, snapshot, plan)
        if plan.children is None:
            # Without a valid spec, no change of the children is known to be wanted: they keep running as they are.
            return Result()
        cr = snapshot.cr
        waiting, unknown = dict[Key, float](), ""
        if plan.needs_users:
            waiting = self._applier.waiting_workloads(kind, cr, plan.children)
        if plan.needs_users and not waiting:
            try:
                unknown = await self._find_users(key)
            except ApiError as error:
                return self._users_unlisted(key, error)
        if unknown:
            waiting = dict.fromkeys(kind.workload_keys(key), RELIST_PERIOD)
        if is_reported(cr) and self._applier.would_create(kind, snapshot, plan.children):
            # A child is new or has disappeared. In the second case, its owner may be deleted too.
            with self._cooldown.guard(key, cr["metadata"]["uid"]):
                await ensure_exists(self._client, self._store, key, cr)
        result = await self._applier.apply_all(
            kind, snapshot, plan.children, self._queue.failures(key), waiting, versioned=plan.versioned
        )
        if unknown:
            result.block(Problem(c.WAITING_FOR_PROXIES, unknown), RELIST_PERIOD)
        self._recorder.record(cr, result.reports(is_new=not is_reported(cr)))
        if result.rollouts:
            self._status.begin_rollout(key)
        if plan.update is not None and plan.update.step is not None:
            # After the children: a step changes pods towards the pod template that was applied above.
            await self._pod_steps.make(plan.update.step, result)
        return result


def gather(
    store: Store,
    kind: ReconciledKind,
    cr: Object,
    knowledge: Known,
    resize: Resize | None = None,
) -> Snapshot:
    """The snapshot of a custom resource from the store. Decodes each child and each pod once, at most MAX_PODS of pods.

    `knowledge`, `resize`: as for `Reconciler`.
    """
    meta = cr["metadata"]
    owned = (key for resource in kind.owns for key in store.owned_by(resource, meta["namespace"], meta["uid"]))
    children = {key: child for key in owned if (child := store.get(key)) is not None}
    pods: list[Pod] = []
    orphans: dict[Key, Object] = {}
    for workload_type in kind.workloads:
        workload_key = Key(workload_type.resource, meta["namespace"], meta["name"])
        if workload := children.get(workload_key):
            labeled = store.entries_of_instance(PODS, meta["namespace"], kind.app_name, meta["name"])
            pods += smallest(entry for entry in labeled if workload_type.owns(head(entry), workload))
        elif (other := store.get(workload_key)) and may_be_adopted(other, selector_labels(kind.app_name, meta["name"])):
            orphans[workload_key] = other
    read = (*kind.optional, *(each.resource for each in kind.references))
    named, naming = store.references_of(key_of(kind.resource, cr), cr)
    return Snapshot(
        *(cr, children, tuple(pod for pod in pods if not pod.has_completed)),
        knowledge={each: known_in(meta["namespace"], each, knowledge) for each in read},
        naming={each: known_in(meta["namespace"], each, knowledge) for each in store.naming(kind.resource)},
        orphans=orphans,
        ended=tuple(pod for pod in pods if pod.has_completed),
        resize=resize,
        referenced=named,
        referrers=naming,
    )


def most_severe(errors: list[ApiError]) -> ApiError:
    """The error that determines the retry: permanent errors first, then the longest Retry-After."""
    return max(errors, key=lambda error: (error.permanent, error.retry_after or 0))
