"""Voxel lattices: our frame FEM beside OpenSees and PyNite, and planes of motion.

python scripts/bench/voxel.py            # half a minute
python scripts/bench/voxel.py --quick    # 4 x 4 x 4 only

All solve the same block in this process, in turns: a pair of control nodes in its
middle moved by +-5 mm along z, their other motions held. Times are from node
coordinates to displacements: building, assembly, factorization, one load. Each program
runs once before the clock starts. openseespy and PyNiteFEA are needed by this benchmark
only; where one is not installed, its row says so.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from drakebots.cli.output import plain, print_table
from drakebots.lattice.frame import FactoredFrame, Frame, actuate, lattice_frame
from drakebots.lattice.pom import Control, PlanesOfMotion
from drakebots.lattice.shape import Lattice, Strut, block

STROKE = 5e-3
"""Displacement of each control node [m]."""
FEM_TARGETS = {8: 1.0, 12: 8.0}
"""Time that one load may take, by the edge of the block [s]."""
POM_TARGET = 1e6


def controls(lattice: Lattice) -> tuple[int, int]:
    """A pair of nodes in the middle of a block that an actuator along z joins."""
    nx, ny, nz = lattice.voxels.max(axis=0) + 1
    x, y, z = 2 * (nx // 2), 2 * ((ny - 1) // 2) + 1, 2 * ((nz - 1) // 2) + 1
    return lattice.node((x, y, z)), lattice.node((x, y, z + 2))


def ours(lattice: Lattice, pair: tuple[int, int]) -> np.ndarray:
    """Displacements and rotations of all nodes (N, 6) by drakebots."""
    # A fresh lattice, so that numbering its nodes is part of the time.
    frame = lattice_frame(Lattice(lattice.voxels, lattice.pitch), Strut())
    supports, load = actuate(frame, [pair], [2 * STROKE], "sym")
    return FactoredFrame(frame, supports).solve(load)[0].displacement


def opensees_module():
    """The module of openseespy; None when it is not installed or does not load."""
    wheel = find_spec("openseespylinux")
    if wheel is not None:
        # The wheel carries BLAS beside LAPACK, where the loader does not look.
        for blas in Path(wheel.origin).parent.glob("lib/libblas.so*"):
            with suppress(OSError):
                ctypes.CDLL(str(blas))
    # At the interpreter's end its library prints a line of its own, which would come
    # after the JSON object.
    if "openseespy.opensees" not in sys.modules:
        atexit.register(_silence)
    try:
        import openseespy.opensees as ops
    except (ImportError, RuntimeError):
        return None
    return ops


def _silence() -> None:
    """Sends to nowhere what libraries print after this."""
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        with suppress(OSError, ValueError):
            stream.flush()
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def opensees(frame: Frame, pair: tuple[int, int]) -> np.ndarray:
    """The same by OpenSees: elasticBeamColumn, linear.

    MUMPS with plain numbering is its fastest: at 8 x 8 x 8 it took 0.29 s, against
    0.35 s with SparseSYM, 0.45 to 0.62 s with UmfPack and 2.4 s with SuperLU.
    """
    ops = opensees_module()
    strut, z = frame.struts, frame.elements.axes[:, 2]
    ops.wipe()
    ops.model("basic", "-ndm", 3, "-ndf", 6)
    for node, p in enumerate(frame.positions.tolist()):
        ops.node(node + 1, *p)
    kinds, which = np.unique(np.round(z, 9), axis=0, return_inverse=True)
    for kind, axis in enumerate(kinds.tolist()):
        ops.geomTransf("Linear", kind + 1, *axis)
    section = (strut.area, strut.E, strut.G, strut.J, strut.I2, strut.I1)
    kind_of = (which.ravel() + 1).tolist()
    for beam, (a, b) in enumerate(frame.beams.tolist()):
        ops.element(
            "elasticBeamColumn", beam + 1, a + 1, b + 1, *section, kind_of[beam]
        )
    ops.timeSeries("Constant", 1)
    ops.pattern("Plain", 1, 1)
    for node, sign in zip(pair, (-1, 1)):
        for motion in range(6):
            ops.sp(int(node) + 1, motion + 1, sign * STROKE * (motion == 2))
    ops.constraints("Transformation")
    ops.numberer("Plain")
    ops.system("Mumps")
    ops.algorithm("Linear")
    ops.integrator("LoadControl", 1.0)
    ops.analysis("Static", "-noWarnings")
    if ops.analyze(1) != 0:
        raise RuntimeError("OpenSees did not solve it")
    found = [ops.nodeDisp(node + 1) for node in range(len(frame))]
    ops.wipe()
    return np.array(found)


def pynite(frame: Frame, pair: tuple[int, int]) -> np.ndarray:
    """The same by PyNite; square sections, so its axes of sections do not matter."""
    from Pynite import FEModel3D

    strut, model = frame.struts, FEModel3D()
    model.add_material("m", strut.E, strut.G, strut.nu, strut.rho)
    model.add_section("s", strut.area, strut.I2, strut.I1, strut.J)
    for node, p in enumerate(frame.positions.tolist()):
        model.add_node(str(node), *p)
    for beam, (a, b) in enumerate(frame.beams.tolist()):
        model.add_member(f"b{beam}", str(a), str(b), "m", "s")
    for node, sign in zip(pair, (-1, 1)):
        model.def_support(str(node), *[True] * 6)
        model.def_node_disp(str(node), "DZ", sign * STROKE)
    model.analyze_linear(sparse=True)
    names = ("DX", "DY", "DZ", "RX", "RY", "RZ")
    nodes = [model.nodes[str(node)] for node in range(len(frame))]
    (case,) = nodes[0].DX
    return np.array([[getattr(n, name)[case] for name in names] for n in nodes])


def clocked(run: Callable[[], np.ndarray], rounds: int) -> tuple[np.ndarray, list]:
    """The answer, and the wall time of each round [s]."""
    spent = []
    for _ in range(rounds):
        gc.collect()
        start = time.perf_counter()
        answer = run()
        spent.append(time.perf_counter() - start)
    return answer, spent


def difference(answer: np.ndarray, other: np.ndarray) -> float:
    """Largest difference of displacements, relative to the largest."""
    gap = np.abs(answer[:, :3] - other[:, :3]).max()
    return float(gap / np.abs(answer[:, :3]).max())


def beside_peers(edge: int, rounds: int, with_pynite: bool) -> dict:
    """Our times and those of the others on one block, in turns."""
    lattice = block(edge, edge, edge)
    frame, pair = lattice_frame(lattice, Strut()), controls(lattice)
    name = f"{edge} x {edge} x {edge}"
    has_opensees = opensees_module() is not None
    mine, theirs, peer = [], [], None
    for _ in range(rounds):
        answer, spent = clocked(lambda: ours(lattice, pair), 1)
        mine += spent
        if has_opensees:
            peer, spent = clocked(lambda: opensees(frame, pair), 1)
            theirs += spent
    rows = {f"{name}: ours [s]": float(np.median(mine))}
    if has_opensees:
        rows[f"{name}: openseespy [s]"] = float(np.median(theirs))
        rows[f"{name}: times faster than openseespy"] = float(
            np.median(np.array(theirs) / np.array(mine))
        )
        rows[f"{name}: displacement, ours - openseespy"] = difference(answer, peer)
    else:
        rows[f"{name}: openseespy"] = "not installed"
    if with_pynite and find_spec("Pynite") is not None:
        peer, spent = clocked(lambda: pynite(frame, pair), 1)
        rows[f"{name}: PyNite [s]"] = spent[0]
        rows[f"{name}: displacement, ours - PyNite"] = difference(answer, peer)
    elif with_pynite:
        rows[f"{name}: PyNite"] = "not installed"
    return rows


def further_loads(edge: int) -> float:
    """Time of a further load on a factored frame [s]."""
    lattice = block(edge, edge, edge)
    frame = lattice_frame(lattice)
    supports, load = actuate(frame, [controls(lattice)], [2 * STROKE], "sym")
    factored = FactoredFrame(frame, supports)
    loads = [load] * 8
    return clocked(lambda: factored.solve(*loads), 1)[1][0] / len(loads)


def pom_rate(edge: int) -> float:
    """Node displacements per second by planes of motion, one configuration at a time.

    Every layer across x and y of the block is driven, every node evaluated.
    """
    lattice = block(edge, edge, edge)
    x = [Control((2 * i + 1, 2 * (edge // 2), 1)) for i in range(edge)]
    y = [Control((2 * (edge // 2), 2 * i + 1, 1)) for i in range(edge)]
    model = PlanesOfMotion(lattice, x + y)
    u = np.random.default_rng(0).uniform(-STROKE, STROKE, (200, len(x) + len(y)))
    model.displacements(u[0])
    spent = clocked(lambda: [model.displacements(row) for row in u], 5)[1]
    return len(u) * len(lattice.nodes) / float(np.median(spent))


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4 x 4 x 4, one round")
    args = parser.parse_args(argv)
    edges = [4] if args.quick else [4, 8, 12]
    rounds = 1 if args.quick else 5
    beside_peers(2, 1, True)  # first calls load libraries
    rows: dict = {}
    for edge in edges:
        # PyNite takes minutes at 12 x 12 x 12.
        rows |= beside_peers(edge, rounds, with_pynite=edge <= 8)
    last = edges[-1]
    rows[f"{last} x {last} x {last}: a further load [s]"] = further_loads(last)
    middle = 4 if args.quick else 8
    rate = pom_rate(middle)
    rows["planes of motion [node displacements/s]"] = rate
    print_table("voxel lattices, +-5 mm at two nodes", rows)
    result = {}
    for edge in edges:
        if edge in (middle, 12):
            name, key = f"{edge} x {edge} x {edge}", f"fem_{edge}"
            target = FEM_TARGETS.get(edge)
            result[f"{key}_s"] = figure(rows[f"{name}: ours [s]"], "s", target)
    name, key = f"{middle} x {middle} x {middle}", f"fem_{middle}"
    if f"{name}: times faster than openseespy" in rows:
        ratio = rows[f"{name}: times faster than openseespy"]
        error = rows[f"{name}: displacement, ours - openseespy"]
        result[f"{key}_vs_openseespy_ratio"] = figure(ratio, "1", 1.0)
        result[f"{key}_displacement_error"] = figure(error, "1", 1e-9)
    result["pom_nodes_per_s"] = figure(rate, "1/s", POM_TARGET)
    print(json.dumps(plain(result)))
    return result


def figure(value: float, unit: str, target: float | None) -> dict:
    """One figure of the JSON object."""
    return {"value": value, "unit": unit, "target": target}


if __name__ == "__main__":
    main()
