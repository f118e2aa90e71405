"""Threads of OpenBLAS and MKL around a loop of frames, and contexts that last."""

import ctypes
import gc

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from drakebots.core.threads import DENSE, calm_threads, find_mkl
from drakebots.skin.file.robot import load_skinned


def dense_threads():
    return [x["num_threads"] for x in threadpool_info() if x["internal_api"] in DENSE]


def spins():
    """Blocktimes of Intel's OpenMP [ms]."""
    return [
        ctypes.CDLL(x["filepath"]).kmp_get_blocktime()
        for x in threadpool_info()
        if x["prefix"] == "libiomp"
    ]


def test_dense_algebra_gets_one_thread_and_its_own_back():
    """Also where the loop ends by an exception."""
    libraries = ThreadpoolController().select(internal_api=list(DENSE))
    with libraries.limit(limits=2):
        before = dense_threads()
        assert set(before) == {2}
        with pytest.raises(RuntimeError), calm_threads():
            assert set(dense_threads()) == {1}
            raise RuntimeError
        assert dense_threads() == before


@pytest.mark.skipif(find_mkl() is None, reason="no MKL")
def test_mkl_keeps_its_threads_and_stops_spinning():
    mkl = find_mkl()
    before = mkl.MKL_Get_Max_Threads()
    mkl.MKL_Set_Num_Threads(2)
    try:
        waiting = spins()
        with calm_threads():
            assert mkl.MKL_Get_Max_Threads() == 2
            assert spins() and not any(spins())
        assert mkl.MKL_Get_Max_Threads() == 2
        # Only what was there before is put back.
        assert spins()[: len(waiting)] == waiting
    finally:
        mkl.MKL_Set_Num_Threads(before)


def test_a_stepper_outlives_its_robot():
    stepper = load_skinned("skinned_leg").stepper(5e-3, threads=1)
    gc.collect()
    result = stepper.step(stepper.start())
    assert result.converged and np.isfinite(result.state.q).all()
