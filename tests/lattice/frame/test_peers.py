"""The frame beside openseespy and PyNite, by the benchmark's own cases."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest

from drakebots.lattice.frame import lattice_frame
from drakebots.lattice.shape.lattice import block
from tests.helpers.scripts import load_script


@pytest.fixture(scope="module")
def bench():
    """scripts/bench/voxel.py as a module."""
    return load_script("bench/voxel.py")


@pytest.mark.parametrize("peer", ["opensees", "pynite"])
def test_peers_agree(bench, peer):
    """The benchmark's case, 3 x 2 x 2, every displacement."""
    there = bench.opensees_module() if peer == "opensees" else find_spec("Pynite")
    if there is None:
        pytest.skip(f"{peer} is not installed")
    lattice = block(3, 2, 2)
    pair = bench.controls(lattice)
    mine = bench.ours(lattice, pair)
    theirs = getattr(bench, peer)(lattice_frame(lattice), pair)
    assert bench.difference(mine, theirs) < 1e-9


@pytest.mark.long
def test_bench_voxel(bench, capsys):
    """Runs in its quick form; the last line is one JSON object."""
    result = bench.main(["--quick"])
    last = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert last == result
    assert all(set(row) == {"value", "unit", "target"} for row in last.values())
    assert all(np.isfinite(row["value"]).all() for row in last.values())
    if bench.opensees_module() is not None:
        assert last["fem_4_displacement_error"]["value"] < 1e-9
