"""Threads of OpenBLAS and MKL around a loop of frames, and contexts that last."""

import ctypes
import gc
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from drakebots.core import threads
from drakebots.core.threads import DENSE, calm_threads, find_mkl, solver_threads
from drakebots.skin.file import load_skinned
from drakebots.trajopt.solvers import solve_exact
from tests.helpers.lowered_programs import chain


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


def test_interior_points_have_one_thread():
    """Also in CasADi's own BLAS: how sums are shared decides which optimum is found."""
    seen = []

    def look(_):
        seen.extend(threadpool_info())
        return False

    solve_exact(chain(), np.full(10, 0.3), monitor=look)
    assert any("casadi" in each["prefix"] for each in seen)
    assert {x["num_threads"] for x in seen if x["internal_api"] in DENSE} == {1}


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


@pytest.mark.skipif(find_mkl() is None, reason="no MKL")
@pytest.mark.parametrize("how", ["target", "wheel"])
def test_mkl_is_found_in_any_folder_of_the_import_path(how, tmp_path, monkeypatch):
    """As `pip install --target` leaves it, and in another environment's packages."""
    library = Path(find_mkl()._name)
    packages = tmp_path / "python" / "site-packages" if how == "wheel" else tmp_path
    place = tmp_path / "lib" / library.name
    place.parent.mkdir()
    place.symlink_to(library)
    if how == "wheel":
        record = packages / "mkl-2026.2.0.dist-info" / "RECORD"
        record.parent.mkdir(parents=True)
        record.write_text(f"../../lib/{library.name},,\n")
        (record.parent / "METADATA").write_text("Name: mkl\nVersion: 2026.2.0\n")
    for name in ("prefix", "base_prefix"):
        monkeypatch.setattr(sys, name, str(tmp_path / "nowhere"))
    for name in ("PYPARDISO_MKL_RT", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "find_library", lambda name: None)
    monkeypatch.setattr(sys, "path", [str(packages)])
    found = Path(find_mkl.__wrapped__()._name)
    assert os.path.normpath(found) == str(place)
    monkeypatch.setattr(sys, "path", [])
    assert find_mkl.__wrapped__() is None


@pytest.mark.parametrize(
    "said, number", [(None, 1), ("3", 3), ("2,1", 2), ("0", 1), ("many", 1)]
)
def test_sparse_solvers_have_the_threads_of_the_environment(monkeypatch, said, number):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert solver_threads() == number
