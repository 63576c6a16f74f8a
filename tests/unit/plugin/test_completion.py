"""Completion in shells, and by kubectl's protocol for plugins."""

import pytest

from unit.plugin.conftest import Run, World
from unit.plugin.samples import PROXIES, proxy


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_a_shell_calls_the_program(shell: str, run: Run) -> None:
    script = run("completion", shell).output
    assert ("kubectl-memcached" in script, f"_KUBECTL_MEMCACHED_COMPLETE={shell}_complete" in script) == (True, True)


def test_program_for_kubectl_is_a_script(run: Run) -> None:
    script = run("completion", "kubectl").output
    assert script.startswith("#!/bin/sh\n")
    assert 'exec kubectl-memcached __complete -- "$@"' in script


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("st",), ["stats", "status"]),
        (("status", "se"), ["sessions"]),
        (("-n", "shop", "pause", ""), ["sessions"]),
        (("status", "x"), []),
        (("stats", "sessions", "--s"), ["--slabs", "--settings"]),
        (("status", "sessions", "-o", "j"), ["json"]),
    ],
)
def test_responses_to_kubectl(words: tuple[str, ...], expected: list[str], run: Run) -> None:
    *completions, last = run("__complete", "--", *words).output.splitlines()
    assert ([line.split("\t")[0] for line in completions], last) == (expected, ":4")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("status", ""), ["front", "sessions"]),
        (("find", "f"), ["front"]),
        (("ring", "f"), ["front"]),
        (("top", "f"), []),
    ],
)
def test_names_of_proxies_complete_where_they_can_be_used(
    words: tuple[str, ...], expected: list[str], world: World, run: Run
) -> None:
    world.kubectl.objects[PROXIES] = [proxy()]
    assert run("__complete", "--", *words).output.splitlines()[:-1] == expected


def test_names_come_from_the_namespace_on_the_command_line(world: World, run: Run) -> None:
    run("__complete", "--", "-n", "other", "--context=c", "status", "")
    assert {"--namespace=other", "--context=c"} <= set(world.kubectl.calls()[0])


def test_unreachable_cluster_completes_nothing(world: World, run: Run) -> None:
    world.kubectl.forbid("get", "memcacheds.cache.example.com")
    assert run("__complete", "--", "status", "").output == ":4\n"
