"""The scenes of the demo: their steps in order."""

from collections.abc import Callable
from dataclasses import dataclass

from demo.cache import admission, closing, healing, opening, serving
from demo.olm import installing, objects, removal, upgrading
from demo.stage import Stage

Step = tuple[str, str, Callable[[Stage], None]]
"""The title of a step, a sentence about it, and what it does."""


@dataclass(frozen=True)
class Scenes:
    """Steps that belong together, and what is printed after the last one."""

    about: str
    namespace: str
    steps: tuple[Step, ...]
    next_steps: Callable[[Stage], str]
    more_namespaces: tuple[str, ...] = ()
    """Namespaces that the steps create besides `namespace`."""


NAMESPACE: Step = ("Prepare a namespace", "Objects of an earlier run are deleted first.", opening.clean_namespace)
DEFAULTS: Step = ("Admission sets defaults", "A dry run stores nothing.", admission.sets_defaults)
DENIAL: Step = ("Admission denies invalid objects", "A Memcached needs at least one pod.", admission.denies)
CREATION: Step = ("Create a Memcached", "Apply the sample and wait until it is available.", serving.becomes_pods)
ANSWERS: Step = (
    "Every pod responds",
    "Found by the Service's DNS name, from inside the cluster.",
    serving.every_pod_answers,
)

SCENES = {
    "cache": Scenes(
        "A Memcached of the deployed operator: admission, scaling, recovery, status.",
        "memcached-demo",
        (
            ("The operator is running", "One active controller, one standby, two webhooks.", opening.operator_works),
            NAMESPACE,
            DEFAULTS,
            DENIAL,
            CREATION,
            ANSWERS,
            ("Scale with kubectl", "Up and down, but not to zero.", serving.scales),
            ("Delete a pod", "Its replacement is empty: memcached is a cache.", healing.pod_comes_back),
            ("Delete the Deployment", "The operator creates it again.", healing.deployment_comes_back),
            ("Read the status", "Columns for people, conditions for programs.", closing.shows_status),
        ),
        closing.next_steps,
    ),
    "olm": Scenes(
        "The Operator Lifecycle Manager installs, upgrades and removes the operator.",
        "memcached-olm-demo",
        (
            ("OLM reads the catalog", "It has two releases; none is installed yet.", installing.catalog_is_read),
            ("Create a Subscription", "Select the first release and approve OLM's InstallPlan.", installing.subscribes),
            ("OLM installs the release", "The phase becomes Succeeded.", installing.succeeds),
            NAMESPACE,
            DENIAL,
            DEFAULTS,
            CREATION,
            ANSWERS,
            ("Upgrade the operator", "Approve the next InstallPlan; the pods keep running.", upgrading.upgrades),
            ("Remove the operator", "Delete Subscription and release; the Memcached remains.", removal.removes),
            ("Clean up", "No deletion waits for the removed operator.", removal.cleans_up),
        ),
        removal.next_steps,
        (objects.OPERATOR_NAMESPACE,),
    ),
}
