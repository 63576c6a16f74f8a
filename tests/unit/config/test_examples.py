"""The folders of examples/: manifests that admission accepts, and READMEs that agree with them.

test_documents.py checks their links. In tests/integration, test_objects.py and test_diff.py apply them to API servers.
tests/clients runs the blocks in PHP and Ruby.
"""

import ast
import configparser
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml

from crds.crd import definition
from memcached_api.memcached.memory import MEBIBYTE
from memcached_api.memcached.types import MEMCACHED
from memcached_api.quantity import parse_quantity
from memcached_api.registry import KINDS
from memcached_webhooks.kinds.memcached import warnings
from pages.commands import blocks
from support import examples
from support.examples import FOLDERS, Object
from unit.config.rendered import ROOT
from unit.config.test_documents import unknown

FOREIGN_KINDS = {"Secret", "HorizontalPodAutoscaler", "Issuer", "Certificate"}
"""The kinds of objects in the examples that are not ours."""
OTHER_KINDS = {kind.name: kind for kind in KINDS if kind != MEMCACHED}
OVERHEAD = 60
"""Bytes of each item beside key and value, in docs/sizing.md."""


def parse_ini(text: str) -> None:
    """Raise configparser.Error if a text is not INI."""
    configparser.ConfigParser(interpolation=None, strict=True).read_string(text)


def parse_yaml(text: str) -> None:
    """Raise yaml.YAMLError if a text is not YAML."""
    assert all(document for document in yaml.safe_load_all(text))


ITEMS = re.compile(
    r"`memory: (\w+)`[^|]*\| Enough for ([\d,]+) [a-z ]+ of ([\d.]+) (\w+)\. "
    r"The estimate adds \[about 60 bytes\]\(\S+\) to each item and 10 % to the total"
    r"(?:, and divides the total among (\d+) pods)?\."
)
"""A row such as `memory: 80Mi` | Enough for 100,000 sessions of 2 KiB. The estimate adds about 60 bytes to each …"""
PARSERS: dict[str, Callable[[str], object]] = {"yaml": parse_yaml, "python": ast.parse, "ini": parse_ini}
OTHERS = {"php", "ruby", "nginx", "perl", "sh", "console", "promql"}
"""The languages of blocks that this test does not parse. tests/clients runs PHP and Ruby."""

example = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def test_table_has_each_folder_and_the_memory_that_it_needs() -> None:
    row = r"^\| \[([\w-]+)\]\(\1/README\.md\) \| .* \| (.*) \|$"
    listed = re.findall(row, (examples.ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [(folder.name, examples.needs(examples.memcacheds(folder))[0]) for folder in FOLDERS]
    assert len(listed) >= 25


@cache
def schemas() -> dict[str, Object]:
    """The schema of a Memcached, by version."""
    crd = yaml.safe_load((ROOT / "config/crd/bases/cache.example.com_memcacheds.yaml").read_text())
    return {each["name"]: each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"]}


@example
def test_manifest_is_valid(folder: Path) -> None:
    found = examples.memcacheds(folder)
    assert found
    assert {obj["kind"] for obj in examples.objects(folder)} <= {MEMCACHED.name, *OTHER_KINDS, *FOREIGN_KINDS}
    for obj in examples.objects(folder):
        if (kind := OTHER_KINDS.get(obj["kind"])) is not None:
            assert kind.validate(obj) == []
            assert unknown(obj, definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]) == []
    for obj in found:
        version = str(obj["apiVersion"]).removeprefix(f"{MEMCACHED.group}/")
        assert MEMCACHED.validate(obj) == []
        assert MEMCACHED.validate(examples.admitted(obj)) == []
        assert unknown(obj, schemas()[version]) == []


@example
def test_readme_quotes_exactly_the_warnings_of_admission(folder: Path) -> None:
    found = [
        text for obj in examples.memcacheds(folder) for text in warnings(examples.admitted(obj), None, examples.IMAGES)
    ]
    assert re.findall(r"^Warning: (.*)$", examples.readme(folder), flags=re.MULTILINE) == found


@example
def test_readme_says_how_to_apply_and_to_check(folder: Path) -> None:
    text, namespace = examples.readme(folder), examples.namespace_of(folder)
    names = " ".join(f"memcached/{obj['metadata']['name']}" for obj in examples.memcacheds(folder))
    assert f"kubectl wait -n {namespace} --for=condition=Ready {names} --timeout=" in text
    assert f" -{'k' if (folder / examples.KUSTOMIZATION).exists() else 'f'} examples/{folder.name}/\n" in text
    assert {obj["metadata"].get("namespace", namespace) for obj in examples.objects(folder)} == {namespace}


@example
def test_readme_says_what_the_nodes_need(folder: Path) -> None:
    text = " ".join(examples.readme(folder).split())
    found = {obj["metadata"]["name"]: examples.needs([obj]) for obj in examples.memcacheds(folder)}
    for name, (memory, cpu) in found.items():
        assert needs_of(name, memory, cpu, alone=len(found) == 1) in text


def needs_of(name: str, memory: str, cpu: str, *, alone: bool) -> str:
    """The needs of a Memcached in a README: a sentence, or a row of a table if the example has several."""
    if not alone:
        return f"| `{name}` | {memory} | {cpu} |"
    one = memory.startswith("1 × ")
    return f"request{'s' * one} {memory.removeprefix('1 × ')} of memory and {cpu.removeprefix('1 × ')} of CPU"


@example
def test_memory_follows_from_the_number_of_items(folder: Path) -> None:
    """By the rule in docs/sizing.md."""
    manifest = (folder / "memcached.yaml").read_text()
    found = ITEMS.findall(examples.readme(folder))
    assert len(found) == examples.readme(folder).count("60 bytes")
    for memory, number, size, unit, pods in found:
        value = float(size) * {"B": 1, "KiB": 2**10, "MiB": MEBIBYTE}[unit]
        total = int(number.replace(",", "")) * (value + OVERHEAD) * 1.1 / int(pods or 1)
        assert 0.85 <= total / float(parse_quantity(memory)) <= 1
        assert f"memory: {memory}\n" in manifest


@example
def test_blocks_parse(folder: Path) -> None:
    for language, text in ((block.language, block.text) for block in blocks(examples.readme(folder))):
        assert language in PARSERS.keys() | OTHERS
        if language in PARSERS:
            PARSERS[language](text)


@example
def test_addresses_exist(folder: Path) -> None:
    """Each address in the README and in certificates is one of an object of the example, in its namespace."""
    text = "".join(path.read_text() for path in sorted(folder.iterdir()))
    namespace = examples.namespace_of(folder)
    known = {name for obj in examples.memcacheds(folder) for name in addresses(examples.admitted(obj))}
    known |= {obj["metadata"]["name"] for obj in examples.objects(folder) if obj["kind"] in OTHER_KINDS}
    found = {str(name).removesuffix(f".{namespace}") for name in re.findall(r"([\w.*-]+)\.svc\.cluster\.local", text)}
    assert found <= known


@example
def test_names_of_srv_records_are_absolute(folder: Path) -> None:
    """Without the final dot, a failed lookup becomes "no such host" through the search list: an empty list."""
    found = re.findall(r"dnssrv(?:noa)?\+[^\s`\"]+\b\.?", examples.readme(folder))
    assert [name for name in found if not name.endswith(".local.")] == []


def addresses(obj: Object) -> set[str]:
    """The DNS names of a Memcached, without namespace and domain."""
    name, spec = obj["metadata"]["name"], obj["spec"]
    names = {name, f"_memcached._tcp.{name}"}
    if spec.get("identity") != "Stable":
        return names
    slots = [f"{name}-{slot}" for slot in range(spec["size"])]
    fixed = slots if spec.get("service", {}).get("perPod") else []
    return {*names, *fixed, f"*.{name}", *(f"{slot}.{name}" for slot in slots)}
