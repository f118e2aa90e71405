"""Our condensed step alone: its cost, its parts, other routes, its memory.

A module without a command: `scripts/bench/skin.py` prints what it measures.
"""

from __future__ import annotations

import gc
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.linalg import block_diag
from skin_hinge import ARM, BASE, build_plant, silicone_hinge
from skin_paper_systems import solve_multipliers, solve_right_sides

from drakebots.fem.assembly import build_model
from drakebots.fem.solver import make_solver
from drakebots.skin.coupled import (
    CoupledStepper,
    ReducedSystem,
    glue_vertices,
)

GLUE, PATCHES = 140, 20


def frame_stepper(vertices: int, threads: int) -> CoupledStepper:
    """A stepper with 140 glued vertices at the ends and 20 patches between."""
    hinge = silicone_hinge(vertices)
    plant, diagram = build_plant(hinge)
    root = diagram.CreateDefaultContext()
    context = plant.GetMyMutableContextFromRoot(root)
    points = hinge.mesh.vertices
    order = np.argsort(points[:, 2], kind="stable")
    on = {BASE: order[: GLUE // 2], ARM: order[-GLUE // 2 :]}
    glue = glue_vertices(points, plant, context, on)
    middle = order[len(order) // 2 :]
    contacts = middle[:: max(1, len(middle) // 3 // PATCHES)][:PATCHES]
    return CoupledStepper(
        plant,
        build_model(hinge.mesh, hinge.material),
        glue,
        hinge.dt,
        contacts=contacts,
        context=context,
        threads=threads,
        precision="double",
    )


def clocked(run: Callable, rounds: int) -> np.ndarray:
    """Wall seconds of each run, a first one not counted."""
    spent = []
    for _ in range(rounds + 1):
        gc.collect()
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return np.array(spent[1:])


def moving(stepper: CoupledStepper):
    """A state a few steps into a motion."""
    state = stepper.start()
    for _ in range(3):
        result = stepper.step(state, [0.5])
        if not result.converged:
            raise RuntimeError(result.message)
        state = result.state
    return state


def unit_loads(system: ReducedSystem) -> np.ndarray:
    """Right-hand sides of unit torques and unit contact forces (nv + 3 p, m + 3 p)."""
    return block_diag(system.equations.skeleton.B, np.eye(system.contacts))


def whole_frame(stepper: CoupledStepper, state, parts: dict | None = None):
    """Assembly, factor with Schur complement, maps, displacement of all nodes."""
    at = [time.perf_counter()]
    equations = stepper.equations(state)
    at.append(time.perf_counter())
    system = ReducedSystem(equations, stepper.solver)
    at.append(time.perf_counter())
    system.back(unit_loads(system))
    at.append(time.perf_counter())
    found = system.solve([0.5])
    at.append(time.perf_counter())
    for name, spent in zip(("assembly", "factor", "maps", "expand"), np.diff(at)):
        if parts is not None:
            parts.setdefault(name, []).append(float(spent))
    return found


def frame_cost(vertices: int, threads: int, rounds: int) -> tuple[np.ndarray, dict]:
    """Seconds of each condensed step, and the medians of its parts [ms]."""
    stepper, parts = frame_stepper(vertices, threads), {}
    state = moving(stepper)
    seconds = clocked(lambda: whole_frame(stepper, state, parts), rounds)
    return seconds, {k: 1e3 * float(np.median(v[1:])) for k, v in parts.items()}


def routes(vertices: int, threads: int, rounds: int) -> dict[str, float]:
    """The same step by eq. (10)'s right-hand sides and eq. (2)'s multipliers.

    In turns with ours; every route assembles its own step.
    """
    stepper = frame_stepper(vertices, threads)
    state = moving(stepper)
    plain_solver = make_solver(stepper.model.pattern, threads=threads)
    runs = {
        "condensed": lambda: whole_frame(stepper, state),
        "right-hand sides": lambda: solve_right_sides(
            stepper.equations(state), [0.5], solver=plain_solver
        ),
        "multipliers": lambda: solve_multipliers(stepper.equations(state), [0.5]),
    }
    spent, answers = {name: [] for name in runs}, {}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            if name == "multipliers" and turn == 0 and rounds > 1:
                continue  # nothing of SciPy's is kept from step to step
            gc.collect()
            start = time.perf_counter()
            answers[name] = run()
            if turn:
                spent[name].append(time.perf_counter() - start)
    mine, out = np.array(spent["condensed"]), {}
    size = np.abs(answers["condensed"].du).max()
    for name in runs:
        out[f"{name} [s]"] = float(np.median(spent[name]))
        if name != "condensed":
            out[f"{name}, times"] = float(np.median(np.array(spent[name]) / mine))
            away = np.abs(answers[name].du - answers["condensed"].du).max()
            out[f"{name}, difference"] = float(away / size)
    return out


def memory_of_frames(vertices: int) -> float:
    """Peak GB of this process after some steps.

    Linux keeps the peak of the process that started this one in ru_maxrss, but not
    in VmHWM.
    """
    stepper = frame_stepper(vertices, 2)
    state = moving(stepper)
    for _ in range(3):
        whole_frame(stepper, state)
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())
        return int(line) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
