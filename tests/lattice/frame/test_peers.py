"""The frame beside openseespy and PyNite, by the benchmark's own cases."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from drakebots.lattice.frame import lattice_frame
from drakebots.lattice.shape import block
from tests.helpers.scripts import load_script


@pytest.fixture(scope="module")
def bench():
    """scripts/bench/voxel.py as a module."""
    return load_script("voxel")


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
