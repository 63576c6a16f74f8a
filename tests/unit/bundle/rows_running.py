"""Wrong webhooks, pods, permissions and images: one thing in each bundle."""

from bundle.release import MANIFESTS
from unit.bundle import broken
from unit.bundle.broken import GOOD, Broken

MANAGER = "memcached-operator-controller-manager"
LONG = f"{'a' * 60}.cache.example.com"
SECRET = {"name": "webhook-cert", "secret": {"secretName": "memcached-operator-webhook-cert"}}
GRANT = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
ROLE = f"{MANIFESTS}/memcached-operator-memcached-viewer-role_rbac.authorization.k8s.io_v1_clusterrole.yaml"
BUDGET = f"{MANIFESTS}/memcached-operator-webhook_policy_v1_poddisruptionbudget.yaml"

WEBHOOKS = [
    Broken(
        "webhooks",
        ("deploymentName", '"webhook"', "memcached-operator-webhook"),
        broken.webhook(deploymentName="webhook"),
    ),
    Broken("webhooks", ("containerPort", "null", "443"), broken.webhook(containerPort=None)),
    Broken("webhooks", ("targetPort", '"webhook"', "9443"), broken.webhook(targetPort="webhook")),
    Broken(
        "webhooks",
        ("targetPort", "port of the pod"),
        broken.container(ports=[{"name": "webhook", "containerPort": 8443}]),
    ),
    Broken("webhooks", ("generateName", "63"), broken.webhook(generateName=LONG)),
    Broken("webhooks", ("generateName", '"mapp.com"', "three parts"), broken.webhook(generateName="mapp.com")),
    Broken(
        "webhooks",
        ("vmemcached.cache.example.com", "unique"),
        broken.webhook(generateName="vmemcached.cache.example.com"),
    ),
    Broken("webhooks", ("type", '"Mutating"', "MutatingAdmissionWebhook"), broken.webhook(type="Mutating")),
    Broken("webhooks", ("webhookPath", '"/mutate"', "served"), broken.webhook(webhookPath="/mutate")),
    Broken("webhooks", ("sideEffects", '"Some"', "None"), broken.webhook(sideEffects="Some")),
    Broken(
        "webhooks", ("admissionReviewVersions", "v1beta1"), broken.webhook(admissionReviewVersions=["v1", "v1beta1"])
    ),
    Broken("webhooks", ("timeoutSeconds", "30", "1 to 10"), broken.webhook(timeoutSeconds=30)),
    Broken("webhooks", ("timeoutSeconds", "null"), broken.webhook(timeoutSeconds=None)),
    Broken("webhooks", (".rules", "name the kinds"), broken.webhook(rules=[])),
    Broken("webhooks", ("rules.apiGroups", '"*"', "OLM refuses"), broken.rule(apiGroups=["*"])),
    Broken("webhooks", ("rules.apiGroups", "operators.coreos.com"), broken.rule(apiGroups=["operators.coreos.com"])),
    Broken("webhooks", ("rules.apiGroups", "must be groups"), broken.rule(apiGroups=["olm.operatorframework.io"])),
    Broken("webhooks", ("rules.apiGroups", "must be groups"), broken.rule(apiGroups=["admissionregistration.k8s.io"])),
    Broken("webhooks", ("conversionCRDs", "must go"), broken.webhook(conversionCRDs=["memcacheds.cache.example.com"])),
    Broken("webhooks", ("namespaceSelector", "must go"), broken.webhook(namespaceSelector={"matchLabels": {}})),
    Broken("webhooks", ("sideEffects", "null"), broken.webhook(sideEffects=None)),
    Broken("webhooks", ("admissionReviewVersions", "null"), broken.webhook(admissionReviewVersions=None)),
    Broken("webhooks", ("targetPort", "null", "9443"), broken.webhook(targetPort=None)),
    Broken("webhooks", ("rules.resources", '"*/status"', "one by one"), broken.rule(resources=["*/status"])),
    Broken(
        "webhooks",
        (".failurePolicy", "Ignore", "config/webhook/manifests.yaml"),
        broken.webhook(failurePolicy="Ignore"),
    ),
    Broken("webhooks", (".rules", "config/webhook/manifests.yaml"), broken.rule(operations=["CREATE"])),
    Broken("webhooks", ("vmemcached", "config/webhook"), broken.csv(lambda c: c["spec"]["webhookdefinitions"].pop())),
]
PODS = [
    Broken(
        "pods",
        ("deployments", "memcached-operator-webhook"),
        broken.csv(lambda c: c["spec"]["install"]["spec"]["deployments"].pop()),
    ),
    Broken("pods", ("name", "without dots"), broken.deployment(lambda d: d.update(name="memcached.webhook"))),
    Broken(
        "pods",
        ("deployments", "each once"),
        broken.csv(
            lambda c: c["spec"]["install"]["spec"]["deployments"].append(c["spec"]["install"]["spec"]["deployments"][1])
        ),
    ),
    Broken("pods", ("volumes", "webhook-cert", "OLM mounts"), broken.pod(volumes=[SECRET])),
    Broken("pods", ("volumes", "node", "emptyDir"), broken.pod(volumes=[{"name": "node", "hostPath": {"path": "/"}}])),
    Broken("pods", ("replicas: 0", "at least"), broken.deployment(lambda d: d["spec"].update(replicas=0))),
    Broken("pods", ("hostNetwork: true", "restricted"), broken.pod(hostNetwork=True)),
    Broken(
        "pods", ("containers[first]", "cpu", "asked for"), broken.pod(initContainers=[{"name": "first", "image": "x"}])
    ),
    Broken(
        "pods",
        ("env", '{"secretRef": {"name": "x"}}', "no Secret"),
        broken.container(envFrom=[{"secretRef": {"name": "x"}}]),
    ),
    Broken(
        "pods",
        ("env", "secretKeyRef", "no Secret"),
        broken.container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}]),
    ),
    Broken(
        "pods",
        ("args", "--webhook-cert-path=/elsewhere", "serving-certs"),
        broken.container(args=["--webhook-cert-path=/elsewhere"]),
    ),
    Broken("pods", ("privileged",), broken.container(securityContext={"privileged": True})),
    Broken("pods", ("runAsNonRoot",), broken.pod(securityContext={"seccompProfile": {"type": "RuntimeDefault"}})),
    Broken("pods", ("seccompProfile",), broken.pod(securityContext={"runAsNonRoot": True})),
    Broken(
        "pods", ("args", "--manage-certificates", "OLM issues"), broken.container(0, args=["--manage-certificates"])
    ),
    Broken("pods", ("env[WATCH_NAMESPACE]", "olm.targetNamespaces"), broken.container(0, env=[])),
    Broken("pods", ("resources.requests.cpu",), broken.container(resources={"requests": {"memory": "64Mi"}})),
    Broken(
        "pods", ("allowPrivilegeEscalation",), broken.container(securityContext={"capabilities": {"drop": ["ALL"]}})
    ),
    Broken("pods", ("capabilities",), broken.container(0, securityContext={"allowPrivilegeEscalation": False})),
]
PERMISSIONS = [
    Broken(
        "permissions",
        ("clusterPermissions", "under permissions"),
        broken.permission(lambda s: s.update(clusterPermissions=[{"serviceAccountName": "x", "rules": []}])),
    ),
    Broken(
        "permissions",
        ("memcached-operator-webhook", "makes no account"),
        broken.permission(lambda s: s["permissions"].pop()),
    ),
    Broken(
        "permissions",
        ("controller-manager]", "get secrets", "must go"),
        broken.permission(lambda s: s["permissions"][0]["rules"].append(GRANT)),
    ),
    Broken(
        "permissions",
        ("webhook]", "get secrets", "must go"),
        broken.permission(lambda s: s["permissions"][1]["rules"].append(GRANT)),
    ),
    Broken(
        "permissions",
        ("controller-manager]", "memcacheds", "is missing"),
        broken.permission(lambda s: s["permissions"][0]["rules"].pop(0)),
    ),
    Broken(
        "permissions",
        ("controller-manager]", "* *", "must go"),
        broken.permission(lambda s: s["permissions"].insert(0, {"serviceAccountName": MANAGER, "rules": [EVERYTHING]})),
    ),
    Broken(
        "permissions",
        ("controller-manager]: 2", "one entry"),
        broken.permission(lambda s: s["permissions"].append({"serviceAccountName": MANAGER, "rules": []})),
    ),
    Broken(
        "permissions",
        ("permissions[other]", "must go"),
        broken.permission(lambda s: s["permissions"].append({"serviceAccountName": "other", "rules": []})),
    ),
    Broken("permissions", ("webhook].serviceAccountName", "named as"), broken.pod(serviceAccountName=MANAGER)),
]
ROLES = [
    Broken("roles", (ROLE, "must be as in config/rbac"), broken.changed(ROLE, lambda r: r["rules"].append(GRANT))),
    Broken("roles", ("more", "or go"), broken.file("p.yaml", kind="ClusterRole", rules=[GRANT])),
    Broken("roles", ("memcached-viewer-role", "is missing"), {k: v for k, v in GOOD.items() if k != ROLE}),
    Broken(
        "roles",
        (ROLE, "must be as"),
        broken.changed(
            ROLE, lambda r: r["metadata"]["labels"].update({"rbac.authorization.k8s.io/aggregate-to-edit": "true"})
        ),
    ),
]
BUDGETS = [
    Broken(
        "budgets",
        (BUDGET, "maxUnavailable: 0", "let a pod go"),
        broken.changed(BUDGET, lambda b: b["spec"].update(maxUnavailable=0)),
    ),
    Broken("budgets", (BUDGET, '"0%"'), broken.changed(BUDGET, lambda b: b["spec"].update(maxUnavailable="0%"))),
    Broken(
        "budgets", (BUDGET, "minAvailable"), broken.changed(BUDGET, lambda b: b["spec"].update(minAvailable="100%"))
    ),
]
IMAGES = [
    Broken(
        "images",
        ("relatedImages", "memcached:1.6.38", "missing"),
        broken.csv(lambda c: c["spec"]["relatedImages"].pop(0)),
    ),
    Broken(
        "images",
        ("relatedImages", "nginx:1", "stand once"),
        broken.csv(lambda c: c["spec"]["relatedImages"].append({"name": "n", "image": "docker.io/library/nginx:1"})),
    ),
    Broken(
        "images",
        ("relatedImages", '""', "full reference"),
        broken.csv(lambda c: c["spec"]["relatedImages"].append({"name": "n", "image": ""})),
    ),
    Broken(
        "images",
        ("RELATED_IMAGE_", "the same"),
        broken.container(0, env=[{"name": "RELATED_IMAGE_MEMCACHED", "value": "docker.io/library/memcached:1"}]),
    ),
    Broken("images", ("containerImage", '"x:1"', "of the Deployments"), broken.annotation("containerImage", "x:1")),
]
ROWS = (*WEBHOOKS, *PODS, *PERMISSIONS, *ROLES, *BUDGETS, *IMAGES)
