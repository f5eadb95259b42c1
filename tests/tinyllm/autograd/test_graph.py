import pytest

from tinyllm.autograd.graph import toposort


def test_root_comes_first_and_every_node_before_its_parents():
    parents = {"loss": ["a", "b"], "a": ["w"], "b": ["a", "w"], "w": []}
    order = toposort("loss", parents.__getitem__)
    assert order[0] == "loss"
    assert sorted(order) == sorted(parents)
    assert all(order.index(node) < order.index(p) for node in parents for p in parents[node])


def test_parents_is_called_once_per_node():
    parents = {0: [1, 2], 1: [3, 3], 2: [3, 1], 3: []}
    calls = []

    def recorded(node):
        calls.append(node)
        return parents[node]

    toposort(0, recorded)
    assert sorted(calls) == [0, 1, 2, 3]


def test_nodes_are_told_apart_by_identity_not_equality():
    twins = [[], []]  # equal, unhashable
    order = toposort(root := ["root"], lambda node: twins if node is root else [])
    assert [id(node) for node in order[1:]] in ([id(t) for t in twins], [id(t) for t in twins[::-1]])


def test_parents_may_be_made_on_the_fly():
    order = toposort((3,), lambda node: [(node[0] - 1,)] if node[0] else [])
    assert order == [(3,), (2,), (1,), (0,)]


@pytest.mark.parametrize("parents", [{0: [0]}, {0: [1], 1: [2], 2: [0]}, {0: [1, 2], 1: [], 2: [3], 3: [2]}])
def test_a_cycle_is_refused(parents):
    with pytest.raises(ValueError, match="cycle"):
        toposort(0, parents.__getitem__)


def test_a_long_chain_does_not_recurse():
    length = 100_000
    nodes = list(range(length))  # one object per node
    order = toposort(nodes[0], lambda n: nodes[n + 1 : n + 2])
    assert order == nodes
