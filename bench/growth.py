"""Numbers of mutants, tests and cores arrive; what our runs cost for each leaves, with every suite run to its end."""

from itertools import cycle, islice

from bench.contenders import Took, run_ours
from bench.work import Work
from grader import plan
from grader.unit import Unit
from sandbox.docker_engine import DockerSandbox
from sandbox.records import File

TEST = """

def test_output_{number}():
    x = np.random.default_rng({number}).normal(size=(2, 3, 8))
    layer = MultiHeadAttention(8, 2, rng=PCG32({number}))
    out, weights = layer.attend(Tensor(x), Tensor(x))
    assert out.shape == (2, 3, 8) and weights.shape == (2, 2, 3, 3)
    assert np.allclose(weights.data.sum(axis=-1), 1.0)
"""
IMPORTS = """\
import numpy as np

from tinyllm.autograd.tensor import Tensor
from tinyllm.num.rng import PCG32
from tinyllm.xfmr.mha import MultiHeadAttention
"""


def suite_of(tests: int) -> tuple[File, ...]:
    text = IMPORTS + "".join(TEST.format(number=number) for number in range(tests))
    return (File("test_many.py", text.encode()),)


def cost(unit: Unit, sources: list[bytes], mutants: int, tests: int, jobs: int) -> Took:
    """One round in a container of its own; sources are used again if there are fewer than mutants."""
    variants = {f"v{number}": source for number, source in enumerate(islice(cycle(sources), mutants))}
    work = Work(variants, suite_of(tests))
    with DockerSandbox(jobs=jobs) as sandbox, sandbox.session(plan.preload(unit)) as session:
        session.prepare([plan.student_suite(unit, work.suite).folder])
        run_ours(session, unit, Work(dict(list(variants.items())[:4]), work.suite), to_the_end=True)
        return run_ours(session, unit, work, to_the_end=True)
