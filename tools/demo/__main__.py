"""`python -m demo`: runs the steps of the demo up to the first one that fails."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from demo import cache
from demo.screen import Screen
from demo.stage import DemoError, Stage

SAMPLE = Path("config/samples/cache_v1_memcached.yaml")
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code: 0, 1 if a step fails, 130 on Ctrl-C."""
    options = _parser().parse_args(arguments)
    steps = cache.SIMULATED_STEPS if options.simulated else cache.STEPS
    stage = Stage(options.namespace, Screen(len(steps)), options.sample)
    try:
        for each in steps:
            with stage.screen.step(each.title, each.about):
                each.run(stage)
    except DemoError as error:
        print(f"\nStep {stage.screen.number} failed: {error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nInterrupted. To clean up, run: kubectl delete namespace {stage.namespace}", file=sys.stderr)
        return INTERRUPTED
    print(f"\nAll {len(steps)} steps passed in {stage.screen.elapsed():.1f} s.\n\n{cache.next_steps(stage)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        "python -m demo", description="A narrated demo of the operator on the cluster of kubectl. It checks every step."
    )
    top.add_argument("--namespace", default=cache.NAMESPACE, help="its Memcacheds are deleted first (%(default)s)")
    top.add_argument("--sample", type=Path, default=SAMPLE, help="file with the Memcached to create (%(default)s)")
    top.add_argument("--simulated", action="store_true", help="pods are simulated, and the operator is no pod")
    return top


if __name__ == "__main__":
    sys.exit(main())
