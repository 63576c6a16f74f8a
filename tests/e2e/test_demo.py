"""The demo of `make demo`, in a namespace of the test."""

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


def run_demo(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
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
def used_namespace(namespace: str) -> Iterator[str]:
    """A namespace with a Memcached, as an earlier run may have left it."""
    kube.apply(memcached(namespace, "left-over", size=1))
    yield namespace
    kube.kubectl("delete", "memcacheds", "--all", "-n", namespace, "--wait=false")


def test_all_steps_pass_twice_in_a_row(used_namespace: str) -> None:
    for _ in range(2):
        done = run_demo("--namespace", used_namespace)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("    ok ") == STEPS
        assert f"kubectl delete namespace {used_namespace}" in done.stdout
        assert f"\nAll {STEPS} steps passed in " in done.stdout
    # The Memcached remains for the user to inspect; the earlier one is deleted.
    assert kube.names(kube.items("memcacheds", used_namespace)) == ["memcached-sample"]


def test_a_sample_that_cannot_work_ends_the_demo_with_the_cause(used_namespace: str, tmp_path: Path) -> None:
    sample = tmp_path / "sample.yaml"
    sample.write_text(
        "apiVersion: cache.example.com/v1\nkind: Memcached\nmetadata: {name: broken}\n"
        "spec: {size: 1, image: localhost/memcached-operator/no-such-image:1}\n"
    )
    done = run_demo("--namespace", used_namespace, "--sample", str(sample))
    assert done.returncode == 1
    assert "Step 5 failed: waiting for memcached/broken to be available failed: Pod broken-" in done.stderr
    assert "cannot be pulled" in done.stderr


@pytest.mark.parametrize("config", ["nowhere", "closed"])
def test_without_a_cluster_one_sentence_has_the_remedy(config: str, tmp_path: Path) -> None:
    file = tmp_path / config
    if config == "closed":
        cluster = {"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}
        context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
        content = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context]}
        file.write_text(str(content | {"current-context": "x"}).replace("'", '"'))
    done = run_demo(KUBECONFIG=str(file))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 2
    assert done.stderr.startswith("\nStep 1 failed: no cluster responds (")
    assert done.stderr.endswith("start one with `make cluster`, or set KUBECONFIG.\n")
