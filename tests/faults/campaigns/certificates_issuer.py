"""Further cases of certificates: the operator's own issuer issues and renews the webhook certificate.

The issuer of the operator process writes the Secret and the CA bundles at the API server. A simulated kubelet writes
the Secret to the files of the admission process, and the API server calls this process by its Service. Meanwhile, one
client creates objects through the API server, and another one connects to the process with the CA bundles, as an API
server does that has just started. No request and no connection may fail, except where a fault makes this impossible:
another client removes the CA of the served certificate from a CA bundle, or replaces the served certificate by an
untrusted one. Those cases state the seconds after which the failures must have ended without manual action.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from aiohttp import web

from faults import issuing
from faults.background import while_running
from faults.calls import Entry
from faults.campaigns.certificates import serial, served_serial
from faults.case import Case, References, in_gate
from faults.esr import check_operator
from faults.faulty import Exchange, Fault, Kill, Reject
from faults.issuing import bundles
from faults.registration import VALID, check_defaults, resource_of
from faults.rules import ActiveRule, Rule
from faults.sandbox import TIMEOUT_FACTOR, Sandbox, wait_for, wait_until
from faults.webhook import KINDS, Webhook, files_of
from memcached_api.annotations import REVOKE_ANNOTATION
from memcached_operator.certificates.issuer import CHECK_PERIOD, PROPAGATION_DELAY, WebhookNames
from memcached_operator.certificates.pki import LIFETIME, KeyPair, issue, load_bundle
from memcached_operator.kube.resource import SECRETS, Key

RENEWED = 4 * CHECK_PERIOD
"""Seconds until a new pair is issued, trusted and served, on a very busy machine: 5 to 15 on an idle one."""
RECOVERY = CHECK_PERIOD + PROPAGATION_DELAY + issuing.KUBELET_DELAY + 5
"""Seconds until an untrusted certificate is trusted or replaced: the next check, and the files that change after it."""
LATE = 20.0
"""Seconds until the kubelet has changed the files, in the cases with late files: 60 to 90 in a cluster."""
REJECTED = 1.5 * CHECK_PERIOD
"""Seconds for which writes are rejected: two checks fail."""
SHORT_LIFETIME = 90
"""Lifetime in seconds: renewed after 60 to 70, so that even a very busy machine serves the new pair before the end."""
MIN_CREATED, MIN_CONNECTED = 20, 5
"""Minimum numbers of requests and connections in each case."""


@dataclass
class Setup:
    """An installation with a served pair, and the rules that were injected before its issuer did anything."""

    sandbox: Sandbox
    names: WebhookNames
    webhook: Webhook
    first: KeyPair
    rules: list[ActiveRule]

    @property
    def secret(self) -> Key:
        """The Secret."""
        return Key(SECRETS, self.sandbox.namespace, issuing.SECRET)

    async def wait_until_renewed(self) -> None:
        """Wait until another pair than the first one is issued, trusted and served."""
        await wait_until(partial(self._serves, other=True), RENEWED, "a new pair is issued, trusted and served")

    async def wait_until_served(self) -> None:
        """Wait until the pair in the Secret is valid, trusted and served."""
        await wait_until(partial(self._serves, other=False), RENEWED, "the pair in the Secret is trusted and served")

    async def _serves(self, *, other: bool) -> bool:
        pair = await issuing.usable(self.sandbox, self.names)
        if pair is None or (other and pair == self.first):
            return False
        return await asyncio.to_thread(served_serial, self.webhook.port) == serial(pair)

    def requests(self, what: str, since: float = 0.0) -> list[Entry]:
        """Requests of the issuer."""
        return [entry for entry in self.sandbox.proxy.requests.since(since) if entry.call.matches(what)]


@dataclass(frozen=True)
class Scenario:
    """What happens to the issuer or to its objects, and the limits of its effect.

    `due`: the first pair must be renewed when the issuer starts, which the event does; otherwise the issuer has issued
    it. `rules`: injected from the beginning. `written`: how often the issuer writes the Secret. `authorities`: the
    maximum number of CAs in a bundle at the end. `refused`: requests may fail until this many seconds after the event.
    """

    event: Callable[[Setup], Awaitable[None]]
    due: bool = False
    rules: tuple[Rule, ...] = ()
    arguments: tuple[str, ...] = ()
    written: int = 1
    authorities: int = 2
    refused: float = 0.0
    kubelet_delay: float = issuing.KUBELET_DELAY


async def run_scenario(sandbox: Sandbox, references: References, scenario: Scenario) -> None:
    """An event while clients send requests; in the end a valid pair is trusted and served."""
    names = issuing.names_of(sandbox)
    first = issuing.due_pair(names) if scenario.due else None
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(
            issuing.installation(sandbox, references.plane, first, *scenario.arguments)
        )
        rules = sandbox.proxy.inject(*scenario.rules)
        if first is None:
            sandbox.check(await issuing.denial(sandbox), "an object was accepted without a review")
            sandbox.operator.start()
        admission = await stack.enter_async_context(issuing.mounted(sandbox, port, RENEWED))
        setup = Setup(sandbox, names, admission, admission.pair, rules)
        await setup_is_trusted(setup, due=scenario.due)
        projected = (await sandbox.get(SECRETS, issuing.SECRET) or {})["data"]
        kubelet = issuing.Kubelet(sandbox, admission.files, scenario.kubelet_delay, projected)
        clients = issuing.Clients(sandbox, names, port)
        work = {"the kubelet": kubelet.run(), "creating": clients.create(), "connecting": clients.connect()}
        async with while_running(work):
            started = time.monotonic()
            await scenario.event(setup)
            await setup.wait_until_served()
            await wait_until(partial(_enough, clients), RENEWED, "the clients have sent enough requests")
        check_clients(clients, started, scenario.refused)
        await check_result(setup, scenario)


async def setup_is_trusted(setup: Setup, *, due: bool) -> None:
    """Wait until the first pair is trusted, and the API server calls the webhooks."""
    if not due:
        await setup.wait_until_served()
    await issuing.wait_until_accepted(setup.sandbox, RENEWED)


async def _enough(clients: issuing.Clients) -> bool:
    return clients.created >= MIN_CREATED and clients.connected >= MIN_CONNECTED


def check_clients(clients: issuing.Clients, started: float, refused: float) -> None:
    """Check that no request failed, or only expected ones and in time."""
    check, failed = clients.sandbox.check, clients.failed
    if not refused:
        check(not failed, f"{len(failed)} of {clients.created + clients.connected} requests failed: {failed[:2]}")
        return
    check(failed, "no request failed: the fault had no effect")
    other = [error for _, error in failed if not any(part in error for part in issuing.UNTRUSTED)]
    check(not other, f"requests failed for another reason: {other[:2]}")
    last = failed[-1][0] - started
    check(last < refused * TIMEOUT_FACTOR, f"requests failed until {last:.1f} s after the event: {failed[-1][1]}")


async def check_result(setup: Setup, scenario: Scenario) -> None:
    """Check what was written, what is trusted, and that objects are stored with defaults."""
    sandbox = setup.sandbox
    written = [each for each in setup.requests("* secrets") if each.call.verb != "get" and 200 <= each.committed < 300]
    sandbox.check(len(written) == scenario.written, f"the Secret was written {len(written)} times: {written}")
    most = max(len(load_bundle(each)) for each in await bundles(sandbox, setup.names))
    sandbox.check(most <= scenario.authorities, f"{most} CAs are trusted, at most {scenario.authorities} expected")
    unhit = [rule.rule.what for rule in setup.rules if not rule.hits]
    sandbox.check(not unhit, f"these requests were never sent: {unhit}")
    for kind in KINDS:
        obj = await sandbox.create(resource_of(kind), "afterwards", VALID[kind.name])
        check_defaults(sandbox, obj)
    check_operator(sandbox)
    sandbox.check(len(setup.webhook.process.starts) == 1, "the admission process was restarted")
    sandbox.check(not setup.webhook.failures(), f"the admission process failed: {setup.webhook.failures()}")


async def nothing(_: Setup) -> None:
    """The first pair was issued, whatever happened."""


async def renewed(setup: Setup) -> None:
    """The issuer starts and renews the pair, which is due."""
    setup.sandbox.operator.start()
    await setup.wait_until_renewed()


async def short_lived(setup: Setup) -> None:
    """The pair is renewed in time, and its CA is removed after its end."""
    await wait_until(partial(_renewed_alone, setup), 2 * SHORT_LIFETIME, "only the CA of the second pair is trusted")


async def _renewed_alone(setup: Setup) -> bool:
    pair = await issuing.stored(setup.sandbox)
    alone = all(each == (pair and pair.ca) for each in await bundles(setup.sandbox, setup.names))
    return alone and pair != setup.first


async def secret_deleted(setup: Setup) -> None:
    """A user deletes the Secret: pods that run keep their files."""
    await setup.sandbox.delete(SECRETS, issuing.SECRET)
    await setup.wait_until_renewed()


async def revoked(setup: Setup) -> None:
    """A user replaces the pair, and revokes the CA of the former one as soon as the new one is served."""
    await secret_deleted(setup)
    await setup.sandbox.merge(setup.secret, {"metadata": {"annotations": {REVOKE_ANNOTATION: "true"}}})
    await wait_until(partial(_renewed_alone, setup), RENEWED, "only the CA of the new pair is trusted")


async def secret_changed(setup: Setup, content: Callable[[Setup], Mapping[str, bytes]]) -> None:
    """Another client changes the Secret to invalid contents: the issuer replaces them."""
    await issuing.write_secret(setup.sandbox, setup.names, dict(content(setup)))
    await setup.wait_until_renewed()


async def secret_of_another(setup: Setup) -> None:
    """Another client writes a valid pair of another CA: the issuer keeps it, and trusts its CA."""
    other = another_pair(setup.names)
    await issuing.write_secret(setup.sandbox, setup.names, contents(other))
    await setup.wait_until_renewed()
    setup.sandbox.check(await issuing.stored(setup.sandbox) == other, "the pair of the other client was replaced")


async def bundle_changed(setup: Setup, number: int, *, emptied: bool) -> None:
    """Another client empties the CA bundles of one configuration, or replaces their CA; the issuer restores it."""
    bundle = b"" if emptied else another_pair(setup.names).ca
    await issuing.set_bundle(setup.sandbox, issuing.keys_of(setup.names)[number], bundle)
    await asyncio.sleep(PROPAGATION_DELAY)


async def another_process(setup: Setup) -> None:
    """Another process takes over: it finds a valid pair, and writes nothing in its first two checks."""
    sandbox = setup.sandbox
    await sandbox.operator.stop()
    since = time.monotonic()
    sandbox.operator.start()

    async def checked_twice() -> bool:
        return sum(bool(entry.committed) for entry in setup.requests("get secrets", since)) >= 2

    await wait_until(checked_twice, RENEWED, "the other process has checked the Secret twice")
    found = [entry for what in ("* secrets", "* *webhookconfigurations") for entry in setup.requests(what, since)]
    written = [entry for entry in found if entry.call.verb != "get"]
    sandbox.check(not written, f"the other process wrote: {'; '.join(map(str, written))}")


@dataclass(frozen=True)
class Late:
    """Send the request to the API server only after an event, even if the operator has been killed meanwhile."""

    event: asyncio.Event

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        await self.event.wait()
        return await exchange.forward()


async def late_write(setup: Setup, what: str) -> None:
    """A write of a leader that died reaches the API server after the next leader has renewed the pair: it is denied."""
    sandbox, event = setup.sandbox, asyncio.Event()
    (active,) = sandbox.proxy.inject(Rule(what, Late(event), times=1))
    sandbox.operator.start()
    await wait_for(active.done.wait(), RENEWED, f"the first process sends: {what}")
    await sandbox.operator.stop()
    late = setup.requests(what)[-1]
    sandbox.operator.start()
    await setup.wait_until_renewed()
    event.set()

    async def answered() -> bool:
        return bool(late.committed)

    await wait_until(answered, RENEWED, "the late write is answered")
    sandbox.check(late.committed == 409, f"the late write of the former leader got {late.committed}, not 409")


def contents(pair: KeyPair) -> dict[str, bytes]:
    """The contents of a Secret with this pair."""
    return {**files_of(pair), "ca.crt": pair.ca}


def another_pair(names: WebhookNames) -> KeyPair:
    """A valid pair of another CA."""
    return issue(names.dns_names, LIFETIME, datetime.now(UTC))


def _emptied(_: Setup) -> Mapping[str, bytes]:
    return dict.fromkeys(("tls.crt", "tls.key", "ca.crt"), b"")


def _garbage(_: Setup) -> Mapping[str, bytes]:
    return {name: os.urandom(500) for name in ("tls.crt", "tls.key", "ca.crt")}


def _untrusted(setup: Setup) -> Mapping[str, bytes]:
    """A certificate of another CA, next to the former CA: the Secret does not match itself."""
    return {**contents(another_pair(setup.names)), "ca.crt": setup.first.ca}


MUTATING, VALIDATING = "migrate mutatingwebhookconfigurations", "migrate validatingwebhookconfigurations"
"""The issuer's writes of CA bundles are JSON patches."""
WRITES = {"mutating": MUTATING, "validating": VALIDATING, "secret": "patch secrets"}
ERRORS: dict[str, Fault] = {
    "403": Reject(403, "Forbidden"),
    "409": Reject(409, "Conflict"),
    "500": Reject(500, "InternalError"),
}
SCENARIOS: dict[str, Scenario] = {
    "first": Scenario(nothing, authorities=1),
    "renewal": Scenario(renewed, due=True),
    "renewal/late-files": Scenario(renewed, due=True, kubelet_delay=LATE),
    "renewal/short-lifetime": Scenario(
        short_lived, arguments=(f"--certificate-lifetime={SHORT_LIFETIME}s",), written=2, authorities=1
    ),
    "secret/deleted": Scenario(secret_deleted, written=2),
    "secret/deleted-and-revoked": Scenario(revoked, written=3, authorities=1),
    "secret/emptied": Scenario(partial(secret_changed, content=_emptied), written=2),
    "secret/garbage": Scenario(partial(secret_changed, content=_garbage), written=2),
    "secret/untrusted": Scenario(partial(secret_changed, content=_untrusted), written=2, refused=RECOVERY),
    "secret/untrusted-late-files": Scenario(partial(secret_changed, content=_untrusted), written=2, kubelet_delay=LATE),
    "secret/of-another-ca": Scenario(secret_of_another, refused=RECOVERY),
    "secret/of-another-ca-late-files": Scenario(secret_of_another, kubelet_delay=LATE),
    "takeover/idle": Scenario(another_process, authorities=1),
    "takeover/late-secret": Scenario(partial(late_write, what="patch secrets"), due=True, authorities=3),
    "takeover/late-bundle": Scenario(partial(late_write, what=MUTATING), due=True),
}


def scenarios() -> dict[str, Scenario]:
    """All scenarios, by name."""
    found = dict(SCENARIOS)
    for number, configuration in enumerate(("mutating", "validating")):
        for name, emptied in (("emptied", True), ("replaced", False)):
            event = partial(bundle_changed, number=number, emptied=emptied)
            most = 1 if emptied else 2
            found[f"bundle/{configuration}-{name}"] = Scenario(event, authorities=most, refused=RECOVERY)
    for moment in ("before", "during", "after"):
        # The CA of a pair that a killed process has not stored stays trusted until it expires.
        for name, what in WRITES.items():
            rules = (Rule(what, Kill(moment), times=1),)
            found[f"killed/{name}-{moment}"] = Scenario(renewed, due=True, rules=rules, authorities=3)
        rules = (Rule("create secrets", Kill(moment), times=1),)
        found[f"killed/first-secret-{moment}"] = Scenario(nothing, rules=rules)
    for code, fault in ERRORS.items():
        for name, what in (("secret", WRITES["secret"]), ("bundles", "migrate *webhookconfigurations")):
            rules = (Rule(what, fault, seconds=REJECTED),)
            found[f"rejected/{name}-{code}"] = Scenario(renewed, due=True, rules=rules)
    return found


def cases() -> list[Case]:
    """One case per scenario."""
    found = [
        Case(f"certificates/issuer/{name}", partial(run_scenario, scenario=scenario), limit=240)
        for name, scenario in scenarios().items()
    ]
    return in_gate(found, "certificates/issuer/renewal", "certificates/issuer/killed/secret-before")
