"""An engine and the image in use come in; older images of the sandbox that nothing uses any more go.

They are told by their label. (docs/decisions/0138)
"""

import contextlib
import time
from collections.abc import Collection
from typing import Any

import docker  # type: ignore[import-untyped]
import docker.errors  # type: ignore[import-untyped]
import requests.exceptions

LABEL = "autograder.sandbox.image"
KEPT_SECONDS = 7 * 86_400.0  # another version of the service may still want it
ENGINE_ERRORS = (docker.errors.DockerException, requests.exceptions.RequestException, OSError)


def remove_old_images(
    client: docker.DockerClient, keep: Collection[str], *, older_seconds: float = KEPT_SECONDS, label: str = LABEL
) -> list[str]:
    """Remove the sandbox images made so long ago that no container uses, but none with an id in `keep`.

    Returns the ids of those that are gone. An engine that does not answer is left to the next time.
    """
    removed = []
    with contextlib.suppress(*ENGINE_ERRORS):
        for image in client.api.images(filters={"label": label}):
            if image["Id"] not in keep and time.time() - image["Created"] > older_seconds and _remove(client, image):
                removed.append(str(image["Id"]))
    return removed


def _remove(client: docker.DockerClient, image: dict[str, Any]) -> bool:
    """Whether it is gone; the engine refuses for one that a container uses."""
    used = client.api.containers(all=True, filters={"ancestor": image["Id"]})
    if used:  # else it would lose its names before the engine refuses
        return False
    names = [name for name in image["RepoTags"] or [] if name != "<none>:<none>"]
    try:
        for name in names or [image["Id"]]:
            client.api.remove_image(name)
    except ENGINE_ERRORS:
        return False
    return True
