"""Whether any answer depends on memory that nobody wrote.

python scripts/bench/poisoned.py            # all items
python scripts/bench/poisoned.py --quick    # solvers, kernels, one skin
python scripts/bench/poisoned.py step:cow   # items by name

What a C library, a compiled kernel or `np.empty` hands out holds whatever the memory
held before. Each item is computed in processes of its own whose fresh memory is filled
(MALLOC_PERTURB_ of glibc: 8 and 128), in one where nothing is filled, and in one in
which `np.empty` and `np.empty_like` hand out NaN and numbers out of range. All answers
must be the same to the bit.

JSON: poisoned_equal, items.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from measurement import Measurement

from drakebots.cli.output import print_rows

SKINS = ("skinned_leg", "beetle", "lizard", "monster", "cow")
FILLS = {"8": "8", "128": "128", "numpy": None}
"""Values of MALLOC_PERTURB_ beside none; with "numpy", NumPy's arrays are filled."""

CLOCKS = ("solve_ms", "solve_p99_ms", "solve_hz")
"""Figures that the machine's clock decides, beside all that is named `seconds`."""

Arrays = Iterator[np.ndarray | tuple[str, np.ndarray]]
ITEMS: dict[str, Callable[[], Arrays]] = {}
QUICK = ("solvers", "kkt", "blas", "energies", "geometry", "step:skinned_leg")


def item(name: str) -> Callable:
    """Registers a function as an item."""

    def register(function):
        ITEMS[name] = function
        return function

    return register


# --- items --------------------------------------------------------------------------


@item("solvers")
def solvers() -> Arrays:
    """Sparse solvers that keep more unknowns than MUMPS clears memory for."""
    from drakebots.core.errors import InvalidInput
    from drakebots.fem.assembly import SymmetricPattern
    from drakebots.fem.solver import make_solver

    n, k = 900, 600
    upper = sp.diags_array((np.full(n, 3.0), np.full(n - 1, -1.0)), offsets=(0, 1))
    upper = upper.tolil()
    upper[0, n - k :] = -0.01
    upper = upper.tocsr()
    pattern = SymmetricPattern(upper.indptr, upper.indices)
    b = np.random.default_rng(0).normal(size=(n, 2))
    for name in ("pardiso", "mumps", "scipy"):
        for kept in (None, np.arange(n - k, n)):
            for options in ({}, {"precision": "single"}):
                try:
                    solver = make_solver(pattern, kept, name=name, threads=1, **options)
                except InvalidInput:  # not installed
                    continue
                for _ in range(2):
                    solver.factor(upper.data)
                    yield solver.schur if kept is not None else np.zeros(0)
                    yield solver.solve(b)


def _structure(seed: int, most: int = 60) -> sp.coo_matrix:
    """The lower triangle of a KKT matrix [H J'; J 0] of random size and pattern."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most))
    m = int(rng.integers(0, n))
    H = sp.random(n, n, rng.uniform(0, 0.4), random_state=seed)
    J = sp.random(m, n, rng.uniform(0, 0.4), random_state=seed + 1)
    own = sp.coo_matrix((np.ones(m), (np.arange(m), rng.permutation(n)[:m])), (m, n))
    A = sp.bmat([[sp.tril(H), None], [J + own, None]]).tocoo()
    every = np.arange(n + m)
    diagonal = np.r_[1 + rng.random(n), np.zeros(m)]
    return sp.coo_matrix(
        (np.r_[A.data, diagonal], (np.r_[A.row, every], np.r_[A.col, every])),
        (n + m, n + m),
    )


@item("kkt")
def kkt() -> Arrays:
    """kkt.c and embed.c on matrices of random structure, thrice each: they learn from
    the first."""
    from symmetric_factors import SymmetricFactors

    from drakebots.trajopt.solvers import kkt

    if not kkt.available():
        return
    for seed in range(150):
        A = _structure(seed)
        # Of every other one the multipliers are embedded, as far as they can be.
        multipliers = np.flatnonzero(A.diagonal() == 0) if seed % 2 else ()
        factors = SymmetricFactors(A, embedded=multipliers)
        for scale in (1.0, 1.0, 1e3):
            report = factors.factor(scale * A.data)
            yield np.array([report.negative, report.zero, report.delayed])
            if not report.zero:
                yield factors.solve(np.ones(A.shape[0]))


@item("blas")
def blas() -> Arrays:
    """blas.c's product of one triangle."""
    import ctypes

    from drakebots.fem.solver import mumps

    library = mumps.fast_blas()
    for n, k in ((1, 1), (48, 7), (131, 60)) if library is not None else ():
        rng = np.random.default_rng(n)
        a, b = (np.asfortranarray(rng.normal(size=s)) for s in ((n, k), (k, n)))
        for uplo in (b"L", b"U"):
            c = np.asfortranarray(rng.normal(size=(n, n)))
            words = [ctypes.byref(ctypes.c_char(x)) for x in (uplo, b"N", b"N")]
            sizes = [ctypes.byref(ctypes.c_int(x)) for x in (n, k, n, k, n)]
            reals = [ctypes.byref(ctypes.c_double(x)) for x in (-1.5, 0.0)]
            at = [x.ctypes.data_as(ctypes.c_void_p) for x in (a, b, c)]
            library.dgemmt_(
                *(*words, *sizes[:2], reals[0], at[0], sizes[2], at[1], sizes[3]),
                *(reals[1], at[2], sizes[4]),
            )
            yield c


@item("energies")
def energies() -> Arrays:
    """Assembly of every material, exact and projected, by P1 and P2 tets; contact."""
    from drakebots.fem import Penalty, self_contact
    from drakebots.fem.assembly import build_model, elastic_energy, force_and_tangent
    from drakebots.fem.material import KINDS, Material
    from drakebots.fem.mesh import box_mesh

    mesh = box_mesh((1, 1, 1), (3, 3, 3))
    rng = np.random.default_rng(0)
    for kind in KINDS:
        for quadratic in ((), np.unique(mesh.regions)):
            model = build_model(mesh, Material(kind=kind), quadratic=quadratic)
            x = model.rest + 0.02 * rng.normal(size=model.rest.shape)
            for project in (False, True):
                yield from force_and_tangent(model, x, project=project)
            yield np.array(elastic_energy(model, x))
    model = build_model(mesh, Material())
    folded = model.rest * [1, 1, 0.02]
    touch = self_contact(model, Penalty(1e3), margin=0.01, reach=0.05)
    yield from vars(touch.find(folded)).values()


@item("geometry")
def geometry() -> Arrays:
    """Distances, level sets, remeshing."""
    from drakebots.design.geometry import DistanceGrid, Ellipsoid, Implicit, remesh

    body = Implicit((Ellipsoid([0, 0, 0], [0.1, 0.07, 0.05]),))
    grid = DistanceGrid.from_implicit(body)
    surface = grid.level_set()
    coarse, _ = remesh(grid, np.full(len(surface.vertices), 0.02), surface, 400)
    for each in (surface, coarse):
        yield each.vertices
        yield each.triangles


@item("control")
def control() -> Arrays:
    """Predictive control of a hopper."""
    from drakebots.robots.legged import Control, Mpc, control

    yield from _arrays(
        control(Control("monopod", duration=0.3, controller=Mpc(delay=0.0)))
    )


@item("reduced")
def reduced() -> Arrays:
    """The training of a reduced skin, and a step of it."""
    from drakebots.skin.file import load_skinned
    from drakebots.skin.reduced import reduced_stepper, train_on_random_motion

    robot = load_skinned("skinned_leg")
    skin = train_on_random_motion(robot, seeds=(2,), steps=40)
    stepper = reduced_stepper(robot, skin, 8e-3)
    result = stepper.step(stepper.start())
    yield from (result.state.q, result.state.v)


def step(name: str) -> Arrays:
    """Condensed steps of a skin by each solver, and refined ones."""
    from drakebots.core.errors import InvalidInput
    from drakebots.skin.coupled import ReducedSystem, glue_stiffness
    from drakebots.skin.file import load_skinned

    robot = load_skinned(name)
    for options in (
        {"solver": "pardiso", "precision": "double"},
        {"solver": "pardiso", "precision": "single"},
        {"solver": "mumps"},
    ):
        try:
            stepper = robot.stepper(5e-3, threads=1, **options)
        except InvalidInput:
            continue
        # Moving joints load the skin: a robot that only falls does not.
        state = stepper.start(v=np.linspace(-1, 1, stepper.plant.num_velocities()))
        yield state.skin.positions
        for _ in range(2):
            result = stepper.step(state)
            assert result.converged, result.message
            state = result.state
            yield from (state.q, state.v, state.skin.positions)
        system = ReducedSystem(stepper.equations(state), stepper.solver)
        yield system.matrix
        found = system.solve()
        yield from (found.dq, found.du, found.glue_forces)
    J = stepper.equations(state).skeleton.J
    yield glue_stiffness(robot.fem, robot.glue, J)


for _name in SKINS:
    ITEMS[f"step:{_name}"] = lambda name=_name: step(name)


def _arrays(result) -> Arrays:
    """The numbers of a result, by name; clocks are no part of an answer."""
    numbers = {name: v.values for name, v in result.data.variables.items()}
    for name, values in {**numbers, **result.metrics}.items():
        values = np.asarray(values)
        if values.dtype.kind in "fiub" and name not in CLOCKS and "seconds" not in name:
            yield name, values


@item("plan:hamr")
def plan_hamr() -> Arrays:
    """A coarse gait."""
    from drakebots.robots import hamr

    yield from _arrays(hamr.plan(hamr.GaitProblem(knots=9, frequency=10)))


@item("plan:voxels")
def plan_voxels() -> Arrays:
    """A mechanism, and its lattice as a frame."""
    from drakebots.robots import voxels

    yield from _arrays(voxels.plan(voxels.Problem([voxels.Target("foot", "x", 5e-3)])))


@item("plan:gecko")
def plan_gecko() -> Arrays:
    """A velocity space, and a course by it."""
    from drakebots.robots import gecko

    yield from _arrays(gecko.plan())
    yield from _arrays(gecko.simulate(gecko.Simulation(targets=((0.4, 0.1),))))


@item("plan:quads")
def plan_quads() -> Arrays:
    """A foot's lift: space-time program, steps with QPs, contact."""
    from drakebots.robots import quads

    problem = quads.Problem(
        model="beetle",
        motion="lift_single",
        duration=1.0,
        alternation=quads.Alternation(max_iterations=1),
    )
    yield from _arrays(quads.plan(problem))


@item("plan:legged")
def plan_legged() -> Arrays:
    """A walk by the locomotion program."""
    from drakebots.trajopt.locomotion import LocomotionProblem, Walk, plan_locomotion

    problem = LocomotionProblem("mini_cheetah", Walk(forward=0.2))
    yield from _arrays(plan_locomotion(problem))


# --- comparison ---------------------------------------------------------------------


def poison_numpy() -> None:
    """Makes `np.empty` hand out what nobody takes for an answer."""
    fills = {"f": np.nan, "c": np.nan, "i": -(2**31) + 7, "u": 2**31 - 7, "b": True}

    def filled(make):
        def empty(*args, **options):
            out = make(*args, **options)
            if (fill := fills.get(out.dtype.kind)) is not None:
                out[...] = np.asarray(fill).astype(out.dtype)
            return out

        return empty

    np.empty, np.empty_like = filled(np.empty), filled(np.empty_like)


def compute(name: str, path: str, fill: str) -> None:
    """The child process: an item's arrays, into a file."""
    if fill == "numpy":
        poison_numpy()
    arrays = {}
    for k, given in enumerate(ITEMS[name]()):
        text, array = given if isinstance(given, tuple) else ("", given)
        arrays[f"{k} {text}".strip()] = np.asarray(array).copy()
    np.savez(path, **arrays)


def answers(
    name: str, fill: str, folder: Path, python: str = sys.executable
) -> tuple[dict[str, np.ndarray], str]:
    """An item's arrays in a process of its own, and what it said if it failed."""
    path = folder / f"{name.replace(':', '_')}_{fill}.npz"
    environment = {k: v for k, v in os.environ.items() if k != "MALLOC_PERTURB_"}
    # More threads than one would add in another order.
    environment |= {f"{k}_NUM_THREADS": "1" for k in ("OMP", "OPENBLAS", "MKL")}
    # To compile programs takes longer than to solve these.
    environment["DRAKEBOTS_COMPILE"] = "0"
    if FILLS.get(fill):
        environment["MALLOC_PERTURB_"] = FILLS[fill]
    run = subprocess.run(
        [python, __file__, "--child", name, str(path), fill],
        env=environment,
        capture_output=True,
        text=True,
    )
    if run.returncode:
        return {}, f"{fill}: {(run.stderr.strip() or 'no message').splitlines()[-1]}"
    with np.load(path) as file:
        return dict(file), ""


def compare(name: str, folder: Path) -> str:
    """Differences between an item's answers; nothing where there are none."""
    plain, said = answers(name, "none", folder)
    if said:
        return said
    found = []
    for fill in FILLS:
        other, failed = answers(name, fill, folder)
        if failed or plain.keys() != other.keys():
            found.append(failed or f"{fill}: other arrays")
        elif bad := [k for k in plain if not _same(plain[k], other[k])]:
            found.append(f"{fill}: differs in {bad}")
    return "; ".join(found)


def _same(x, y):
    return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the items, prints a table and the JSON line."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["--child"]:
        return compute(*argv[1:]) or {}
    measurement = Measurement(__doc__, quick="solvers, kernels and one skin")
    measurement.add_argument(
        "items", nargs="*", metavar="ITEM", help=f"all by default: {', '.join(ITEMS)}"
    )
    args = measurement.parse_args(argv)
    names = args.items or (QUICK if args.quick else tuple(ITEMS))
    if unknown := set(names) - set(ITEMS):
        measurement.error(f"no item {sorted(unknown)[0]!r}; choose from {[*ITEMS]}")
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(os.cpu_count() or 1) as pool,
    ):
        found = dict(zip(names, pool.map(lambda n: compare(n, Path(folder)), names)))
    rows = [{"item": n, "differs": said or "nowhere"} for n, said in found.items()]
    print_rows("the same answer in any memory", rows)
    return measurement.report(
        {
            "poisoned_equal": not any(found.values()),
            "items": {name: not said for name, said in found.items()},
        }
    )


if __name__ == "__main__":
    main()
