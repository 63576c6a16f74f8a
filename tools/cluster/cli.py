"""The command line: `python3 -m cluster COMMAND`."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cluster import record
from cluster.binaries.builds import build_programs
from cluster.binaries.families import LINTERS, wanted
from cluster.console.commands import Commands, perform
from cluster.console.progress import Progress
from cluster.console.report import info, table
from cluster.down import down
from cluster.errors import ClusterError
from cluster.images.build import Build, build_image, load
from cluster.paths import State
from cluster.public.lifecycle import current, running
from cluster.run import supervision
from cluster.up import foreign_kubeconfig, steps, up
from cluster.versions import KUBERNETES, SUPPORTED

OTHERS = ", ".join(version[1:] for version in SUPPORTED if version != KUBERNETES)

EPILOG = f"""\
environment:
  CLUSTER        "node" (default for root on Linux) or "control-plane" (default elsewhere): API server, scheduler and
                 controllers on loopback, with a node simulated by kwok
  KUBE_VERSION   version of Kubernetes: {KUBERNETES[1:]}; in control-plane mode also
                 {OTHERS}
  CLUSTER_NAME   name of the cluster; clusters with different names can run in parallel (default: memcached-operator)
  KUBECONFIG     your own cluster: `up` starts no cluster and `down` stops none
  XDG_CACHE_HOME, XDG_STATE_HOME   directories for built programs and images, and for the clusters' files

Progress goes to standard error; the last line of `up` on standard output is `export KUBECONFIG=…`:
  eval "$(python3 -m cluster up)"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 for an error, 2 for wrong usage, 130 when interrupted."""
    return perform(parser(), arguments, "run `up` to continue or `down` to clean up")


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    top = Commands(
        "python3 -m cluster",
        "A local Kubernetes cluster, built from source and run in its own Linux namespaces.",
        EPILOG,
    )
    command = top.add
    command("up", run_up, "Build and start what is missing; wait until the cluster is ready.")
    command("down", run_down, "Stop the cluster and delete its files. Safe to repeat.")
    command("status", run_status, "Print a table of the components; exit code 0 if all are ready.")
    command("info", run_info, "Print the cluster's name, addresses and paths as JSON.")
    programs = command("bin", run_bin, "Print the directory of kubectl and kustomize, built if needed.")
    programs.add_argument("linter", nargs="?", choices=sorted(LINTERS), help="print the directory of this one")
    command("build", run_build, "Build the programs of a control plane, and start nothing.")
    logs = command("logs", run_logs, "Print a component's log.")
    stop = command("stop", run_stop, "Stop a component (SIGTERM, after 3 s SIGKILL); it stays stopped until `start`.")
    start = command("start", run_start, "Start a stopped component and wait until it is ready.")
    for sub in (logs, stop, start):
        sub.add_argument("component", metavar="COMPONENT", help="a name from `status`; the prefix kube- is optional")
    image = command("image-build", run_image_build, "Build an image with docker, podman or buildah.")
    image.add_argument("dockerfile", type=Path, metavar="DOCKERFILE")
    image.add_argument("context", type=Path, metavar="CONTEXT")
    image.add_argument("name", metavar="NAME[:TAG]")
    image.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")
    loading = command("load", run_load, "Load an image into the cluster: a local image or a docker archive.")
    loading.add_argument("image", metavar="NAME[:TAG] | ARCHIVE")
    return top.parser


def run_up(_: argparse.Namespace) -> None:
    """`up`."""
    name, state = record.cluster_name(), current()
    if given := foreign_kubeconfig(state):
        print(f"using the cluster of KUBECONFIG={given}; no cluster is started", file=sys.stderr)
        print(f"export KUBECONFIG={given}")
        return
    mode = record.choose_mode()
    version = record.choose_version(mode)
    progress = Progress(steps(mode, version))
    up(name, mode, version, progress)
    progress.say(f"cluster {name!r} ({mode}, {version}) is ready after {progress.elapsed():.1f} s")
    print(f"export KUBECONFIG={state.kubeconfig}")


def run_down(_: argparse.Namespace) -> None:
    """`down`."""
    name = record.cluster_name()
    if given := foreign_kubeconfig(current()):
        print(f"KUBECONFIG={given} is not a cluster started by this program; it is not modified", file=sys.stderr)
        return
    existed = down(name)
    print(f"cluster {name!r} is {'stopped' if existed else 'not running'}", file=sys.stderr)


def run_status(_: argparse.Namespace) -> int:
    """`status`."""
    state, plan = running()
    found = supervision.statuses(state)
    print(table(found, state))
    for each in found:
        if each.started and not each.pid and not each.requested:
            print(f"\n{each.name} has ended; its log ends with:\n{supervision.log_tail(state.log(each.name))}")
    print(f"\n{plan.name}: {plan.mode}, {plan.server}")
    return 0 if all(each.ready for each in found) else 1


def run_info(_: argparse.Namespace) -> None:
    """`info`."""
    state, plan = running()
    print(json.dumps(info(state, plan, build_programs(wanted(plan.mode, plan.version))), indent=2))


def run_bin(options: argparse.Namespace) -> None:
    """`bin`."""
    linter: str | None = options.linter
    print(build_programs([(LINTERS[linter], (linter,))] if linter else wanted(None)))


def run_build(_: argparse.Namespace) -> None:
    """`build`."""
    build_programs(wanted("control-plane", record.choose_version("control-plane")))


def component(options: argparse.Namespace, state: State) -> str:
    """The component's name; raises ClusterError that lists the known names."""
    name: str = options.component.removeprefix("kube-")
    known = [each.name for each in supervision.statuses(state)]
    if name not in known:
        raise ClusterError(f"there is no component {name!r}; components are {', '.join(known)}")
    return name


def run_logs(options: argparse.Namespace) -> None:
    """`logs`; also works for a stopped cluster, and for the supervisor."""
    log = current().log(options.component.removeprefix("kube-"))
    if not log.exists():
        known = sorted(file.stem for file in log.parent.glob("*.log"))
        raise ClusterError(f"there is no log of {options.component!r}; logs are {', '.join(known) or 'missing'}")
    sys.stdout.write(log.read_text(errors="replace"))


def run_stop(options: argparse.Namespace) -> None:
    """`stop`."""
    state, _ = running()
    name = component(options, state)
    stopped = supervision.ask(state, "stop", name)["stopped"]
    print(f"{name} {'stopped' if stopped else 'was not running'}", file=sys.stderr)


def run_start(options: argparse.Namespace) -> None:
    """`start`."""
    state, _ = running()
    name = component(options, state)
    supervision.ask(state, "start", name)
    supervision.wait_ready(state, name, supervision.READY_SECONDS)
    print(f"{name} is ready", file=sys.stderr)


def run_image_build(options: argparse.Namespace) -> None:
    """`image-build`."""
    tool = build_image(Build(options.dockerfile, options.context, options.build_arg), options.name)
    print(f"built {options.name} with {tool}", file=sys.stderr)


def run_load(options: argparse.Namespace) -> None:
    """`load`."""
    state, plan = running()
    for name in load(state, plan, options.image):
        print(f"loaded {name}", file=sys.stderr)
