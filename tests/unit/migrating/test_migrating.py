"""Each Memcached in docs/migrating.md runs the same memcached as its source, and does not interfere with it.

The sources are objects of the page itself, and for charts and operators the objects that these create
(tests/unit/migrating/*.yaml).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import goldens
from memcached_api.images import Images
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.kube.resource import nested_map
from memcached_operator.kube.selectors import Selector
from memcached_webhooks.kinds.memcached import warnings
from support.admitted import admitted
from support.code_blocks import code_blocks
from unit.config.rendered import ROOT

Object = dict[str, Any]

PAGE = ROOT / "docs/migrating.md"
HEADINGS = {
    "bitnami": "From Bitnami's chart",
    "c5c3": "From C5C3's memcached operator",
    "deployment": "From a Deployment",
    "sample": "From the operator-sdk sample",
}
WORKLOADS = ("Deployment", "StatefulSet")
VARIABLES = {
    "MEMCACHED_PORT_NUMBER": "-p",
    "MEMCACHED_CACHE_SIZE": "-m",
    "MEMCACHED_MAX_CONNECTIONS": "-c",
    "MEMCACHED_THREADS": "-t",
    "MEMCACHED_MAX_ITEM_SIZE": "-I",
}
"""The variables from which Bitnami's image makes options of memcached."""


class Facts(NamedTuple):
    """What clients and nodes notice of a cache. `memory` in MiB, `item_size` in bytes."""

    pods: int
    port: int
    memory: int
    connections: int
    threads: int
    item_size: int
    verbosity: int
    others: frozenset[str]
    """Further options, without `-o modern`, which has no effect."""


def blocks(source: str) -> list[Object]:
    """The objects in the YAML blocks of a section."""
    section = PAGE.read_text().partition(f"\n## {HEADINGS[source]}\n")[2].partition("\n## ")[0]
    return [each for block in code_blocks(section, "yaml") for each in yaml.safe_load_all(block)]


def promised(source: str) -> Object:
    """The Memcached of a section, as the API server stores a new one."""
    (found,) = (
        each
        for each in blocks(source)
        if each.get("kind") == MEMCACHED.name and each["apiVersion"].startswith("cache.example.com/")
    )
    stored = found["spec"] if source == "sample" else admitted(**found["spec"])
    return {**found, "metadata": {"namespace": "default", **found["metadata"], "uid": "cr"}, "spec": stored}


def old_objects(source: str) -> list[Object]:
    """The objects of the installation that is replaced."""
    path = Path(__file__).parent / f"{source}.yaml"
    return yaml.safe_load(path.read_text())["items"] if path.exists() else blocks(source)[:2]


def workload(objects: list[Object]) -> Object:
    """The Deployment or StatefulSet."""
    return next(each for each in objects if each["kind"] in WORKLOADS)


def container(objects: list[Object]) -> Object:
    """The container of memcached."""
    return next(
        each for each in workload(objects)["spec"]["template"]["spec"]["containers"] if each["name"] == "memcached"
    )


def options(memcached: Object) -> Iterator[tuple[str, str]]:
    """The options of memcached with their values, from the command, its arguments, or the variables of the image."""
    for variable in memcached.get("env", ()):
        if variable["name"] in VARIABLES:
            yield VARIABLES[variable["name"]], variable["value"]
    if memcached.get("env"):
        yield "-v", ""  # Bitnami's image always sets it
    words = [word for word in (*memcached.get("command", ()), *memcached.get("args", ())) if word != "memcached"]
    while words:
        option = words.pop(0)
        takes_value = option in {"-m", "-p", "-U", "-c", "-t", "-I", "-o"}
        yield option, words.pop(0) if takes_value else ""


def facts(objects: list[Object]) -> Facts:
    """The facts of a cache. An option that is not set has memcached's default; memcached parses `-m=64` as that."""
    found = list(options(container(objects)))
    values = dict(found)
    size = values.get("-I", "1m")
    known = {"-m", "-p", "-U", "-c", "-t", "-I", "-v", "-vv", "-m=64"}
    return Facts(
        pods=workload(objects)["spec"]["replicas"],
        port=int(values.get("-p", "11211")),
        memory=int(values.get("-m", "64")),
        connections=int(values.get("-c", "1024")),
        threads=int(values.get("-t", "4")),
        item_size=int(size[:-1]) * 2**20 if size.endswith("m") else int(size),
        verbosity=2 if "-vv" in values else int("-v" in values),
        others=frozenset(f"{name} {value}" for name, value in found if name not in known) - {"-o modern"},
    )


@pytest.mark.parametrize("source", HEADINGS)
def test_promised_memcached_runs_the_same_memcached(source: str) -> None:
    assert facts(goldens.children(promised(source))) == facts(old_objects(source))


def test_facts_of_the_sources_are_not_only_defaults() -> None:
    found = {source: facts(old_objects(source)) for source in HEADINGS}
    assert found["bitnami"] == Facts(3, 11211, 256, 2048, 4, 2**21, 1, frozenset())
    assert found["c5c3"] == Facts(3, 11211, 256, 2048, 2, 2**21, 0, frozenset({"-o hashpower=17"}))
    assert found["deployment"] == Facts(1, 11211, 512, 4096, 4, 2**20, 1, frozenset())
    assert found["sample"] == Facts(3, 11211, 64, 1024, 4, 2**20, 1, frozenset())


@pytest.mark.parametrize("source", ["bitnami", "c5c3", "deployment"])
def test_promised_memcached_has_the_same_resources(source: str) -> None:
    assert container(goldens.children(promised(source)))["resources"] == container(old_objects(source))["resources"]


@pytest.mark.parametrize("source", ["bitnami", "c5c3"])
def test_promised_memcached_admits_the_same_clients_and_evictions(source: str) -> None:
    (new, old) = (
        {each["kind"]: each.get("spec", {}) for each in objects}
        for objects in (goldens.children(promised(source)), old_objects(source))
    )
    own = {"podSelector": {"matchLabels": old["Service"]["selector"]}}
    clients = [peer for peer in old["NetworkPolicy"]["ingress"][0]["from"] if peer != own]
    assert new["NetworkPolicy"]["ingress"][0]["from"] == clients
    budget = old["PodDisruptionBudget"]
    size = workload(old_objects(source))["spec"]["replicas"]
    assert new["PodDisruptionBudget"]["maxUnavailable"] == budget.get(
        "maxUnavailable", size - budget.get("minAvailable", 0)
    )


@pytest.mark.parametrize("source", ["bitnami", "c5c3", "deployment"])
def test_promised_memcached_has_no_warning(source: str) -> None:
    assert warnings(promised(source), None, Images("memcached:1")) == []


def selectors(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """The kinds of objects that select pods, with their selectors."""
    for obj in objects:
        spec: Object = obj.get("spec", {})
        found = spec.get("podSelector") or spec.get("selector")
        if obj["kind"] == "Service":
            found = {"matchLabels": spec["selector"]}
        if found:
            yield obj["kind"], found


def selecting(old: list[Object], new: list[Object]) -> set[str]:
    """The kinds of the old objects that select the new pods."""
    labels = workload(new)["spec"]["template"]["metadata"]["labels"]
    return {kind for kind, selector in selectors(old) if Selector(selector).selects(labels)}


def names(objects: list[Object]) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of each object."""
    return {(each["kind"], each["metadata"].get("namespace", "default"), each["metadata"]["name"]) for each in objects}


@pytest.mark.parametrize("source", HEADINGS)
def test_old_and_new_cache_can_run_at_the_same_time(source: str) -> None:
    old, new = old_objects(source), goldens.children(promised(source))
    assert selecting(old, new) == selecting(new, old) == set()
    shared = {("Deployment", "default", "memcached-sample")} if source == "sample" else set[tuple[str, str, str]]()
    assert names(old) & names(new) == shared


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("bitnami", {"StatefulSet", "Service", "PodDisruptionBudget"}),
        ("c5c3", {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}),
    ],
)
def test_names_that_the_page_forbids_would_interfere(source: str, kinds: set[str]) -> None:
    cr = promised(source)
    new = goldens.children({**cr, "metadata": {**cr["metadata"], "name": "sessions"}})
    assert selecting(old_objects(source), new) == kinds


def test_values_of_the_chart_are_those_of_its_objects() -> None:
    values, objects = blocks("bitnami")[0], old_objects("bitnami")
    assert workload(objects)["kind"] == {"high-availability": "StatefulSet"}[values["architecture"]]
    assert workload(objects)["spec"]["replicas"] == values["replicaCount"]
    assert container(objects)["env"][2:] == values["extraEnvVars"]
    assert container(objects)["resources"] == values["resources"]


def test_object_of_c5c3_is_that_of_its_children() -> None:
    spec, objects = blocks("c5c3")[0]["spec"], old_objects("c5c3")
    settings = spec["memcached"]
    assert workload(objects)["spec"]["replicas"] == spec["replicas"]
    assert container(objects)["image"] == spec["image"]
    assert container(objects)["args"] == [
        *("-m", str(settings["maxMemoryMB"]), "-c", str(settings["maxConnections"])),
        *("-t", str(settings["threads"]), "-I", settings["maxItemSize"], *settings["extraArgs"]),
    ]


def test_service_that_is_patched_selects_the_new_pods() -> None:
    (patch,) = re.findall(
        r"patch service memcached --type=json -p '(.*?)'$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    (operation,) = yaml.safe_load(patch)
    assert (operation["op"], operation["path"]) == ("replace", "/spec/selector")
    (service,) = (each for each in goldens.children(promised("deployment")) if each["kind"] == "Service")
    assert operation["value"] == nested_map(service, "spec", "selector")
