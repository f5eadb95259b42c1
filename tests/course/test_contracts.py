"""The .pyi contracts and tinyllm name the same things, in both directions."""

import ast
from pathlib import Path

import pytest

from tests.course import variants

CONTRACTS = variants.COURSE / "contracts/py"
MODULES = sorted(path.relative_to(CONTRACTS).with_suffix("") for path in (CONTRACTS / "tinyllm").rglob("*.pyi"))

# Public in tinyllm and no promise to students: what the modules share, and what comes with Python's own protocols.
UNPROMISED = {
    "tinyllm/autograd/functional": {"dropout_factor"},
    "tinyllm/autograd/tensor": {"as_tensors", "Tensor.__array__", "Tensor.__array_priority__", "Tensor.__repr__"},
    "tinyllm/nn/module": {"Module.__setattr__", "Module.__delattr__"},
    "tinyllm/num/rng": {"Rng", "Rng.next_u32", "Rng.uniform", "Rng.uniforms", "Rng.below"},
}


def signatures(path: Path) -> dict[str, tuple[list[str], int]]:
    """Public functions and methods: parameter names in order, and how many have defaults; classes alike, empty."""
    found: dict[str, tuple[list[str], int]] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name] = ([], 0)
                visit(node.body, f"{node.name}.")
            elif isinstance(node, ast.FunctionDef) and (node.name[0] != "_" or node.name.endswith("__")):
                a = node.args
                names = [arg.arg for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs]]
                names += [f"*{arg.arg}" for arg in (a.vararg, a.kwarg) if arg is not None]
                found[prefix + node.name] = (names, len(a.defaults) + len(a.kw_defaults))

    visit(ast.parse(path.read_text()).body, "")
    return found


def test_every_module_of_tinyllm_has_a_contract() -> None:
    modules = {path.relative_to(variants.ROOT).with_suffix("") for path in (variants.ROOT / "tinyllm").rglob("*.py")}
    assert modules == set(MODULES)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_contract_and_tinyllm_agree_on_names_parameters_and_defaults(module: Path) -> None:
    promised = signatures((CONTRACTS / module).with_suffix(".pyi"))
    actual = signatures((variants.ROOT / module).with_suffix(".py"))
    for name in UNPROMISED.get(str(module), set()):
        actual.pop(name, None)
    assert promised == actual


def test_attributes_promised_by_the_unit_exist() -> None:
    from tinyllm.xfmr.mha import MultiHeadAttention

    tree = ast.parse((CONTRACTS / "tinyllm/xfmr/mha.pyi").read_text())
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef))
    names = [node.target.id for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    assert len(names) == 8
    assert all(hasattr(MultiHeadAttention(4, 2), name) for name in names)
