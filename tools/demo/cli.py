"""The command line: which steps to run, and what is printed when they pass or fail."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from demo.errors import DemoError
from demo.kubectl import Kubectl
from demo.scenes import SCENES, Scenes
from demo.screen import Screen
from demo.stage import Stage

SAMPLE = Path("config/samples/cache_v1_memcached.yaml")
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code: 0, 1 if a step fails, 130 on Ctrl-C."""
    options = parser().parse_args(arguments)
    scenes = SCENES[options.scenes]
    kubectl = Kubectl(options.namespace or scenes.namespace)
    return perform(scenes, Stage(kubectl, Screen(len(scenes.steps)), options.sample))


def perform(scenes: Scenes, stage: Stage) -> int:
    """Run the steps up to the first one that fails; returns the exit code, as `main` does."""
    sys.stdout.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    try:
        for title, about, step in scenes.steps:
            with stage.screen.step(title, about):
                step(stage)
    except DemoError as error:
        print(f"\nStep {stage.screen.number} failed: {error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        namespaces = " ".join([stage.kubectl.namespace, *scenes.more_namespaces])
        print(f"\nInterrupted. To clean up, run: kubectl delete namespace {namespaces}", file=sys.stderr)
        return INTERRUPTED
    print(f"\nAll {len(scenes.steps)} steps passed in {stage.screen.elapsed():.1f} s.\n")
    print(scenes.next_steps(stage))
    return 0


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    top = argparse.ArgumentParser(
        "python -m demo",
        description="A narrated demo of the operator on the cluster of kubectl. It checks every step.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="scenes:\n" + "\n".join(f"  {name:<6} {scenes.about}" for name, scenes in SCENES.items()),
    )
    top.add_argument("--scenes", choices=SCENES, default="cache", help="which steps to run (%(default)s)")
    names = ", ".join(scenes.namespace for scenes in SCENES.values())
    top.add_argument("--namespace", help=f"of the Memcached; its Memcached objects are deleted first ({names})")
    top.add_argument("--sample", type=Path, default=SAMPLE, help="file with the Memcached to create (%(default)s)")
    return top
