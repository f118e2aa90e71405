"""Voxel lattices: our frame FEM beside OpenSees and PyNite, and planes of motion.

python scripts/bench/voxel.py            # three minutes of processor time
python scripts/bench/voxel.py --quick    # 4 x 4 x 4 only, 25 shapes

All solve the same block in this process, in turns: a pair of control nodes in its
middle moved by +-5 mm along z, their other motions held. Times are from node
coordinates to displacements: building, assembly, factorization, one load. Each program
runs once before the clock starts. openseespy and PyNiteFEA are needed by this benchmark
only; where one is not installed, its row says so.

Advice and plans are tried on random connected shapes of 2 to 60 voxels, which are not
those that the ranges in docs/evidence/voxel.md come from (`--shapes-from 0`). The
advice of `compare` is right where no node is further off than it says: in the frame
under random poses of one to three actuators. A plan has the wrong sign if it is called
a success and its target moves the wrong way. The walk's strides come from the table of
scripts/papers/voxels/voxel_spread.py, of which two rows are walked again.

JSON: advice_correct_share, planned_wrong_sign, walk_stride_mm_p10_p50_p90, fem_4_s,
pom_nodes_per_s.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from measurement import Measurement, figure
from random_lattices import grown

from drakebots.cli.output import print_table
from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.lattice.frame import FactoredFrame, Frame, actuate, lattice_frame
from drakebots.lattice.pom import (
    HOLDS,
    Control,
    ElasticPOM,
    PlanesOfMotion,
    candidates,
    compare,
    frame_motion,
    frame_response,
    place_actuators,
    without_rigid_motion,
)
from drakebots.lattice.shape import Lattice, LatticeSpec, Strut, block
from drakebots.robots.voxels import Problem, Target, plan

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


# --- advice and plans on random shapes --------------------------------------

SHAPES = 500
UNSEEN = 1000
"""First seed of the shapes that no rule and no range was taken from."""


def random_shape(seed: int) -> Lattice:
    """2 to 60 voxels within 5 x 5 x 5, in one piece."""
    return grown(seed, 2 + seed % 59)


def some_actuators(lattice: Lattice, rng) -> list[Control]:
    """One to three actuators at random places, on different planes."""
    found, places = [], candidates(lattice)
    most = rng.integers(1, 4)
    for k in rng.permutation(len(places)):
        trial = [*found, places[k]]
        with suppress(InvalidInput):
            PlanesOfMotion(lattice, trial)
            frame_response(lattice, trial)
            found = trial
        if len(found) == most:
            break
    return found


def advice_on(seeds: Sequence[int]) -> dict[str, np.ndarray]:
    """The advice and what the frame says, one entry for each shape that can move."""
    rows = []
    for seed in seeds:
        lattice, rng = random_shape(seed), np.random.default_rng(seed)
        actuators = some_actuators(lattice, rng)
        if not actuators:
            continue
        u = rng.uniform(-STROKE, STROKE, (3, len(actuators)))
        said = compare(lattice, actuators, u[0])
        planes = PlanesOfMotion(lattice, actuators).displacements(u)
        elastic = ElasticPOM(lattice, mounts=actuators).move(actuators, u).displacement
        off = np.zeros(2)
        for pose, *models in zip(u, planes, elastic):
            frame = frame_motion(lattice, actuators, pose).displacement[:, :3]
            for k, expected in enumerate(models):
                gap = without_rigid_motion(lattice, frame, expected) - expected
                most = np.linalg.norm(gap, axis=1).max() / np.abs(pose).max()
                off[k] = max(off[k], most)
        stated = said.planes_bound.error, said.elastic_bound.error
        slopes = said.planes.slope, said.elastic.slope
        rows.append([*stated, *off, *slopes, said.force, said.missed])
    names = ("planes", "elastic", "planes_off", "elastic_off", "planes_slope")
    names = (*names, "elastic_slope", "force", "missed")
    return dict(zip(names, np.array(rows).T))


def advice_rows(found: dict[str, np.ndarray]) -> dict:
    """Counts of the advice, and how far it was from the frame."""
    planes, elastic = found["planes"] <= HOLDS, found["elastic"] <= HOLDS
    # One actuator alone takes its bound up, but for rounding.
    right = found["planes_off"] <= found["planes"] * (1 + 1e-9)
    also = found["elastic_off"] <= found["elastic"] * (1 + 1e-9)
    holds = planes | elastic
    ok = np.where(planes, right, also)[holds]

    def spread(name: str) -> str:
        low, middle, high = np.percentile(found[name], (0, 50, 100))
        return f"{low:.3f} to {high:.3f}, median {middle:.3f}"

    return {
        "advice: shapes": len(holds),
        "advice: planes of motion hold": int(planes.sum()),
        "advice: the elastic model holds": int((elastic & ~planes).sum()),
        "advice: the frame": int((~holds).sum()),
        "advice: share that is right": float(ok.mean()),
        "planes miss no mechanism": int((found["missed"] == 0).sum()),
        "planes by slope alone (within 10 %)": int(
            (np.abs(found["planes_slope"] - 1) <= 0.1).sum()
        ),
        "error of planes [strokes]": spread("planes"),
        "error of the elastic model [strokes]": spread("elastic"),
        "slope of planes": spread("planes_slope"),
        "slope of the elastic model": spread("elastic_slope"),
        "force error of the elastic model": spread("force"),
    }


def moved(lattice: Lattice, actuators: Sequence[Control], u) -> np.ndarray:
    """Motions of the nodes by the frame, from the body's mean pose (N, 3) [m]."""
    motion = frame_motion(lattice, actuators, u).displacement[:, :3]
    return without_rigid_motion(lattice, motion, 0 * motion)


def plans_on(seeds: Sequence[int]) -> dict:
    """Plans of one node's motion, and what the frame says of those called a success."""
    asked = success = wrong = alone = 0
    worst = 0.0
    for seed in seeds:
        lattice, rng = random_shape(seed), np.random.default_rng(seed)
        node, axis = rng.integers(len(lattice.nodes)), int(rng.integers(3))
        target = Target(tuple(lattice.nodes[node].tolist()), "xyz"[axis], STROKE)

        asked += 1
        with suppress(NoSolution, InvalidInput):
            old = place_actuators(lattice, [target.control], [STROKE])
            got = moved(lattice, old.actuators, old.controls[0])[node, axis]
            alone += int(got <= 0)
        with suppress(NoSolution):
            data = (result := plan(Problem([target], LatticeSpec(lattice)))).data
            if not result.ok:
                continue
            places = zip(data.actuator_node.values.tolist(), data.actuator_axis.values)
            actuators = [Control(tuple(at), str(push)) for at, push in places]
            got = moved(lattice, actuators, data.control.values[1])[node, axis]
            success, wrong = success + 1, wrong + int(got <= 0)
            worst = max(worst, abs(got / STROKE - 1))
    return {
        "plans": asked,
        "plans that succeed": success,
        "plans that succeed and go the wrong way": wrong,
        "largest error of a success": worst,
        "the same by planes of motion alone: wrong way": alone,
    }


# --- the walk ---------------------------------------------------------------


def strides(again: int) -> tuple[dict, list[float]]:
    """The distribution of the table, and rows of it walked again."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "papers" / "voxels"))
    spread = import_module("voxel_spread")
    table = spread.read(spread.TABLE)
    facts = spread.facts_of(table)
    rows = {"stride p10, p50, p90 [mm a cycle]": facts["stride_mm_p10_p50_p90"]}
    rows["percentile of the measured 3.9 mm"] = facts["percentile_of_the_measured"]
    for row in table[:again]:
        new = spread.walk({name: row[name] for name in spread.UNKNOWN})["stride_mm"]
        rows[f"{row['stride_mm']} mm walked again [mm]"] = new
    return rows, facts["stride_mm_p10_p50_p90"]


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="4 x 4 x 4, one round")
    parser.add_argument(
        "--shapes-from", type=int, default=UNSEEN, help="first seed of the shapes"
    )
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
    first = args.shapes_from
    seeds = range(first, first + (25 if args.quick else SHAPES))
    rows |= (advice := advice_rows(advice_on(seeds))) | (plans := plans_on(seeds))
    walks, percentiles = strides(0 if args.quick else 2)
    rows |= walks
    print_table("voxel lattices, +-5 mm at two nodes", rows)
    result = {
        "advice_correct_share": figure(
            advice["advice: share that is right"], "1", 0.99
        ),
        "planned_wrong_sign": figure(
            plans["plans that succeed and go the wrong way"], f"of {len(seeds)}", 0
        ),
        "walk_stride_mm_p10_p50_p90": figure(percentiles, "mm", None),
    }
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
    return parser.report(result)


if __name__ == "__main__":
    main()
