"""The command line: `python3 -m olm COMMAND`."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from cluster.console.commands import Commands, perform
from cluster.console.progress import Progress
from cluster.public.lifecycle import choose_mode
from olm import catalogs, running
from olm.components import NAMESPACE
from olm.programs import EVERY, INSTALLATION, programs
from olm.validation import render_v1, validate

EPILOG = """\
The programs are built from tools/go/olm and tools/go/operator-sdk when a command first needs them (all: about 6 minutes
on 2 cores). OLM runs on the local cluster, which must be running, and stops with it.

environment: CLUSTER_NAME and others, see `python3 -m cluster --help`
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 for an error or a finding, 2 for wrong usage, 130 on Ctrl-C."""
    return perform(parser(), arguments, "run it again to continue")


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    top = Commands(
        "python3 -m olm",
        "The Operator Lifecycle Manager (OLM) on the local cluster, and its tools.",
        EPILOG,
    )
    command = top.add
    build = command("programs", run_programs, "Build missing programs; print their directory.")
    build.add_argument("--running", action="store_true", help="only those that run on the cluster, if it has a node")
    command("up", run_up, "Start OLM v0 on the local cluster. Safe to repeat.")
    serve = command("serve", run_serve, "Serve a catalog to OLM; run it again after a change of the catalog.")
    serve.add_argument("catalog", type=Path, metavar="CATALOG_DIR", help="a file-based catalog")
    serve.add_argument("--name", required=True, help="of the CatalogSource")
    serve.add_argument("-n", "--namespace", default=NAMESPACE, help="of the CatalogSource (default: olm)")
    checked = command("validate", run_validate, "Run every validator; exit code 1 on any error or warning.")
    checked.add_argument("bundle", type=Path, metavar="BUNDLE_DIR")
    checked.add_argument("catalog", type=Path, nargs="?", metavar="CATALOG_DIR")
    render = command("render-v1", run_render, "Print the objects that OLM v1 would apply, or its error.")
    render.add_argument("bundle", type=Path, metavar="BUNDLE_DIR")
    render.add_argument("namespace", metavar="INSTALL_NAMESPACE")
    render.add_argument("watched", nargs="*", metavar="WATCH_NAMESPACE", help="default: all namespaces")
    return top.parser


def run_programs(options: argparse.Namespace) -> None:
    """`programs`. SIGTERM, which ends a job in the background, ends the compiler as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not options.running or choose_mode() == "node":
        print(programs(INSTALLATION if options.running else EVERY))


def run_up(_: argparse.Namespace) -> None:
    """`up`."""
    progress = Progress(running.STEPS)
    running.up(progress)
    progress.say(f"OLM is ready after {progress.elapsed():.1f} s")


def run_serve(options: argparse.Namespace) -> None:
    """`serve`."""
    progress = Progress(1)
    with progress.step(f"serve {options.catalog} as {options.namespace}/{options.name}") as notes:
        fresh = catalogs.serve(options.catalog, options.name, options.namespace)
        notes.append("served" if fresh else "unchanged")


def run_validate(options: argparse.Namespace) -> int:
    """`validate`."""
    report, clean = validate(options.bundle, options.catalog)
    print(report)
    return 0 if clean else 1


def run_render(options: argparse.Namespace) -> int:
    """`render-v1`."""
    code, objects, error = render_v1(options.bundle, options.namespace, options.watched)
    sys.stdout.write(objects)
    sys.stderr.write(error)
    return code
