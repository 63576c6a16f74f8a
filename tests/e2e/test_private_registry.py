"""Images from a registry with a password, which the kubelet pulls with the secrets of docs/air-gap.md."""

import json

import pytest

from support import appservice, kube
from support.kube import kubectl
from support.memcached import IMAGE, SMALL, memcached, pods_of, wait_until_degraded, wait_until_ready
from support.registries import registry_of_node

ACCOUNT = {"puller": "pull me"}

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.nightly]


def test_pods_of_both_kinds_start_when_their_pull_secret_exists(namespace: str) -> None:
    with registry_of_node((IMAGE, appservice.IMAGE), ACCOUNT) as address:
        cache, app = (f"{address}/{image.rpartition('/')[2]}" for image in (IMAGE, appservice.IMAGE))
        secrets = [{"name": "registry"}]
        kube.apply(memcached(namespace, image=cache, size=1, resources=SMALL, imagePullSecrets=secrets))
        kube.apply(appservice.appservice(namespace, image=app, size=1, resources=SMALL))
        for image, plural, name in ((cache, "memcacheds", "cache"), (app, "appservices", "app")):
            message = wait_until_degraded(namespace, "ImageUnavailable", name, plural=plural)["message"]
            assert image in message
            assert "401 Unauthorized" in message
        (user,) = ACCOUNT
        account = [f"--docker-server={address}", f"--docker-username={user}", f"--docker-password={ACCOUNT[user]}"]
        kubectl("-n", namespace, "create", "secret", "docker-registry", "registry", *account)
        wait_until_ready(namespace)
        # An AppService has no field for the secret: its pods get that of their account when they are created.
        patch = json.dumps({"imagePullSecrets": secrets})
        kubectl("-n", namespace, "patch", "serviceaccount", "default", "-p", patch)
        kubectl("-n", namespace, "delete", "pods", "-l", "app.kubernetes.io/instance=app", "--wait=false")
        appservice.wait_until_ready(namespace)
        started = [
            pod["spec"]["containers"][0]["image"] for name in ("cache", "app") for pod in pods_of(namespace, name)
        ]
        assert sorted(started) == sorted([cache, app])
