"""What is deleted by hand comes back."""

from demo import reading, waiting
from demo.errors import StoryError
from demo.stage import Stage
from demo.waiting import Look


def pod_comes_back(stage: Stage) -> None:
    """Delete one pod; another takes its place."""
    victim = reading.nodes(stage.memcached())[0]
    stage.told(stage.kubectl.here("delete", "pod", victim, "--wait=false"))
    seconds = stage.settle("the return of the pod", gone=[victim])
    stage.screen.say(f"{stage.size} of {stage.size} pods are ready again after {seconds:.1f} s.")


def deployment_comes_back(stage: Stage) -> None:
    """Delete the Deployment; the operator makes it anew, and with it the pods."""
    before, pods = _uid(stage), reading.nodes(stage.memcached())
    if not before:
        raise StoryError(f"the Deployment {stage.name} is not there to be deleted")
    stage.told(stage.kubectl.here("delete", "deployment", stage.name))

    def look() -> Look:
        return Look(_uid(stage) not in ("", before), "no Deployment yet")

    back = waiting.wait(stage.screen, look, "the return of the Deployment")
    ready = back + stage.settle("the return of its pods", gone=pods)
    stage.screen.say(f"The Deployment was back after {back:.1f} s, all {stage.size} pods after {ready:.1f} s.")


def _uid(stage: Stage) -> str:
    found = stage.kubectl.read("deployment", stage.name)
    return found["metadata"]["uid"] if found else ""
