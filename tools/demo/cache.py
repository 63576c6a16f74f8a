"""A Memcached of the deployed operator: admission, scaling, recovery, status."""

import shlex

from demo import reading
from demo.reading import Progress
from demo.stage import DemoError, Stage, step

NAMESPACE = "memcached-demo"
CRD = "memcacheds.cache.example.com"
OPERATOR = "app.kubernetes.io/name=memcached-operator"
WEBHOOKS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
REMEDY = "must be at least 1"


@step("The operator is running", "One active controller, one standby, two webhooks.")
def operator_runs(stage: Stage) -> None:
    check_cluster(stage)
    stage.show(f"kubectl wait deployments -A -l {OPERATOR} --for=condition=Available --timeout=50s")
    stage.show(f"kubectl get deployments -A -l {OPERATOR}")


@step("The operator is running", "Controller and webhooks are processes of this shell: simulated pods run none.")
def processes_run(stage: Stage) -> None:
    check_cluster(stage)
    stage.show("kubectl get nodes")
    stage.show(f"kubectl get {WEBHOOKS} -l {OPERATOR}")


def check_cluster(stage: Stage) -> None:
    """Raises DemoError, with the remedy, if no cluster responds or the operator is not installed."""
    nodes = stage.run("kubectl get nodes -o name", seconds=20)
    if nodes.code and "forbidden" not in nodes.err.lower():
        raise DemoError(f"no cluster responds ({nodes.complaint}); start one with `make cluster`, or set KUBECONFIG")
    if stage.run(f"kubectl get crd {CRD}").code:
        raise DemoError(f"the CustomResourceDefinition {CRD} is not installed; run `make deploy` first")


@step("Prepare a namespace", "Objects of an earlier run are deleted first.")
def prepares_namespace(stage: Stage) -> None:
    namespace = stage.read(f"kubectl get namespace {stage.namespace} --ignore-not-found")
    if namespace and namespace["status"]["phase"] == "Active":
        # In the foreground, kubectl returns when the pods are deleted too.
        stage.show(f"{stage.here} delete memcacheds --all --cascade=foreground")
        return
    if namespace:
        stage.show(f"kubectl wait namespace {stage.namespace} --for=delete --timeout=50s")
    stage.show(f"kubectl create namespace {stage.namespace}")


@step("Admission sets defaults", "A dry run stores nothing.")
def sets_defaults(stage: Stage) -> None:
    bare = "apiVersion: cache.example.com/v1\nkind: Memcached\nmetadata:\n  name: bare\n"
    dry_run = f"{stage.here} create --dry-run=server -f -"

    def responds() -> Progress:
        done = stage.run(dry_run, bare)
        return Progress("failed calling webhook" not in done.err, done.complaint)

    # Right after the deployment, the API server may not trust the webhook's certificate yet.
    stage.wait("the webhook", responds, 30)
    stage.show(f"{dry_run} -o yaml", bare)
    spec = stage.read(dry_run, bare)["spec"]
    if (spec.get("size"), spec.get("containerPort")) != (1, 11211) or not spec.get("image"):
        raise DemoError(f"admission must set size 1, containerPort 11211 and an image, but the spec is {spec}")
    stage.screen.say(f"Defaults: size {spec['size']}, containerPort {spec['containerPort']}, and the image")
    stage.screen.say(f"{spec['image']}. A later release of the operator does not change this image.")


@step("Admission denies invalid objects", "A Memcached needs at least one pod.")
def denies(stage: Stage) -> None:
    bad = "apiVersion: cache.example.com/v1\nkind: Memcached\nmetadata:\n  name: too-small\nspec:\n  size: 0\n"
    stage.show(f"{stage.here} apply -f -", bad, denied=REMEDY)
    if stage.read(f"{stage.here} get memcached too-small --ignore-not-found"):
        raise DemoError("this was denied, but the object exists")


@step("Create a Memcached", "Apply the sample and wait until it is available.")
def creates(stage: Stage) -> None:
    apply = f"{stage.here} apply -f {shlex.quote(str(stage.sample))}"
    sample = stage.read(f"{apply} --dry-run=server")
    if sample.get("kind") != "Memcached":
        raise DemoError(f"{stage.sample} must contain one Memcached")
    stage.name = sample["metadata"]["name"]
    stage.show(apply)
    stage.screen.command(f"{stage.here} wait {stage.target} --for=condition=Available --timeout=3m")
    seconds = stage.wait_ready(f"{stage.target} to be available")
    stage.screen.say(
        f"Available, with {sample['spec']['size']} of {sample['spec']['size']} pods ready, after {seconds:.1f} s."
    )
    stage.show(f"{stage.here} get memcacheds,deployments,services,pods")


@step("Every pod responds", "Found by the Service's DNS name, from inside the cluster.")
def every_pod_responds(stage: Stage) -> None:
    memcached = stage.memcached()
    names, port = reading.nodes(memcached), memcached["spec"]["containerPort"]
    addresses = sorted(pod["status"]["podIP"] for pod in stage.pods() if pod["metadata"]["name"] in names)
    inside = f"{stage.here} exec pod/{names[0]} -c memcached --"
    resolve = f"{inside} getent ahosts {stage.name}.{stage.namespace}.svc"
    stage.screen.command(resolve)

    def complete() -> Progress:
        done = stage.run(resolve)
        found = sorted({line.split()[0] for line in done.out.splitlines()})
        return Progress(found == addresses, f"DNS: {done.complaint if done.code else ', '.join(found)}")

    # DNS servers cache for a while.
    stage.wait("DNS to return every pod", complete, 60)
    stage.screen.result("\n".join(addresses))
    script = (
        f'for ip in "$@"; do echo "== $ip"; exec 3<>/dev/tcp/$ip/{port}; '
        r'printf "set greeting 0 0 5\r\nhello\r\nget greeting\r\nquit\r\n" >&3; cat <&3; done'
    )
    answers = stage.show(f"{inside} bash -c '{script}' - {' '.join(addresses)}").replace("\r", "")
    for address in addresses:
        if f"== {address}\nSTORED\nVALUE greeting 0 5\nhello\nEND\n" not in answers:
            raise DemoError(f"{address} did not return the value")
    stage.screen.say("Every address stored and returned the value.")


@step("Scale with kubectl", "Up and down, but not to zero.")
def scales(stage: Stage) -> None:
    for size in (5, 3):
        stage.show(f"{stage.here} scale {stage.target} --replicas={size}")
        seconds = stage.wait_ready(f"{size} pods")
        stage.screen.say(f"{size} pods, and status.nodes lists exactly these, after {seconds:.1f} s.")
    stage.show(f"{stage.here} scale {stage.target} --replicas=0", denied=REMEDY)


@step("Delete a pod", "Its replacement is empty: memcached is a cache.")
def pod_comes_back(stage: Stage) -> None:
    pod = reading.nodes(stage.memcached())[0]
    stage.show(f"{stage.here} delete pod {pod} --wait=false")
    seconds = stage.wait_ready("the new pod", deleted=[pod])
    stage.screen.say(f"All pods are ready again after {seconds:.1f} s.")


@step("Delete the Deployment", "The operator creates it again.")
def deployment_comes_back(stage: Stage) -> None:
    read = f"{stage.here} get deployment {stage.name} --ignore-not-found"
    before, pods = stage.read(read), reading.nodes(stage.memcached())
    stage.show(f"{stage.here} delete deployment {stage.name}")

    def created() -> Progress:
        now = stage.read(read)
        return Progress(bool(now) and now["metadata"]["uid"] != before["metadata"]["uid"], "no Deployment yet")

    seconds = stage.wait("the new Deployment", created)
    ready = seconds + stage.wait_ready("its pods", deleted=pods)
    stage.screen.say(f"A new Deployment exists after {seconds:.1f} s, and all pods are ready after {ready:.1f} s.")


@step("Read the status", "Columns for people, conditions for programs.")
def shows_status(stage: Stage) -> None:
    heading = stage.show(f"{stage.here} get {stage.target} -o wide").split("\n", 1)[0].split()
    columns = ("SIZE", "READY", "AVAILABLE", "DEGRADED", "PORT", "AGE", "MEMORY", "IMAGE", "REASON", "MESSAGE")
    if missing := [column for column in columns if column not in heading]:
        raise DemoError(f"kubectl does not show the columns {', '.join(missing)}")
    each = r'{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'
    shown = stage.show(f"{stage.here} get {stage.target} -o jsonpath='{each}'")
    types = [line.split("=")[0] for line in shown.splitlines()]
    wanted = ["Available", "Progressing", "Degraded", "Ready"]
    if types != wanted:
        raise DemoError(f"the conditions are {', '.join(types) or 'none'} instead of {', '.join(wanted)}")


STEPS = (
    operator_runs,
    prepares_namespace,
    sets_defaults,
    denies,
    creates,
    every_pod_responds,
    scales,
    pod_comes_back,
    deployment_comes_back,
    shows_status,
)
LEFT_OUT = (every_pod_responds,)
"""The steps that talk to memcached: simulated pods run no containers."""
SIMULATED_STEPS = (processes_run, *(each for each in STEPS if each not in (operator_runs, *LEFT_OUT)))


def next_steps(stage: Stage) -> str:
    """What to try next, and how to clean up."""
    return f"""\
Next steps:
  {stage.here} edit {stage.target}
  {stage.here} get memcacheds --watch
  kubectl explain memcached.spec     every field; also docs/api.md
Clean up:
  kubectl delete namespace {stage.namespace}
  make undeploy                      the operator, its CustomResourceDefinitions and every Memcached"""
