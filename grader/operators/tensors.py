"""Modules, gradients and arrays of a source arrive; parts mixed up, lost gradients, wrong dtypes, views leave."""

import ast
import re
from collections.abc import Iterator

from grader.operators.operator import Operator, becomes, never
from grader.operators.source import (
    Edits,
    Function,
    Source,
    called,
    handed,
    is_check,
    of_numpy,
    own_attribute,
    parameters,
)

RATE = re.compile(r"(^|_)(dropout|drop|rate|p)($|_p$)")
NARROWER = {"float64": "float32", "float32": "float16", "int64": "int32"}
BUILT_IN = ("len", "int", "float", "bool", "list", "tuple", "range", "zip", "slice", "str", "sum", "min", "max", "set")
SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
GRADIENT = re.compile(r"(^|_)grad($|s$)|^d[a-z]$")


# -- parts of a module


def swap_attributes(source: Source) -> Iterator[Edits]:
    """One attribute of self stands where another of the same kind belongs: made by the same call, or alike in name."""
    for node in source.nodes:
        cls = source.class_of(node)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and cls is not None:
            for other in _same_kind(cls, own_attribute(node)):
                yield source.replace(node, f"self.{other}")


def _same_kind(cls: ast.ClassDef, name: str) -> list[str]:
    made = _attributes(cls)
    if name not in made:
        return []
    words = set(name.strip("_").split("_"))
    return [
        other
        for other, value in made.items()
        if other != name
        and called(value) == called(made[name])
        and (called(value) or words & set(other.strip("_").split("_")))
    ]


def _attributes(cls: ast.ClassDef) -> dict[str, ast.expr]:
    """What __init__ gives to self, in order."""
    found: dict[str, ast.expr] = {}
    for function in cls.body:
        if isinstance(function, Function) and function.name == "__init__":
            for node in ast.walk(function):
                match node:
                    case ast.Assign(targets=[ast.Attribute() as target], value=value) if own_attribute(target):
                        found[own_attribute(target)] = value
    return found


def share_part(source: Source) -> Iterator[Edits]:
    """Two parts that should be made apart are one and the same."""
    for node in source.nodes:
        cls = source.class_of(node)
        match node:
            case ast.Assign(targets=[ast.Attribute() as target], value=ast.Call() as value) if cls is not None:
                for other in _same_kind(cls, own_attribute(target)):
                    if _attributes(cls)[other].lineno < node.lineno:
                        yield source.replace(value, f"self.{other}")


def swap_locals(source: Source) -> Iterator[Edits]:
    """A local name stands where another one belongs that the same call made."""
    for node in source.nodes:
        function = source.function_of(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and function is not None:
            made = _locals(function)
            for other, call in made.items():
                if other != node.id and made.get(node.id) == call and _is_before(source, function, other, node):
                    yield source.replace(node, other)


def _locals(function: Function) -> dict[str, str]:
    """Names that are assigned what a call makes, and the last such call's name."""
    made: dict[str, str] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if called(value):
                made[name] = called(value)
    return made


def _is_before(source: Source, function: Function, name: str, node: ast.AST) -> bool:
    """Whether the name has a value where the node stands."""
    stores = (
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
    )
    return any(each.lineno < node.lineno for each in stores)  # type: ignore[attr-defined]


def unwrap_call(source: Source) -> Iterator[Edits]:
    """A step that takes one array is left out. Not numpy's and Python's own functions."""
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute() | ast.Name(), args=[argument], keywords=[]):
                known = of_numpy(node) or called(node) in BUILT_IN
                if isinstance(argument, ast.Name) and not known and not isinstance(source.parent(node), ast.Expr):
                    yield source.replace(node, source.segment(argument))
            case ast.Call(args=[ast.Name() as argument, _]) if called(node) in ("unbroadcast", "sum_to"):
                yield source.replace(node, source.segment(argument))


def without_bias(source: Source) -> Iterator[Edits]:
    """What a layer adds to zeros is taken away again: it works as if it had no bias."""
    for node in source.nodes:
        cls = source.class_of(node)
        match node:
            case ast.Call(func=ast.Attribute() as func, args=[ast.Name(id=name)], keywords=[]) if cls is not None:
                made = _attributes(cls).get(own_attribute(func))
                if isinstance(made, ast.Call) and "bias" in {keyword.arg for keyword in made.keywords}:
                    layer = source.segment(func)
                    yield source.replace(node, f"{layer}({name}) - {layer}({name} * 0)")


# -- masks and dropout


def invert_mask(source: Source) -> Iterator[Edits]:
    """True and False are exchanged in a mask that is handed on."""
    for mask in _handed_on(source):
        yield source.replace(mask, f"None if {mask.id} is None else ~{mask.id}")


def no_mask(source: Source) -> Iterator[Edits]:
    for mask in _handed_on(source):
        yield source.replace(mask, "None")


def _handed_on(source: Source) -> Iterator[ast.Name]:
    """Masks that are arguments of a call, though not of numpy's."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and not of_numpy(node):
            for value in handed(node):
                if isinstance(value, ast.Name) and "mask" in value.id:
                    yield value


def other_triangle(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and called(node) in ("tril", "triu"):
            other = "triu" if called(node) == "tril" else "tril"
            yield source.replace(node.func, source.segment(node.func)[:-4] + other)


def shift_diagonal(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        match node:
            case ast.Call(args=[argument], keywords=[]) if called(node) in ("tril", "triu"):
                for k in (-1, 1):
                    yield source.replace(argument, f"{source.segment(argument)}, {k}")


def weak_fill(source: Source) -> Iterator[Edits]:
    """What is forbidden is filled with an ordinary number instead of minus infinity."""
    for node in source.nodes:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Attribute(attr="inf")):
                for text in ("0.0", "-1.0"):
                    yield source.replace(node, text)


def negate_training(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "training" and isinstance(node.ctx, ast.Load):
            yield source.replace(node, f"(not {source.segment(node)})")


def complement_rate(source: Source) -> Iterator[Edits]:
    """What should be dropped is kept: 1 - p for p. Not in conditions."""
    for node in source.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()) if RATE.search(name):
                above = list(source.ancestors(node))
                asked = any(isinstance(each, ast.Compare) or is_check(each) for each in above)
                if not asked and not isinstance(above[0], ast.Attribute | ast.Call):
                    yield source.replace(node, f"(1 - {source.segment(node)})")


def renew_state(source: Source) -> Iterator[Edits]:
    """What __init__ makes once is made anew wherever it is used, so that it never goes on."""
    for node, value in _states(source):
        yield source.replace(node, source.segment(value))


def share_state(source: Source) -> Iterator[Edits]:
    """What every instance should make for itself is made once, by the first: all that follow go on with it."""
    for node in source.nodes:
        match node:
            case ast.Assign(targets=[ast.Attribute() as target], value=value):
                cls = source.class_of(node)
                if cls is not None and value in [state for _, state in _states(source)]:
                    kept = f"{cls.name}.__dict__.get('{own_attribute(target)}')"
                    after = f"\n{' ' * node.col_offset}{cls.name}.{own_attribute(target)} = {source.segment(target)}"
                    yield source.replace(value, f"{kept} or {source.segment(value)}{after}")


def _states(source: Source) -> Iterator[tuple[ast.Attribute, ast.expr]]:
    """Uses of attributes whose starting value needs nothing that is local to __init__."""
    for node in source.nodes:
        cls, function = source.class_of(node), source.function_of(node)
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load) or cls is None:
            continue
        value = _attributes(cls).get(own_attribute(node))
        if function is not None and function.name != "__init__" and isinstance(value, ast.Call):
            names = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
            if names <= source.module_names:
                yield node, value


# -- gradients


def detach(source: Source) -> Iterator[Edits]:
    """A step does not pass gradients on: what a module or function of tensors makes, or takes."""
    for node in source.nodes:
        match node:
            case ast.Assign(targets=[ast.Name()], value=ast.Call(func=func, args=[_, *_]) as value):
                if own_attribute(func) or source.segment(func).startswith("F."):
                    yield source.replace(value, f"{source.segment(value)}.detach()")
            case ast.Call(func=func, args=arguments) if own_attribute(func) and not _is_checking(node):
                for argument in arguments:
                    if isinstance(argument, ast.Name) and _is_tensor(source, argument):
                        yield source.replace(argument, f"{argument.id}.detach()")


def _is_checking(node: ast.Call) -> bool:
    return "check" in called(node)


def _is_tensor(source: Source, node: ast.Name) -> bool:
    function = source.function_of(node)
    return function is not None and any(
        each.arg == node.id and isinstance(each.annotation, ast.Name) and each.annotation.id == "Tensor"
        for each in parameters(function)
    )


def overwrite_gradient(source: Source) -> Iterator[Edits]:
    """A gradient that comes by several ways keeps the last one only."""
    for node in source.nodes:
        match node:
            case ast.AugAssign(op=ast.Add(), target=target, value=value) if _is_gradient(target):
                yield source.replace(node, f"{source.segment(target)} = {source.segment(value)}")
            case ast.Assign(targets=[target], value=ast.BinOp(op=ast.Add(), right=right) as value):
                if _is_gradient(target):
                    yield source.replace(value, source.segment(right))


def _is_gradient(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return bool(GRADIENT.search(name))
        case ast.Subscript(value=value):
            return _is_gradient(value)
    return False


# -- dtypes and copies


def narrow_dtype(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="np" | "numpy" as module), attr=name) if name in NARROWER:
                yield source.replace(node, f"{module}.{NARROWER[name]}")


def cast_input(source: Source) -> Iterator[Edits]:
    """What a caller gives is converted, where it should be looked at or kept as it is."""
    for node in source.nodes:
        match node:
            case ast.Call(args=[argument], keywords=[]) if of_numpy(node) and called(node) in ("asarray", "array"):
                for dtype in ("bool", "np.float16"):
                    call = f"{source.segment(node.func)}({source.segment(argument)}, dtype={dtype})"
                    yield source.replace(node, call)


def drop_cast(source: Source) -> Iterator[Edits]:
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="astype")):
                yield source.replace(node, source.operand(inner))


def drop_copy(source: Source) -> Iterator[Edits]:
    """A view where a copy is needed: the caller's array and ours are one."""
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="copy"), args=[]):
                yield source.replace(node, source.operand(inner))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy" as module), attr="array")):
                yield source.replace(node.func, f"{module}.asarray")


def rebind_data(source: Source) -> Iterator[Edits]:
    """An array is put in another's place instead of being copied into it."""
    for _, target in _copied_into(source):
        yield source.replace(target, source.segment(target.value))


def add_data(source: Source) -> Iterator[Edits]:
    """Numbers are added to those that are there instead of replacing them."""
    for node, target in _copied_into(source):
        yield source.between(target, node.value, "=", "+=")


def _copied_into(source: Source) -> Iterator[tuple[ast.Assign, ast.Subscript]]:
    """Assignments x[...] = y and x[:] = y."""
    for node in source.nodes:
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=index) as target]) if source.segment(index) in ("...", ":"):
                yield node, target


def write_into_input(source: Source) -> Iterator[Edits]:
    """A parameter's own array is changed: x += y for x = x + y."""
    for node in source.nodes:
        function = source.function_of(node)
        given = {each.arg for each in parameters(function)} if function is not None else set()
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=left), op=operator) as value):
                if name == left and name in given and type(operator) in SIGNS:
                    sign = SIGNS[type(operator)]
                    yield source.replace(node, f"{name} {sign}= {source.segment(value.right)}")


IN_CLASS = "class A:\n    def __init__(self, d, b):\n{}\n    def f(self, x):\n        return {}"
LAYERS = "        self.q_proj = L(d, bias=b)\n        self.k_proj = L(d, bias=b)"
STATE = "        self.rng = PCG(0)"


def _class(uses: str, init: str = LAYERS) -> str:
    return IN_CLASS.format(init, uses)


OPERATORS = (
    Operator(
        swap_attributes,
        "projection",
        "one part does the work of another",
        becomes(_class("self.q_proj(x)"), _class("self.k_proj(x)"))
        + becomes(
            _class("x / self.d_head", "        self.d_model = d\n        self.d_head = b"),
            _class("x / self.d_model", "        self.d_model = d\n        self.d_head = b"),
        )
        + never(_class("self.q_proj(x)", "        self.q_proj = L()\n        self.k_proj = M()"), "self.q_proj(x)")
        + never(_class("self.a", "        self.a = d\n        self.b = b")),
    ),
    Operator(
        share_part,
        "parameters",
        "two parts that should be apart are one",
        becomes(_class("x"), _class("x", "        self.q_proj = L(d, bias=b)\n        self.k_proj = self.q_proj"))
        + never(_class("x", "        self.q_proj = L()\n        self.k_proj = M()"), "self.a = L()\nself.b = L()"),
    ),
    Operator(
        swap_locals,
        "projection",
        "one intermediate result stands where another belongs",
        becomes(
            "def f(x):\n    k = L(x)\n    v = L(x)\n    return k @ v",
            "def f(x):\n    k = L(x)\n    v = L(x)\n    return v @ v",
            "def f(x):\n    k = L(x)\n    v = L(x)\n    return k @ k",
        )
        + never("def f(x):\n    k = L(x)\n    v = M(x)\n    return k @ v", "def f(x):\n    k = L(x)\n    return x"),
    ),
    Operator(
        unwrap_call,
        "projection",
        "a step is left out",
        becomes("out = self.out_proj(merged)", "out = merged")
        + becomes("g = unbroadcast(g, shape)", "g = g")
        + never("n = len(x)", "y = np.asarray(x)", "f(x, y)", "f(x)", "y = f(2)", "y = f(x.a)"),
    ),
    Operator(
        without_bias,
        "projection",
        "a bias is never added",
        becomes(_class("self.k_proj(x)"), _class("self.k_proj(x) - self.k_proj(x * 0)"))
        + never(_class("self.q_proj(x)", "        self.q_proj = L(d)"), "self.q_proj(x)", _class("self.q_proj(x + 1)")),
    ),
    Operator(
        invert_mask,
        "mask",
        "what may be read and what may not are exchanged",
        becomes("f(q, mask=mask)", "f(q, mask=None if mask is None else ~mask)")
        + becomes("self.f(x, mask)", "self.f(x, None if mask is None else ~mask)")
        + never("np.asarray(mask)", "f(x)", "mask = x"),
    ),
    Operator(
        no_mask,
        "mask",
        "a mask has no effect",
        becomes("f(q, mask=mask)", "f(q, mask=None)")
        + becomes("self.f(x, mask)", "self.f(x, None)")
        + never("np.asarray(mask)", "f(x)"),
    ),
    Operator(
        other_triangle,
        "mask",
        "the future is read and the past is hidden",
        becomes("np.tril(x)", "np.triu(x)") + becomes("np.triu(x, k=1)", "np.tril(x, k=1)") + never("tril", "f(x)"),
    ),
    Operator(
        shift_diagonal,
        "mask",
        "a position reads one too many, or not itself",
        becomes("np.tril(x)", "np.tril(x, -1)", "np.tril(x, 1)") + never("np.tril(x, 1)", "np.diag(x)"),
    ),
    Operator(
        weak_fill,
        "mask",
        "what is forbidden still has some weight",
        becomes("np.where(m, s, -np.inf)", "np.where(m, s, 0.0)", "np.where(m, s, -1.0)")
        + never("x = np.inf", "x = -1e9 * y", "raise E(-np.inf)"),
    ),
    Operator(
        negate_training,
        "dropout",
        "training and evaluation are exchanged",
        becomes("p = r if self.training else 0.0", "p = r if (not self.training) else 0.0")
        + never("self.training = True", "training"),
    ),
    Operator(
        complement_rate,
        "dropout",
        "what should be dropped is kept",
        becomes("p = self.dropout if t else 0.0", "p = (1 - self.dropout) if t else 0.0")
        + becomes("y = x / (1 - p)", "y = x / (1 - (1 - p))")
        + never("u >= p", "if not 0 <= rate < 1:\n    raise E", "F.dropout(x)", "self.dropout = d", "shape"),
    ),
    Operator(
        renew_state,
        "dropout",
        "every call starts afresh, so that all draw the same",
        becomes("PCG = 1\n" + _class("self.rng.draw(x)", STATE), "PCG = 1\n" + _class("PCG(0).draw(x)", STATE))
        + never(_class("self.rng.draw(x)", STATE), "PCG = 1\n" + _class("self.rng", "        self.rng = PCG(d)")),
    ),
    Operator(
        share_state,
        "dropout",
        "two modules draw from one stream",
        becomes(
            "PCG = 1\n" + _class("self.rng", STATE),
            "PCG = 1\n"
            + _class("self.rng", "        self.rng = A.__dict__.get('rng') or PCG(0)\n        A.rng = self.rng"),
        )
        + never(_class("self.rng", STATE), "PCG = 1\n" + _class("x", STATE)),
    ),
    Operator(
        detach,
        "gradient",
        "the output is right, but a gradient does not arrive",
        becomes("k = self.k_proj(x)", "k = self.k_proj(x).detach()")
        + becomes("x = F.exp(y)", "x = F.exp(y).detach()")
        + becomes(
            "def f(self, x: Tensor):\n    return self.g(x)", "def f(self, x: Tensor):\n    return self.g(x.detach())"
        )
        + never("y = np.exp(x)", "self.k = self.f(x)", "self._check(x)", "def f(self, x):\n    return self.g(x)"),
    ),
    Operator(
        overwrite_gradient,
        "gradient",
        "a gradient that comes by several ways keeps only the last",
        becomes("x.grad += g", "x.grad = g")
        + becomes("t.grad = t.grad + g", "t.grad = g")
        + becomes("grads[i] += a * b", "grads[i] = a * b")
        + becomes("dx += g", "dx = g")
        + never("x += g", "x.grad -= g", "total = total + g"),
    ),
    Operator(
        narrow_dtype,
        "dtype",
        "numbers lose digits on the way",
        becomes("x.astype(np.float64)", "x.astype(np.float32)")
        + becomes("np.zeros(3, np.int64)", "np.zeros(3, np.int32)")
        + never("np.float16", "x: np.float64 = y", "x.float64"),
    ),
    Operator(
        cast_input,
        "dtype",
        "what a caller gives is converted where it should not be",
        becomes("w = np.asarray(w)", "w = np.asarray(w, dtype=bool)", "w = np.asarray(w, dtype=np.float16)")
        + never("np.asarray(w, dtype=d)", "np.zeros(w)", "asarray(w)"),
    ),
    Operator(
        drop_cast,
        "dtype",
        "a result has the wrong dtype",
        becomes("(a + b).astype(d)", "(a + b)")
        + becomes("x.astype(np.float32).sum()", "x.sum()")
        + never("x.copy()", "astype(x)"),
    ),
    Operator(
        drop_copy,
        "copy",
        "an array of the caller's is kept, and changes when the caller's does",
        becomes("self.x = x.copy()", "self.x = x")
        + becomes("np.array(x, dtype=d)", "np.asarray(x, dtype=d)")
        + never("copy.copy(x)", "np.asarray(x)", "x.copy(order)"),
    ),
    Operator(
        rebind_data,
        "copy",
        "an array is replaced instead of filled, so that it is another's view or has another dtype",
        becomes("p.data[...] = w[a:b]", "p.data = w[a:b]")
        + becomes("x[:] = y", "x = y")
        + never("x[0] = y", "x = y[...]"),
    ),
    Operator(
        add_data,
        "copy",
        "numbers are added to the old ones instead of replacing them",
        becomes("p.data[...] = w", "p.data[...] += w") + never("x[0] = y", "x = y"),
    ),
    Operator(
        write_into_input,
        "copy",
        "an array of the caller's is written into",
        becomes("def f(x, y):\n    x = x + y", "def f(x, y):\n    x += y")
        + becomes("def f(x, y):\n    x = x * (y + 1)", "def f(x, y):\n    x *= y + 1")
        + never("def f(y):\n    x = x + y", "def f(x, y):\n    z = x + y", "def f(x, y):\n    x = y + x"),
    ),
)
