"""A Memcached gets its pods, they respond, and their number follows `kubectl scale`."""

import json

from demo import reading, waiting
from demo.cache.admission import REMEDY
from demo.errors import DemoError
from demo.kubectl import typed
from demo.stage import Stage
from demo.waiting import Progress

CONTAINER = "memcached"
VALUE = "hello"
SCRIPT = (
    r'for ip in "$@"; do echo "== $ip"; exec 3<>/dev/tcp/$ip/PORT; '
    rf'printf "set greeting 0 0 {len(VALUE)}\r\n{VALUE}\r\nget greeting\r\nquit\r\n" >&3; cat <&3; done'
)
SIZES = (5, 3)


def becomes_pods(stage: Stage) -> None:
    """Apply the sample and wait until it is available."""
    words = stage.kubectl.here("apply", "-f", str(stage.sample))
    applied = json.loads(stage.kubectl.must([*words, "--dry-run=server", "-o", "json"]).out)
    if applied.get("kind") != "Memcached":
        raise DemoError(f"{stage.sample} must contain one Memcached")
    stage.name, stage.size = applied["metadata"]["name"], applied["spec"]["size"]
    stage.show(words)
    target = f"memcached/{stage.name}"
    stage.screen.command(typed(stage.kubectl.here("wait", target, "--for=condition=Available", "--timeout=3m")))
    seconds = stage.wait_ready(f"{target} to be available")
    stage.screen.say(f"Available, with {stage.size} of {stage.size} pods ready, after {seconds:.1f} s.")
    stage.show(stage.kubectl.here("get", "memcacheds,deployments,services,pods"))


def every_pod_answers(stage: Stage) -> None:
    """Resolve the Service's name in the cluster, then store and read a value at every address."""
    memcached = stage.memcached()
    inside = stage.kubectl.here("exec", f"pod/{reading.nodes(memcached)[0]}", "-c", CONTAINER, "--")
    service = f"{stage.name}.{stage.kubectl.namespace}.svc"
    addresses = _resolve(stage, [*inside, "getent", "ahosts", service])
    stage.screen.result("\n".join(addresses))
    script = SCRIPT.replace("PORT", str(memcached["spec"]["containerPort"]))
    answers = stage.show([*inside, "bash", "-c", script, "-", *addresses]).out
    if problem := reading.wrong_answers(answers, addresses, VALUE):
        raise DemoError(problem)
    stage.screen.say(f"Every address of {service} stored and returned the value.")


def _resolve(stage: Stage, words: list[str]) -> list[str]:
    """The addresses of the Service's name, once they are those of the pods: DNS servers cache for a while."""
    stage.screen.command(typed(words))
    pods = reading.pod_addresses(stage.pods(), reading.nodes(stage.memcached()))
    addresses: list[str] = []

    def check() -> Progress:
        done = stage.kubectl.run(words)
        addresses[:] = reading.resolved(done.out)
        difference = reading.mismatch(addresses, pods)
        return Progress(not done.code and not difference, f"DNS: {done.complaint if done.code else difference}")

    waiting.wait(stage.screen, check, "DNS to return every pod", seconds=60)
    return addresses


def scales(stage: Stage) -> None:
    """Up and down, but not to zero."""
    scale = stage.kubectl.here("scale", f"memcached/{stage.name}")
    for stage.size in SIZES:
        stage.show([*scale, f"--replicas={stage.size}"])
        seconds = stage.wait_ready(f"{stage.size} pods")
        stage.screen.say(f"{stage.size} pods, and status.nodes lists exactly these, after {seconds:.1f} s.")
    stage.show_denied([*scale, "--replicas=0"], REMEDY)
