"""What can go wrong on our side of the sandbox. A student's failure is never one of these: it is an `Ending`.

SandboxError                 the runs could not be made or their results not fetched
├── EngineUnavailable        no Docker Engine answers here; says how to get one
├── ImageMissing             the sandbox image has not been built here; says how to build it
└── EngineFailed             the engine refused or lost a container; worth another try
"""


class SandboxError(Exception):
    """The sandbox did not do its work; nothing is known about the submission."""


class EngineUnavailable(SandboxError):
    """No Docker Engine answers."""


class ImageMissing(SandboxError):
    """The engine does not have the sandbox image."""


class EngineFailed(SandboxError):
    """The engine refused a request, or a container was lost through no doing of its runs."""
