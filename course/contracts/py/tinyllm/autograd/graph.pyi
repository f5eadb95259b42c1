"""A node and a way to ask for its parents go in; all ancestors, children first, come out."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Node = TypeVar("Node")

def toposort(root: Node, parents: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Every node reachable from `root`, root first and each node before its parents.

    Nodes are told apart by identity and `parents` is asked once per node. No recursion. Raises ValueError on a cycle.
    """
