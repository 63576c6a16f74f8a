"""The suites, and the groups that `make test` and `make test-all` run. It is read before .venv exists."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from cluster.versions import KUBERNETES, NEWEST_KUBERNETES, OLDEST_KUBERNETES, SUPPORTED


class Needs(StrEnum):
    """The requirement of a suite."""

    NOTHING = "nothing"
    SERVERS = "API servers, which its tests start"
    OPERATOR = "a cluster with real pods and the deployed operator"
    OLM = "a separate cluster with real pods and OLM"


@dataclass(frozen=True)
class Suite:
    """Some of the tests: a folder of tests/ and pytest's options.

    `content` completes "Tests of …" for the user. `parallel` suites run WORKERS tests at the same time, or `times` as
    many because they mostly wait. `versions`: of the API servers that the tests start. `again`: whether a failed test
    may run once more; not a fault case, which is evidence even if it fails once.
    """

    name: str
    content: str
    needs: Needs
    folder: str
    options: tuple[str, ...] = ()
    parallel: bool = False
    times: int = 1
    versions: tuple[str, ...] = (KUBERNETES,)
    again: bool = True


PROMISES = "create, scale, drift, rejection, reload of TLS and passwords, upgrade that keeps items, restart"

_ALL = (
    Suite("unit", "single modules", Needs.NOTHING, "unit", ("-q",), parallel=True),
    Suite(
        "simulation",
        "each fault at each moment, with an API server and a cluster in memory, and mutants",
        Needs.NOTHING,
        "simulation",
        ("-q",),
        parallel=True,
    ),
    Suite(
        "integration",
        "the API, the policies and the controller with a real API server",
        Needs.SERVERS,
        "integration",
        ("--part=rest",),
        parallel=True,
    ),
    Suite("smoke", f"each promise with real pods: {PROMISES}", Needs.OPERATOR, "e2e", ("--part=smoke",), parallel=True),
    Suite(
        "newest",
        "what depends on the API server, and every field, with the newest one",
        Needs.SERVERS,
        "integration",
        ("--server=newest",),
        parallel=True,
        versions=(NEWEST_KUBERNETES,),
    ),
    Suite(
        "oldest",
        "the same with the oldest API server",
        Needs.SERVERS,
        "integration",
        ("--server=oldest",),
        parallel=True,
        versions=(OLDEST_KUBERNETES,),
    ),
    Suite(
        "integration-nightly",
        "the scheduler, GitOps tools, memcached's limits and oldest release, the file of alerts, costs of rules",
        Needs.SERVERS,
        "integration",
        ("--part=nightly",),
        parallel=True,
    ),
    Suite("e2e", "the operator with real pods", Needs.OPERATOR, "e2e", ("--part=rest",), parallel=True),
    Suite(
        "e2e-nightly",
        "what takes minutes, and what Kubernetes itself does with an object",
        Needs.OPERATOR,
        "e2e",
        ("--part=nightly",),
        parallel=True,
    ),
    Suite("disruptive", "the operator while it is disturbed as a whole", Needs.OPERATOR, "e2e", ("--part=disruptive",)),
    Suite(
        "faults",
        "the operator behind a proxy that injects faults: a few cases of each campaign, and mutants",
        Needs.SERVERS,
        "faults",
        ("-m", "gate"),
        parallel=True,
        times=2,
        again=False,
    ),
    Suite(
        "campaigns",
        "the operator behind a proxy that injects faults: all cases, and mutants",
        Needs.SERVERS,
        "faults",
        parallel=True,
        times=2,
        again=False,
    ),
    Suite("olm", "installation and upgrade by OLM", Needs.OLM, "olm", ("--part=rest",)),
    Suite("olm-modes", "OLM's other modes", Needs.OLM, "olm", ("--part=modes",)),
    Suite(
        "servers",
        "what depends on the API server, with one of each minor version",
        Needs.SERVERS,
        "integration",
        ("--server=all",),
        parallel=True,
        versions=SUPPORTED,
    ),
    Suite(
        "release",
        "a release: built twice, published, verified; other API groups; a private registry",
        Needs.NOTHING,
        "releases",
    ),
    Suite("certmanager", "the webhook's and caches' certificates with cert-manager", Needs.SERVERS, "certmanager"),
    Suite(
        "dashboards",
        "the dashboards with data of real processes, and Grafana's types",
        Needs.SERVERS,
        "grafana",
    ),
    Suite("chart", "the chart with Helm 3 and Helm 4", Needs.SERVERS, "chart"),
    Suite("monitoring", "monitors and rules with the real Prometheus operator", Needs.SERVERS, "monitoring"),
    Suite("incidents", "everyday incidents: alerts and commands that lead to causes", Needs.OPERATOR, "incidents"),
    Suite("clients", "client libraries of six languages with real pods", Needs.OPERATOR, "clients"),
)
SUITES: Mapping[str, Suite] = {each.name: each for each in _ALL}

TEST = ("unit", "integration", "smoke")
REST = ("simulation", "e2e", "disruptive", "faults", "olm")
GROUPS: Mapping[str, tuple[str, ...]] = {"test": TEST, "rest": REST, "all": (*TEST, *REST)}
"""Names for several suites: `make test`, what `make test-all` adds, and both."""


def chosen(names: list[str]) -> list[Suite]:
    """The suites of these names of suites and groups, each once, in their order. Raises KeyError."""
    every = [suite for name in names for suite in GROUPS.get(name, (name,))]
    return [SUITES[name] for name in dict.fromkeys(every)]
