"""Nothing of ours accumulates on a machine, whoever died."""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import docker.errors
import pytest

from sandbox import docker_engine
from sandbox.docker_engine import BOOT_LABEL, LABEL, DockerSandbox, connect, reap
from sandbox.images import LABEL as IMAGE_LABEL
from sandbox.images import remove_old_images
from sandbox.leftovers import directory_prefix, sweep_directories
from sandbox.process import ProcessSandbox

ROOT = Path(__file__).parents[2]
docker_only = pytest.mark.docker

OPENS = """
import os
from sandbox.process import ProcessSandbox
with ProcessSandbox(jobs=1).session() as session:
    print(session.environment.kind, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_directories_of_a_killed_process_are_swept_and_those_of_the_living_are_not(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    died = subprocess.run([sys.executable, "-c", OPENS], cwd=ROOT, env=environment, capture_output=True)
    assert died.returncode == -9 and died.stdout == b"process\n"
    [left] = tmp_path.iterdir()
    ours = Path(tempfile.mkdtemp(prefix=directory_prefix(), dir=tmp_path))
    other_boot = tmp_path / directory_prefix().replace("autograder-", "autograder-0")
    other_boot.mkdir()
    (tmp_path / "autograder-by-hand").mkdir()
    assert sweep_directories(tmp_path) == [left]
    assert {path.name for path in tmp_path.iterdir()} == {ours.name, other_boot.name, "autograder-by-hand"}


def test_a_session_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with ProcessSandbox(jobs=1).session():
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    client = connect(None)
    yield client
    client.close()


@pytest.fixture
def label(client: docker.DockerClient) -> Iterator[str]:
    """A label of this test alone; whatever carries it is removed in the end."""
    label = f"autograder.test.{uuid.uuid4().hex}"
    yield label
    for container in client.api.containers(all=True, filters={"label": label}):
        client.api.remove_container(container["Id"], force=True)
    for image in client.api.images(filters={"label": label}):
        client.api.remove_image(image["Id"], force=True)


def make_image(client: docker.DockerClient, label: str, name: str) -> str:
    """An empty image with the label."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        data = f"FROM scratch\nLABEL {label}=1\nLABEL name={name}\nCMD ['none']\n".encode()
        info = tarfile.TarInfo("Dockerfile")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    context.seek(0)
    image, _ = client.images.build(fileobj=context, custom_context=True, tag=f"{name}:{label[-12:]}", rm=True)
    return str(image.id)


def ids(client: docker.DockerClient, label: str) -> set[str]:
    return {image["Id"] for image in client.api.images(filters={"label": label})}


@docker_only
def test_old_images_go_but_not_the_current_one_nor_one_in_use_nor_a_young_one(
    client: docker.DockerClient, label: str
) -> None:
    current, used, old = (make_image(client, label, f"autograder-test-{name}") for name in ("current", "used", "old"))
    client.api.create_container(used, command="none", labels={label: "1"})
    assert ids(client, label) == {current, used, old}
    assert remove_old_images(client, {current}, label=label) == []  # all are young
    time.sleep(1.1)  # the engine counts whole seconds
    assert remove_old_images(client, {current}, older_seconds=0, label=label) == [old]
    assert ids(client, label) == {current, used}
    assert client.images.get(used).tags


@docker_only
def test_the_sandboxes_image_has_the_label_by_which_old_ones_are_found(
    client: docker.DockerClient, docker_sandbox: DockerSandbox
) -> None:
    [found] = [
        image
        for image in client.api.images(docker_engine.IMAGE.partition(":")[0])
        if docker_engine.IMAGE in image["RepoTags"]
    ]
    assert (found["Labels"] or {}).get(IMAGE_LABEL) == "1"


@docker_only
def test_containers_of_another_boot_go_once_they_have_ended(
    client: docker.DockerClient, docker_sandbox: DockerSandbox, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def container(*command: str) -> str:
        labels = {label: "1", LABEL: "1", BOOT_LABEL: "another boot"}
        made = client.api.create_container(
            docker_engine.IMAGE, command=list(command), entrypoint=["/bin/sh", "-c"], labels=labels
        )
        return str(made["Id"])

    never, ended, runs = container("true"), container("true"), container("sleep 60")
    client.api.start(ended)
    client.api.wait(ended)
    client.api.start(runs)
    mine = {never, ended, runs}
    assert mine & set(reap(client)) == set()  # its owner may be about to remove it
    monkeypatch.setattr(docker_engine, "FOREIGN_SECONDS", -1.0)
    gone = {
        found["Id"]
        for found in client.api.containers(all=True, filters={"label": LABEL})
        if found["Labels"].get(BOOT_LABEL) != "another boot"
    }
    real = client.api.containers

    def only_ours(**options: object) -> list[dict[str, object]]:  # leave alone what other tests run at this moment
        return [found for found in real(**options) if found["Id"] not in gone]

    monkeypatch.setattr(client.api, "containers", only_ours)
    assert set(reap(client)) & mine == {never, ended}
    assert {found["Id"] for found in real(all=True, filters={"label": label})} == {runs}


@docker_only
def test_a_sandbox_that_is_used_and_closed_leaves_no_container(client: docker.DockerClient) -> None:
    def ours() -> set[str]:
        owner = f"{docker_engine.OWNER_LABEL}={docker_engine.owner_of(os.getpid())}"
        return {found["Id"] for found in client.api.containers(all=True, filters={"label": owner})}

    before = ours()
    with DockerSandbox(client, jobs=1, pool_size=1) as sandbox, sandbox.session(), sandbox.session():
        assert len(ours() - before) >= 2
    assert ours() == before
