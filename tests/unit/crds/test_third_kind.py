"""A throw-away third kind: everything outside its own files follows from its registration.

API servers accept all of it in tests/integration/test_third_kind.py.
"""

from typing import Any

import pytest
import yaml

from crds import config
from crds.__main__ import ROOT
from crds.config.component import component
from crds.config.roles import manager_role
from crds.registered import REGISTERED, registered
from support import third_kind
from support.third_kind import THIRD
from support.widget import WIDGET

READ = ["list", "watch"]
WRITE = ["create", "delete", "get", "list", "patch", "watch"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The generated files of a project with the third kind."""
    root = tmp_path_factory.mktemp("project")
    third_kind.generate(root)
    found = {str(path): text for path, text in config.files(THIRD, root).items()}
    assert found == {path: (root / path).read_text() for path in found}, "a second run changes nothing"
    return found


def rules_of(role: Any) -> dict[str, list[str]]:
    """The verbs of each resource in a role, as `group/resource`."""
    rules = [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in role["rules"]]
    found = {f"{group}/{resource}": verbs for (group,), (resource,), verbs in rules}
    assert len(found) == len(rules), "each resource is in one rule"
    return found


def test_controller_may_read_the_kind_and_write_its_children() -> None:
    rules, before = rules_of(manager_role(THIRD)), rules_of(manager_role(REGISTERED))
    assert {resource: verbs for resource, verbs in rules.items() if before.get(resource) != verbs} == {
        "test.example.com/widgets": ["get", *READ],
        "test.example.com/widgets/status": ["patch"],
        "test.example.com/widgets/finalizers": ["update"],
        "monitoring.coreos.com/servicemonitors": WRITE,
        "networking.k8s.io/ingresses": READ,
    }
    assert rules["autoscaling/horizontalpodautoscalers"] == READ
    assert rules["policy/poddisruptionbudgets"] == WRITE, "a child may also be observed"


def test_webhooks_are_called_for_every_version(files: dict[str, str]) -> None:
    configurations = list(yaml.safe_load_all(files["config/webhook/manifests.yaml"]))
    webhooks = [webhook for each in configurations for webhook in each["webhooks"] if "widget" in webhook["name"]]
    paths = {webhook["clientConfig"]["service"]["path"] for webhook in webhooks}
    assert paths == {"/mutate-test-example-com-v1-widget", "/validate-test-example-com-v1-widget"}
    versions = [rule["apiVersions"] for webhook in webhooks for rule in webhook["rules"]]
    assert versions == [["v1", "v1beta1"]] * 2


def test_policy_allows_its_children(files: dict[str, str]) -> None:
    text = files["config/admission-policies/children.yaml"]
    assert "['test.example.com/v1', 'Widget'],\n      ['test.example.com/v1beta1', 'Widget']]" in text
    assert "resources: [servicemonitors, servicemonitors/*]" in text
    assert text.count("in ['memcached', 'memcached-proxy', 'appservice', 'widget']") == 2, (
        "labels of pods, and selectors"
    )
    assert text.count("a Memcached, a MemcachedProxy, an AppService or a Widget") == 3, "a comment and two messages"
    assert "PrometheusRules or ServiceMonitors" in text


def test_component_of_memcached_leaves_it_out_too(files: dict[str, str]) -> None:
    component = yaml.safe_load(files["config/components/memcached-only/kustomization.yaml"])
    patches = {patch["target"]["name"]: yaml.safe_load(patch["patch"]) for patch in component["patches"]}
    assert patches["widgets[.]test[.]example[.]com"]["$patch"] == "delete"
    assert patches["(.*-)?widget-(admin|editor|viewer)-role"]["$patch"] == "delete"
    (webhook, *_) = (each for each in patches["(.*-)?mutating-webhook-configuration"]["webhooks"])
    assert webhook == {"name": "mappservice.app.example.com", "$patch": "delete"}
    rules = [each["value"]["resources"] for each in patches["(.*-)?manager-role"] if each["op"] == "test"]
    assert rules == [
        *(["ingresses"], ["servicemonitors"], ["widgets/finalizers"], ["widgets/status"], ["widgets"]),
        *(["appservices/finalizers"], ["appservices/status"], ["appservices"]),
    ]


def test_component_for_a_kind_whose_role_is_not_a_part_of_that_of_all_kinds_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"the role for cache[.]example[.]com alone has other rules than the role for all kinds"
    ):
        component((REGISTERED[2], REGISTERED[0]), "memcached", (ROOT / config.POLICY).read_text())


def test_kind_without_a_controller_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"Widget has no controller: add it to operator/memcached_operator/kinds.py"):
        registered((WIDGET,), ())


def test_policy_without_the_generated_parts_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"children.yaml has no text that matches .*resourceRules"):
        config.with_kinds("spec: {}\n", THIRD)
