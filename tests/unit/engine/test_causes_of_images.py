"""When the Events about images are read, and that they are read together with those about volumes."""

from memcached_operator.engine.events.reader import PAUSE
from memcached_operator.findings.volumes.mounts import READ_PERIOD
from memcached_operator.kube.resource import Object
from unit.builders import pod, waiting
from unit.engine.test_causes import KEY, World, run
from unit.findings.test_mounts import event, running, stuck

UNAVAILABLE: Object = {"conditions": [{"type": "Degraded", "status": "True", "reason": "ImageUnavailable"}]}
IMAGE = "example.com/memcached:1"


def backing_off(name: str) -> Object:
    """A pod whose image is pulled again later."""
    return pod(name, containerStatuses=[waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"')])


def pulled(uid: str) -> Object:
    """The Event about the attempt before."""
    of = {"involvedObject": {"uid": uid}, "message": f'Failed to pull image "{IMAGE}": no such host'}
    return {**event(), **of}


def test_all_causes_of_a_pod_are_one_list() -> None:
    async def scenario(world: World) -> None:
        obj = {**stuck(), "metadata": backing_off("a")["metadata"], "status": backing_off("a")["status"]}
        world.events = [event(uid="a"), pulled("a")]
        world.reconcile(obj)
        await world.pass_time(0)
        assert len(world.reads) == 1
        assert len(world.reconcile(obj)["a"]) == 2

    run(scenario)


def test_image_without_an_error_is_read_before_the_status_is_written_again() -> None:
    async def scenario(world: World) -> None:
        for name in ("a", "b"):  # the pods are replaced, with another image
            world.events = [pulled(name)]
            world.reconcile(backing_off(name), status=UNAVAILABLE)
            assert world.causes.delays_status(KEY)
            await world.pass_time(0)
            assert [*world.reconcile(backing_off(name), status=UNAVAILABLE)] == [name]
            assert not world.causes.delays_status(KEY)
            await world.pass_time(PAUSE)
        fields = "involvedObject.uid={},source=kubelet,type=Warning"
        assert [each for _, _, each, _ in world.reads] == [fields.format("a"), fields.format("b")]
        await world.pass_time(READ_PERIOD - PAUSE)
        assert len(world.reads) == 3
        world.reconcile(pod(), status=UNAVAILABLE)
        await world.pass_time(9 * READ_PERIOD)
        assert len(world.reads) == 3

    run(scenario)


def test_cause_is_known_while_containers_alternate_between_statuses_with_and_without_it() -> None:
    """As before Kubernetes 1.32: each container has a status with the error after an attempt."""

    async def scenario(world: World) -> None:
        def seen(*images: str) -> Object:
            statuses = [
                {**waiting("ImagePullBackOff", f'Back-off pulling image "{image}"'), "name": image, "image": image}
                for image in images
            ]
            return pod("a", containerStatuses=statuses)

        other = "example.com/other:1"
        world.events = [pulled("a"), {**pulled("a"), "message": f'Failed to pull image "{other}": no such host'}]
        world.reconcile(seen(IMAGE, other), status=UNAVAILABLE)
        await world.pass_time(0)
        for images in ((), (other,), (IMAGE,), (), (IMAGE, other)):
            await world.pass_time(1)
            assert len(world.reconcile(seen(*images), status=UNAVAILABLE)["a"]) == 2
            assert not world.causes.delays_status(KEY)
        assert len(world.reads) == 1
        await world.pass_time(READ_PERIOD)
        assert len(world.reads) == 2
        assert len(world.reconcile(seen(IMAGE, other))["a"]) == 2

    run(scenario)


def test_pod_with_another_image_is_read_at_once() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(backing_off("a"))
        await world.pass_time(0)
        await world.pass_time(PAUSE)
        (status,) = backing_off("a")["status"]["containerStatuses"]
        world.reconcile(pod("a", containerStatuses=[{**status, "image": "example.com/other:1"}]))
        await world.pass_time(0)
        assert len(world.reads) == 2

    run(scenario)


def test_status_of_an_image_with_an_error_is_not_held() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(running(), status=UNAVAILABLE)
        assert not world.causes.delays_status(KEY)
        await world.pass_time(0)
        assert world.reads == []

    run(scenario)
