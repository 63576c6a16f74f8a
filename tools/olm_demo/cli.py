"""The command line, and the order of the story."""

import argparse
from collections.abc import Sequence

import demo.cli
from demo import admission, opening, serving
from demo.cli import Steps, perform
from demo.kubectl import Kubectl
from demo.screen import Screen
from demo.stage import Stage
from olm_demo import installing, leaving, upgrading
from olm_demo.objects import CATALOG_NAMESPACE, OPERATOR_NAMESPACE, PACKAGE, RELEASES

NAMESPACE = "memcached-olm-demo"

STEPS: Steps = (
    ("OLM has our catalogue", "Two releases are in it, and nothing is installed yet.", installing.catalogue_is_read),
    ("A Subscription", "We ask for the first release, and approve what OLM plans.", installing.subscribes),
    ("OLM installs it", "It has said so when the release is Succeeded.", installing.succeeds),
    ("A namespace for the story", "What an earlier run left goes first.", opening.clean_namespace),
    ("Admission refuses what cannot work", "By OLM's certificate: nobody issued another one.", admission.refuses),
    ("Admission fills in what is missing", "A dry run: shown, not stored.", admission.fills_in),
    ("A Memcached becomes memcached", "Apply the sample, and wait.", serving.becomes_pods),
    ("Every pod answers", "Found through the Service's DNS name, from inside the cluster.", serving.every_pod_answers),
    ("The operator is upgraded", "Approve the next plan; the cache must not notice.", upgrading.upgrades),
    ("The operator is removed", "Subscription and release go; the cache stays.", leaving.leaves),
    ("What is left can be deleted", "Nothing waits for an operator that is gone.", leaving.cleans_up),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell the story; returns the exit code: 0, 1 where something is not as told, 130 when interrupted."""
    options = parser().parse_args(arguments)
    if options.releases:
        print(*RELEASES)
        return 0
    stage = Stage(Kubectl(options.namespace), Screen(len(STEPS)), options.sample)
    clean_up = f"kubectl delete namespace {options.namespace} {OPERATOR_NAMESPACE}"
    return perform(stage, STEPS, farewell, clean_up)


def farewell() -> str:
    """How to go on, and how to clean up."""
    lines = (
        "Go on:",
        "  docs/install.md                    installing on a cluster of yours, with OLM and without",
        f"  kubectl -n {CATALOG_NAMESPACE} get catalogsource {PACKAGE}",
        "Clean up:",
        "  make uninstall                     the CustomResourceDefinitions: OLM leaves them for the caches' sake",
        "  make cluster-down                  the cluster itself, and OLM with it",
    )
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    about = "The story of the operator through OLM, on the cluster of kubectl."
    top = demo.cli.parser("python -m olm_demo", about, NAMESPACE)
    top.add_argument("--releases", action="store_true", help="only print which releases the catalogue must have")
    return top
