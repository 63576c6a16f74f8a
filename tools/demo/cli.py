"""The command line, and the order of the story."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from demo import admission, closing, healing, opening, serving
from demo.errors import StoryError
from demo.kubectl import Kubectl
from demo.screen import Screen
from demo.stage import Stage

NAMESPACE = "memcached-demo"
SAMPLE = Path("config/samples/cache_v1_memcached.yaml")
INTERRUPTED = 130

Steps = tuple[tuple[str, str, Callable[[Stage], None]], ...]
"""A story: the title of each step, a sentence about it, and what it does."""

STEPS: Steps = (
    ("The operator is at work", "One controller works, one stands by; two webhooks answer.", opening.operator_works),
    ("A namespace for the story", "What an earlier run left goes first.", opening.clean_namespace),
    ("Admission fills in what is missing", "A dry run: shown, not stored.", admission.fills_in),
    ("Admission refuses what cannot work", "A Memcached without pods is none.", admission.refuses),
    ("A Memcached becomes memcached", "Apply the sample, and wait.", serving.becomes_pods),
    ("Every pod answers", "Found through the Service's DNS name, from inside the cluster.", serving.every_pod_answers),
    ("kubectl scale works", "Up and down, but not to nothing.", serving.scales),
    ("A pod deleted by hand comes back", "Empty: it is a cache.", healing.pod_comes_back),
    ("A Deployment deleted by hand comes back", "The operator sees it go.", healing.deployment_comes_back),
    ("The status tells it all", "Columns for people, conditions for programs.", closing.status_tells),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell the story; returns the exit code: 0, 1 where something is not as told, 130 when interrupted."""
    options = parser().parse_args(arguments)
    stage = Stage(Kubectl(options.namespace), Screen(len(STEPS)), options.sample)
    clean_up = f"kubectl delete namespace {options.namespace}"
    return perform(stage, STEPS, lambda: closing.farewell(stage.kubectl.namespace, stage.name), clean_up)


def perform(stage: Stage, steps: Steps, farewell: Callable[[], str], clean_up: str) -> int:
    """Tell a story, up to the first step that is not as told; returns the exit code, as `main` does."""
    sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    try:
        for title, about, step in steps:
            with stage.screen.step(title, about):
                step(stage)
    except StoryError as error:
        print(f"\nNot as told: {error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nInterrupted. Clean up: {clean_up}", file=sys.stderr)
        return INTERRUPTED
    print(f"\nAll as told, in {stage.screen.elapsed():.1f} s.\n")
    print(farewell())
    return 0


def parser(
    program: str = "python -m demo",
    description: str = "The story of the operator, on the cluster of kubectl.",
    namespace: str = NAMESPACE,
) -> argparse.ArgumentParser:
    """The arguments that every story has."""
    top = argparse.ArgumentParser(program, description=description)
    top.add_argument("--namespace", default=namespace, help="of the Memcached; cleaned at the start (%(default)s)")
    top.add_argument("--sample", type=Path, default=SAMPLE, help="file with the Memcached of the story (%(default)s)")
    return top
