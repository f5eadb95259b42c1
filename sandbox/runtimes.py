"""The runtimes that there are: a unit names one; the libraries that its runs find imported already come out.

Each is an image of its own, so that a unit's runs hold no library that the unit does not use. (docs/decisions/0215)
"""

from collections.abc import Mapping
from types import MappingProxyType

PLAIN = "plain"  # Python, numpy, pytest and hypothesis: what every runtime has
VARIABLE = "AUTOGRADER_LIBRARIES"  # tells the template what to import before anything is forked from it

LIBRARIES: Mapping[str, tuple[str, ...]] = MappingProxyType({PLAIN: (), "torch": ("torch",)})


def image_of(image: str, runtime: str) -> str:
    """The image of a runtime, where `image` is the plain one's."""
    return image if runtime == PLAIN else f"{image}-{runtime}"
