"""The command line: `python -m project COMMAND`."""

import argparse
import sys
from collections.abc import Sequence

from cluster.console.commands import Commands, perform
from project import catalogs, deployment, images, local
from project.demo import Demo
from project.environment import end_on_signals, kubectl, use_kubectl
from project.suites import branches, results

EPILOG = """\
Commands that need a cluster use that of KUBECONFIG; if it is not set, they start the project's own
(`python3 -m cluster --help`). The Makefile runs `olm`, `demo` and `run` with the Python of .venv.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 for an error, 2 for wrong usage, 130 on Ctrl-C."""
    return perform(parser(), arguments, "run it again; every command can be repeated")


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    top = Commands("python -m project", "What the Makefile's longer recipes do.", EPILOG)
    _add_deployment(top)
    _add_images(top)
    _add_programs(top)
    return top.parser


def _add_deployment(top: Commands) -> None:
    top.add("install", lambda _: deployment.install(), "Install the CRDs.")
    text = "Remove the CRDs, and with them every Memcached, MemcachedProxy and AppService."
    top.add("uninstall", lambda _: deployment.uninstall(), text)
    deploy = top.add("deploy", run_deploy, "Deploy the operator and wait until its admission webhooks respond.")
    _add_release(deploy)
    _add_for_pods(deploy)
    text = "Remove the operator and its CRDs."
    undeploy = top.add("undeploy", lambda options: deployment.undeploy(options.overlay), text)
    for sub in (deploy, undeploy):
        _add_overlay(sub)
    text = "Print the results of the test suites in build/tests."
    found = top.add("results", lambda options: results.report(options.suites), text)
    found.add_argument("suites", nargs="*", metavar="SUITE", help="a suite that must have results")
    text = "Print the branches that tests executed, and check the thresholds."
    top.add("branches", lambda _: branches.check(), text)


def _add_images(top: Commands) -> None:
    build = top.add("build", run_build, "Build both images with docker, podman or buildah.")
    _add_release(build)
    _add_build_arguments(build)
    _add_for_pods(build)
    push = top.add("push", run_push, "Push an image to its registry.")
    push.add_argument("variable", metavar="VARIABLE", help="the Makefile's variable, for messages")
    push.add_argument("image", metavar="IMAGE")
    push.add_argument("--into-cluster", action="store_true", help="load a localhost/ image into the local cluster")
    _add_for_pods(push)


def _add_programs(top: Commands) -> None:
    render = top.add("render", run_render, "Print the objects of a kustomization.")
    render.add_argument("directory", metavar="DIRECTORY")
    text = "Run a command with KUBECONFIG and kubectl."
    execute = top.add("exec", lambda options: local.execute(options.words), text)
    execute.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    controller = top.add("run", run_controller, "Run the controller in this shell, without webhooks.")
    controller.add_argument("--metrics-port", type=int, default=8383, metavar="PORT", help="on loopback (%(default)s)")
    controller.add_argument("--probes-port", type=int, default=8081, metavar="PORT", help="on loopback (%(default)s)")
    olm = top.add("olm", run_olm, "Run OLM on the local cluster and serve this tree's bundle from a catalog.")
    _add_release(olm)
    olm.add_argument("options", nargs=argparse.REMAINDER, metavar="-- OPTION", help="options of `bundle generate`")
    demo = top.add("demo", run_demo, "Prepare what the demo needs, then run it.")
    demo.add_argument("--announce", action="store_true", help="only say what will happen; needs no .venv")
    _add_release(demo)
    _add_overlay(demo)
    _add_build_arguments(demo)


def _add_release(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--image", required=True, help="the operator's image; localhost/… stays on this machine")
    sub.add_argument("--agent-image", required=True, help="the image of the agents in the pods of caches")


def _images(options: argparse.Namespace) -> images.Images:
    return images.Images(options.image, options.agent_image)


def _add_overlay(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--overlay", default="config/default", metavar="DIRECTORY", help="kustomization (%(default)s)")


def _add_for_pods(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--for-pods", action="store_true", help="do nothing where no pods can run")


def _is_useless(options: argparse.Namespace) -> bool:
    return options.for_pods and not deployment.has_pods()


def _add_build_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")


def run_deploy(options: argparse.Namespace) -> None:
    """`deploy`."""
    if not _is_useless(options):
        deployment.deploy(_images(options), options.overlay)


def run_build(options: argparse.Namespace) -> None:
    """`build`."""
    if not _is_useless(options):
        images.build(_images(options), options.build_arg)


def run_push(options: argparse.Namespace) -> None:
    """`push`."""
    if not _is_useless(options):
        images.push(options.variable, options.image, into_cluster=options.into_cluster)


def run_render(options: argparse.Namespace) -> None:
    """`render`."""
    use_kubectl()
    sys.stdout.write(kubectl("kustomize", options.directory))


def run_controller(options: argparse.Namespace) -> None:
    """`run`."""
    local.run_controller(options.metrics_port, options.probes_port)


def run_olm(options: argparse.Namespace) -> None:
    """`olm`."""
    catalogs.serve_tree(_images(options), [word for word in options.options if word != "--"])


def run_demo(options: argparse.Namespace) -> int:
    """`demo`; SIGTERM and SIGHUP end it as Ctrl-C does."""
    demo = Demo(_images(options), options.build_arg, options.overlay)
    if options.announce:
        demo.announce()
        return 0
    end_on_signals()
    return demo.run()
