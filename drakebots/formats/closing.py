"""Loops closed and counted: positions with c(q) = 0, and rows that are independent.

:func:`close_loops` moves joints as little as it can until their loops close;
:func:`drop_dependent_rows` leaves out rows of C(q) that depend on others, as most of
a planar mechanism's rows do when its joints are hinges in space.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from drakebots.model import (
    ROWS,
    LoopClosure,
    independent_rows,
    is_floating,
    joint_slices,
    joints_of,
    moved_positions,
    part_name,
    with_joints,
)

TOLERANCE = 1e-12
"""Largest |c(q)| of closed loops, in the plant's unit of length or rad."""
CLOSED = 1e-9
"""Loops with a smaller |c(q)| count as closed."""
_STEP = 0.3
"""Largest step of a joint in one iteration [rad], or of its loops' size [m]."""


def close_loops(
    closure: LoopClosure,
    context: Context,
    *,
    held: Collection[int] = (),
    tries: int = 8,
) -> float:
    """Moves the positions in a context until the loops close.

    Gauss-Newton steps of least weighted length, dv = -W^-1 J' (J W^-1 J')^+ e, halved
    until the error falls. Rows may depend on each other. Where that ends in loops that
    are still open, it starts again from other positions, ever farther away.

    Args:
        closure: of the loops.
        context: of the plant; its positions are where to start and the answer, or the
            least open ones found.
        held: velocities (indices) of joints that move ten times less readily than the
            others: motors, a base.
        tries: number of starts.
    """
    plant, rng = closure.plant, np.random.default_rng(0)
    start = plant.GetPositions(context).copy()
    free = np.ones(plant.num_velocities())
    free[list(held)] = 0.1
    in_loops = np.abs(closure.errors(context, 1.0)[1]).max(axis=0, initial=0.0) > 0
    best, best_q = np.inf, start
    for number in range(tries):
        if number:
            spread = 2.0 * number / tries * free * in_loops
            v = spread * rng.uniform(-1, 1, plant.num_velocities())
            _move(plant, context, start, v)
        found = _newton(closure, context, free)
        if found < best:
            best, best_q = found, plant.GetPositions(context).copy()
        if best < CLOSED:
            break
    plant.SetPositions(context, best_q)
    return best


def _newton(closure, context, free) -> float:
    """Gauss-Newton from the positions of a context."""
    plant = closure.plant
    length = max(float(np.max(closure.gaps(context), initial=0.0)), 1e-3)
    e, J = closure.errors(context, length)
    for _ in range(60):
        if np.abs(e).max(initial=0.0) < TOLERANCE / max(length, 1.0):
            break
        v = -free * np.linalg.lstsq(J * free, e, rcond=1e-9)[0]
        v *= min(1.0, _STEP / max(np.abs(v).max(), 1e-12))
        q, before = plant.GetPositions(context).copy(), float(e @ e)
        for share in 0.5 ** np.arange(6):
            _move(plant, context, q, share * v)
            e, J = closure.errors(context, length)
            if e @ e < before * (1 - 1e-3 * share):
                break
        else:
            if e @ e >= before:
                plant.SetPositions(context, q)
            break
    e = closure.errors(context, 1.0)[0]
    return float(np.abs(e).max(initial=0.0))


def _move(
    plant: MultibodyPlant, context: Context, start: np.ndarray, v: np.ndarray
) -> None:
    """Sets the positions that velocities lead to from others, with unit quaternions."""
    plant.SetPositions(context, start)
    plant.SetPositions(context, moved_positions(plant, context, v))


def drop_dependent_rows(closure: LoopClosure, context: Context) -> LoopClosure:
    """The loops and couplers with only the rows that do not depend on the others.

    They are counted where most are independent, at the closed positions of the
    context and at some near them: a mechanism stretched out in its default pose has
    fewer there than anywhere else.

    Args:
        closure: of loops that are closed in the context.
        context: of the plant; its positions are kept.
    """
    plant = closure.plant
    start = plant.GetPositions(context).copy()
    rng = np.random.default_rng(0)
    best = independent_rows(closure.jacobian(context))
    if len(best) == closure.num_rows:
        return closure
    in_loops = np.abs(closure.jacobian(context)).max(axis=0, initial=0.0) > 0
    for size in (0.05, 0.1, 0.2):
        v = size * rng.uniform(-1, 1, plant.num_velocities()) * in_loops
        _move(plant, context, start, v)
        if close_loops(closure, context, tries=1) < CLOSED:
            rows = independent_rows(closure.jacobian(context))
            best = rows if len(rows) > len(best) else best
    plant.SetPositions(context, start)
    return _with_rows(closure, best)


def settle_loops(
    closure: LoopClosure,
    context: Context,
    driven: Collection[str] = (),
    *,
    pose: Mapping[str, float] = MappingProxyType({}),
) -> tuple[LoopClosure, dict[str, tuple[float, ...]], list[str]]:
    """Closes the loops of a model near a pose, and drops rows that say nothing new.

    Joints that follow others go where their leaders have them; then the loops close.

    Args:
        closure: of all rows.
        context: of the plant (SI); its positions are moved where loops are open.
        driven: names of joints with motors, which move least.
        pose: in which the robot stands, joint positions by joint [rad, m]; rows are
            counted there, if the loops close.

    Returns:
        The loops and couplers with independent rows; positions of the joints that had
        to move to close them, by name [rad, m]; notes on changes, one line each.
    """
    plant, notes = closure.plant, []
    start = plant.GetPositions(context).copy()
    slips = closure.slips(context)
    if slips.max(initial=0.0) > 1e-9:
        plant.SetPositions(context, closure.followed(start))
        moved = [x.follower for x, s in zip(closure.couplers, slips) if s > 1e-9]
        notes.append(
            "joints that follow others are not where these have them at the default "
            f"positions, and are put there: {', '.join(moved)}"
        )
    error = float(np.abs(closure.errors(context, 1.0)[0]).max(initial=0.0))
    if error > 1e-9:
        gap = float(closure.gaps(context).max(initial=0.0))
        closure, left, words = _closed(closure, context, driven)
        end = "closed there"
        if left > CLOSED:
            worst = closure.most_open(context) if closure.loops else "mend the mimics"
            end = f"left open by {left:.3g}, where they are nearest to closing; {worst}"
        notes += [
            *words,
            f"its loops are open by {gap:.3g} m, {error:.3g} rad at the default "
            f"positions: {end}",
        ]
    settled = _counted_in(pose, closure, context)
    if dropped := closure.num_rows - settled.num_rows:
        notes.append(
            f"{dropped} of {closure.num_rows} rows of its loops depend on the others "
            "and are left out"
        )
    q, moved = plant.GetPositions(context), {}
    for joint in joints_of(plant):
        at = joint_slices(joint)[0]
        if np.any(q[at] != start[at]) and not is_floating(joint):
            moved[part_name(joint)] = tuple(q[at].tolist())
    return settled, moved, notes


def _counted_in(
    pose: Mapping[str, float], closure: LoopClosure, context: Context
) -> LoopClosure:
    """Loops with independent rows, counted in a pose in which they close."""
    plant = closure.plant
    here = plant.GetPositions(context).copy()
    plant.SetPositions(context, with_joints(plant, here, pose))
    if close_loops(closure, context, tries=1) > CLOSED:
        plant.SetPositions(context, here)
    settled = drop_dependent_rows(closure, context)
    plant.SetPositions(context, here)
    return settled


def _closed(
    closure: LoopClosure, context: Context, driven: Collection[str]
) -> tuple[LoopClosure, float, list[str]]:
    """Open loops closed, as ball joints where they must; what is left open; notes."""
    plant = closure.plant
    start = plant.GetPositions(context).copy()
    slow = [j for j in joints_of(plant) if part_name(j) in driven or is_floating(j)]
    held = [j.velocity_start() + k for j in slow for k in range(j.num_velocities())]
    left = close_loops(closure, context, held=held)
    if left <= CLOSED:
        return closure, left, []
    plant.SetPositions(context, start)
    closure, words = _with_balls(closure, context, held)
    return closure, close_loops(closure, context, held=held, tries=1), words


def _with_balls(closure, context, held) -> tuple[LoopClosure, list[str]]:
    """Loops that cannot all close, some of them with their positions only.

    A mechanism with more rows than joints closes only if its dimensions agree; where
    those of the file do not, loops keep their directions in the order of how well
    they are met, as long as all still close.

    Args:
        closure: of loops that do not close.
        context: start of the search; closed on return, if possible.
        held: as in :func:`close_loops`.
    """
    plant, loops = closure.plant, list(closure.loops)
    errors = [
        float(np.abs(LoopClosure(plant, [loop]).errors(context, 1.0)[0]).max())
        for loop in loops
    ]
    kept = [
        replace(loop, rows="ball") if ROWS[loop.rows] > ROWS["ball"] else loop
        for loop in loops
    ]
    if close_loops(closure.with_loops(kept), context, held=held, tries=5) > CLOSED:
        return closure, []
    for k in np.argsort(errors, kind="stable"):
        trial = [*kept[:k], loops[k], *kept[k + 1 :]]
        q = plant.GetPositions(context).copy()
        trial_closure = closure.with_loops(trial)
        if close_loops(trial_closure, context, held=held, tries=1) < CLOSED:
            kept = trial
        else:
            plant.SetPositions(context, q)
    balls = [a.name for a, b in zip(loops, kept) if a.rows != b.rows]
    words = (
        f"the dimensions of {len(loops)} loops disagree: {', '.join(balls)} close as "
        "ball joints only"
    )
    return closure.with_loops(kept), [words]


def _with_rows(closure: LoopClosure, rows: np.ndarray) -> LoopClosure:
    """Loops and couplers that keep rows, numbered over all of a closure."""
    found, couplers, start = [], [], 0
    for loop in closure.loops:
        mine = [n for k, n in enumerate(loop.row_numbers) if start + k in rows]
        start += loop.num_rows
        whole = len(mine) == loop.num_rows
        found.append(loop if whole else replace(loop, kept=tuple(mine)))
    for coupler in closure.couplers:
        lost = coupler.kept and start not in rows
        couplers.append(replace(coupler, kept=False) if lost else coupler)
        start += coupler.kept
    return closure.with_loops(found, couplers)
