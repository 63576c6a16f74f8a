"""The story that `make demo` tells, in a namespace of the test's own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import kube
from support.memcached import memcached

ROOT = Path(__file__).parents[2]
STEPS = 10
BOUND = 90
"""Seconds for the whole story, which takes 15 on an idle machine: here the other tests may run beside it."""


def tell(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run the demo as the Makefile does."""
    return subprocess.run(
        [sys.executable, "-m", "demo", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools"), **environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )


@pytest.fixture
def story(namespace: str) -> Iterator[str]:
    """A namespace for the story, with something in it that an earlier run may have left."""
    kube.apply(memcached(namespace, "left-over", size=1))
    yield namespace
    kube.kubectl("delete", "memcacheds", "--all", "-n", namespace, "--wait=false")


def test_all_is_as_told_twice_in_a_row(story: str) -> None:
    for _ in range(2):
        done = tell("--namespace", story)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("    ok ") == STEPS
        assert f"kubectl delete namespace {story}" in done.stdout
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("All as told")]
        assert float(line.split()[-2]) < BOUND
    # Left for the user to look at; what was there before is gone.
    assert kube.names(kube.items("memcacheds", story)) == ["memcached-sample"]


def test_a_sample_that_cannot_work_ends_the_story_with_the_cause(story: str, tmp_path: Path) -> None:
    sample = tmp_path / "sample.yaml"
    sample.write_text(
        "apiVersion: cache.example.com/v1\nkind: Memcached\nmetadata: {name: broken}\n"
        "spec: {size: 1, image: localhost/memcached-operator/no-such-image:1}\n"
    )
    done = tell("--namespace", story, "--sample", str(sample))
    assert done.returncode == 1
    assert "Not as told: Available of memcached/broken does not come about: pod broken-" in done.stderr
    assert "cannot be pulled" in done.stderr


@pytest.mark.parametrize("config", ["nowhere", "closed"])
def test_without_a_cluster_one_sentence_says_what_to_do(config: str, tmp_path: Path) -> None:
    file = tmp_path / config
    if config == "closed":
        cluster = {"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}
        context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
        content = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context]}
        file.write_text(str(content | {"current-context": "x"}).replace("'", '"'))
    done = tell(KUBECONFIG=str(file))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 2
    assert done.stderr.startswith("\nNot as told: no cluster answers (")
    assert done.stderr.endswith("start one with `make cluster`, or set KUBECONFIG.\n")
