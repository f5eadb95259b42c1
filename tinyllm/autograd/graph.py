"""A root and its parent function arrive; the list of nodes leaves, each node before its parents."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Node = TypeVar("Node")


def toposort(root: Node, parents: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Order everything reachable from `root`: root first, every node before its parents.

    Nodes are told apart by identity, and `parents` is called once per node. The depth-first search keeps
    its own stack, so a graph may be deeper than Python's recursion limit. ValueError on a cycle.
    """
    finished = {id(root): False}  # False while a node is on the current path
    path = [(root, iter(tuple(parents(root))))]
    order: list[Node] = []
    while path:
        node, untried = path[-1]
        for parent in untried:
            if id(parent) not in finished:
                finished[id(parent)] = False
                path.append((parent, iter(tuple(parents(parent)))))
                break
            if not finished[id(parent)]:
                raise ValueError("the graph has a cycle: a node is its own ancestor")
        else:
            path.pop()
            finished[id(node)] = True
            order.append(node)
    order.reverse()
    return order
