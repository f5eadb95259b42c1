import threading

import pytest

from tinyllm.autograd.mode import is_grad_enabled, no_grad
from tinyllm.autograd.tensor import Tensor


def test_grad_mode_is_on_by_default_and_no_grad_nests():
    assert is_grad_enabled()
    with no_grad():
        with no_grad():
            assert not is_grad_enabled()
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_an_exception_restores_the_mode():
    with pytest.raises(KeyError), no_grad():
        raise KeyError
    assert is_grad_enabled()


def test_other_threads_keep_recording():
    seen = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append(is_grad_enabled()))
        thread.start()
        thread.join()
        assert not is_grad_enabled()
    assert seen == [True]


def test_no_grad_in_another_thread_leaves_this_one_alone():
    entered, leave = threading.Event(), threading.Event()

    def stay_inside():
        with no_grad():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=stay_inside)
    thread.start()
    entered.wait()
    try:
        assert is_grad_enabled()
    finally:
        leave.set()
        thread.join()


def test_nothing_is_recorded_inside():
    x = Tensor([1.0, 2.0], requires_grad=True)
    with no_grad():
        y = x * 3
    assert not y.requires_grad
    with pytest.raises(RuntimeError):
        y.backward([1.0, 1.0])
    (x * y).backward([1.0, 1.0])
    assert x.grad.tolist() == [3.0, 6.0]
