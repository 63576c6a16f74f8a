"""A Memcached becomes pods, they answer, and there are more or fewer of them when asked for."""

import json

from demo import reading, waiting
from demo.admission import REMEDY
from demo.errors import StoryError
from demo.kubectl import typed
from demo.stage import Stage
from demo.waiting import Look

CONTAINER = "memcached"
VALUE = "hello"
TALK = (
    r'for ip in "$@"; do echo "== $ip"; exec 3<>/dev/tcp/$ip/PORT; '
    rf'printf "set greeting 0 0 {len(VALUE)}\r\n{VALUE}\r\nget greeting\r\nquit\r\n" >&3; cat <&3; done'
)
SIZES = (5, 3)


def becomes_pods(stage: Stage) -> None:
    """Apply the sample and wait until it is as declared."""
    words = stage.kubectl.here("apply", "-f", str(stage.sample))
    applied = json.loads(stage.kubectl.must([*words, "--dry-run=server", "-o", "json"]).out)
    if applied.get("kind") != "Memcached":
        raise StoryError(f"{stage.sample} must hold one Memcached")
    stage.name, stage.size = applied["metadata"]["name"], applied["spec"]["size"]
    stage.told(words)
    target = f"memcached/{stage.name}"
    stage.screen.command(typed(stage.kubectl.here("wait", target, "--for=condition=Available", "--timeout=3m")))
    seconds = stage.settle(f"Available of {target}")
    stage.screen.say(f"Available, with {stage.size} of {stage.size} pods ready, after {seconds:.1f} s.")
    stage.told(stage.kubectl.here("get", "memcacheds,deployments,services,pods"))


def every_pod_answers(stage: Stage) -> None:
    """Look the Service up in the cluster's DNS, from inside, and talk to every address."""
    memcached = stage.memcached()
    inside = stage.kubectl.here("exec", f"pod/{reading.nodes(memcached)[0]}", "-c", CONTAINER, "--")
    service = f"{stage.name}.{stage.kubectl.namespace}.svc"
    addresses = _look_up(stage, [*inside, "getent", "ahosts", service])
    stage.screen.result("\n".join(addresses))
    talk = TALK.replace("PORT", str(memcached["spec"]["containerPort"]))
    answers = stage.told([*inside, "bash", "-c", talk, "-", *addresses]).out
    fault = reading.wrong_answers(answers, addresses, VALUE)
    if fault:
        raise StoryError(fault)
    stage.screen.say(f"{service} leads to {len(addresses)} addresses; each stored the value and gave it back.")


def _look_up(stage: Stage, words: list[str]) -> list[str]:
    """The addresses behind the Service's name, once they are those of the pods: DNS servers cache for a while."""
    stage.screen.command(typed(words))
    pods = reading.pod_addresses(stage.pods(), reading.nodes(stage.memcached()))
    addresses: list[str] = []

    def look() -> Look:
        done = stage.kubectl.run(words)
        addresses[:] = reading.looked_up(done.out)
        fault = reading.unmatched(addresses, pods)
        return Look(not done.code and not fault, f"DNS: {done.complaint if done.code else fault}")

    waiting.wait(stage.screen, look, "a DNS answer with every pod", seconds=60)
    return addresses


def scales(stage: Stage) -> None:
    """Up and down, but not to nothing."""
    scale = stage.kubectl.here("scale", f"memcached/{stage.name}")
    for stage.size in SIZES:
        stage.told([*scale, f"--replicas={stage.size}"])
        seconds = stage.settle(f"a size of {stage.size}")
        stage.screen.say(f"{stage.size} pods, and status.nodes names exactly these, after {seconds:.1f} s.")
    stage.refused([*scale, "--replicas=0"], REMEDY)
