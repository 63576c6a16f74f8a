"""Which program builds an image: each is tried, the next one follows, and CONTAINER_TOOL chooses one."""

from pathlib import Path

import pytest

from cluster.errors import ClusterError
from cluster.images.build import Build, build_image, save_image
from unit.cluster.programs import FakePrograms

IMAGE = "localhost/example/op:1"
FAILS_TO_BUILD = 'test "$1" != build'
FAILS = "echo Client: 1; echo 'no daemon responds' >&2; exit 1"


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakePrograms:
    """A docker without its daemon, a podman that cannot run containers, and a buildah."""
    fake = FakePrograms(monkeypatch, tmp_path)
    for name, script in {"docker": FAILS, "podman": FAILS_TO_BUILD, "buildah": ""}.items():
        fake.add(name, script)
    return fake


def build() -> str:
    """Build an image that needs none of our base images."""
    return build_image(Build(Path("Dockerfile"), Path()), IMAGE)


def test_next_tool_follows_with_the_cause(programs: FakePrograms, capfd: pytest.CaptureFixture[str]) -> None:
    assert build() == "buildah"
    assert capfd.readouterr().err.splitlines() == [
        "docker cannot be used: no daemon responds",
        f"podman cannot build {IMAGE}: see above. Trying buildah.",
    ]


def test_image_is_read_from_the_tool_that_built_it(programs: FakePrograms, tmp_path: Path) -> None:
    """podman, which is tried first, may have an older one."""
    build()
    save_image(IMAGE, tmp_path / "image.tar")
    assert programs.calls()[-1].endswith(f"push --quiet {IMAGE} docker-archive:{tmp_path}/image.tar:{IMAGE}")


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ("podman", f"^building {IMAGE} with podman failed: see above$"),
        ("docker", "^docker cannot be used: "),
        ("nerdctl", "^CONTAINER_TOOL='nerdctl' must be docker, podman or buildah$"),
    ],
)
def test_only_the_chosen_tool_is_tried(
    tool: str, problem: str, programs: FakePrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTAINER_TOOL", tool)
    with pytest.raises(ClusterError, match=problem):
        build()
    assert {call.split()[0] for call in programs.calls()} <= {tool}


def test_ordinary_user_must_install_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    FakePrograms(monkeypatch, tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match="missing: buildah"):
        build()
    assert capfd.readouterr().err == ""
