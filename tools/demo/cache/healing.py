"""Deleted pods and Deployments are created again."""

from demo import reading, waiting
from demo.errors import DemoError
from demo.stage import Stage
from demo.waiting import Progress


def pod_comes_back(stage: Stage) -> None:
    """Delete one pod; another replaces it."""
    pod = reading.nodes(stage.memcached())[0]
    stage.show(stage.kubectl.here("delete", "pod", pod, "--wait=false"))
    seconds = stage.wait_ready("the new pod", deleted=[pod])
    stage.screen.say(f"{stage.size} of {stage.size} pods are ready again after {seconds:.1f} s.")


def deployment_comes_back(stage: Stage) -> None:
    """Delete the Deployment; the operator creates it and its pods again."""
    before, pods = _uid(stage), reading.nodes(stage.memcached())
    if not before:
        raise DemoError(f"the Deployment {stage.name} does not exist and cannot be deleted")
    stage.show(stage.kubectl.here("delete", "deployment", stage.name))

    def check() -> Progress:
        return Progress(_uid(stage) not in ("", before), "no Deployment yet")

    created = waiting.wait(stage.screen, check, "the new Deployment")
    ready = created + stage.wait_ready("its pods", deleted=pods)
    stage.screen.say(
        f"A new Deployment exists after {created:.1f} s, and {stage.size} pods are ready after {ready:.1f} s."
    )


def _uid(stage: Stage) -> str:
    found = stage.kubectl.read("deployment", stage.name)
    return found["metadata"]["uid"] if found else ""
