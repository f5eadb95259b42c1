"""The committed golden fixture is what its script makes."""

import importlib.util
from types import ModuleType

import numpy as np
import pytest

from tests.course import variants


@pytest.fixture(scope="module")
def oracle() -> ModuleType:
    path = variants.COURSE / "oracle/L5.3/mha_torch.py"
    spec = importlib.util.spec_from_file_location("mha_torch", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fixture_made_again_has_the_same_names_shapes_and_values(oracle: ModuleType) -> None:
    made = oracle.make_fixture()
    with np.load(variants.COURSE / "fixtures/L5.3/mha_torch.npz") as kept:
        assert sorted(kept.files) == sorted(made)
        for name, array in made.items():
            assert (kept[name].shape, kept[name].dtype) == (array.shape, array.dtype), name
            np.testing.assert_allclose(kept[name], array, rtol=1e-12, atol=1e-13, err_msg=name)


def test_fixture_tells_the_masks_of_its_sequences_apart() -> None:
    with np.load(variants.COURSE / "fixtures/L5.3/mha_torch.npz") as kept:
        for case in ("self", "cross"):
            mask = kept[f"{case}.mask"]
            assert mask.dtype == np.bool_
            assert not np.array_equal(mask[0], mask[1])
            assert mask.any(axis=-1).all(), "torch gives NaN for a query without keys"
