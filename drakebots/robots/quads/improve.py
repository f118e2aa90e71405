"""Changes the design of a skinned robot until its walk needs less torque.

    improved = improve(table1_problem("beetle"), "out")

What is lowered is the rms torque of all joints over the planned walk. A full plan of
every design would take too long, so between plans :class:`WalkModel` estimates the
torques tau of a design with parameters p over the motion q(t) and the contact forces
f(t) of the last plan, which was made for p_0:

    tau(p) = tau_plan + tau_m(p) - tau_m(p_0)
    tau_m = RNEA(q, v, a; skeleton with the skin's mass on its links)
            - J_f' f + K (q - q_rest)

RNEA is the inverse dynamics, J_f the Jacobian of the contact points, and K the
stiffness of the skin against the joints. The forces f are scaled to the weight of the
new design and corrected so that they balance it as well as they did the old one.

The gradient uses the adjoint of the skin's equilibrium. Let A be the tangent of the
skin at rest, U the displacements of its nodes per turn of a joint, and J those of its
glue. Then K = U' A U. U minimises this energy for the given J, so its own change does
not count to first order, and the derivative needs no further factorization:

    dK/dp = U' dA/dp U + 2 sym(dJ/dp' (A U)_c)

with (.)_c the rows of the glue, and dA/dp from two assemblies of the mesh whose rest
positions move with p.

The search (:func:`improve`) repeats two things. It looks for the smallest change of
the parameters, in shares of their ranges and within a trust region, that meets the
target by this gradient; every design on the way is built by the whole pipeline, with
a new mesh, and judged by the model. The design found is then planned. The search ends
with a plan that meets the target, and its replay.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from pydrake.multibody.tree import JacobianWrtVariable
from scipy.ndimage import uniform_filter1d

from drakebots.core.checks import between, check_value, one_of
from drakebots.core.errors import DrakebotsError, InvalidInput, NoSolution
from drakebots.core.run import Progress, Verdict, check_stop, ended_by
from drakebots.design import (
    Design,
    DesignProblem,
    design_robot,
    redesigned,
    write_design,
)
from drakebots.design.skeleton import Plate, Skeleton, edit, parameter, write_sdf
from drakebots.design.skin import in_folds
from drakebots.fem.assembly import build_model, force_and_tangent
from drakebots.fem.mesh import TetMesh
from drakebots.fem.solver import make_solver
from drakebots.model import find_body
from drakebots.plots import COLOURS, check_ending, legend_below, save
from drakebots.results import Result, load_result
from drakebots.robots.quads.plan import QuadProblem, plan
from drakebots.robots.quads.robot import (
    PlannedRobot,
    Quad,
    SkinShare,
    load_planned,
    load_quad,
    skin_on_links,
)
from drakebots.robots.quads.track import Tracking, track
from drakebots.skin.frame import rest_tangent

REDUCTION = 0.2
"""Share by which the rms torque should fall, by default."""

MARGIN = 0.03
"""The model must predict a torque below the target by this share, as plans differ."""

EVERY = 5
"""The model looks at every fifth step of the plan."""

STEP = 1e-3
"""Step of central differences, in shares of a parameter's range."""

MOST_PLANS = 3
"""Largest number of full plans of changed designs."""

MOST_DESIGNS = 6
"""Largest number of designs that are built before each of these plans."""

TRUST = 0.6
"""First radius of the trust region, in shares of the parameters' ranges."""

LEAST = 1e-3
"""Smallest gain for which a design is changed, as a share of the rms torque."""


def shore_a(hardness: float) -> float:
    """Young's modulus of a rubber of this Shore A hardness [Pa] (Gent 1958, eq. 4)."""
    S = hardness
    return 1e6 * 0.0981 * (56 + 7.62336 * S) / (0.137505 * (254 - 2.54 * S))


@dataclass(frozen=True)
class Knob:
    """A parameter of a design that may be changed, with its bounds, in SI."""

    name: str
    unit: str
    value: float
    low: float
    high: float

    @property
    def range(self) -> float:
        """Length of the range."""
        return self.high - self.low


LIMBS = ("front.upper", "front.lower", "hind.upper", "hind.lower")
"""Links whose lengths may be changed, in designs whose body follows the skeleton."""


def knobs(problem: DesignProblem) -> tuple[Knob, ...]:
    """The parameters of a design that may be changed.

    * wall: 2 to 5.5 mm. The thinnest wall that can be printed is 1 mm; between links
      and body there are 6 mm;
    * modulus: that of silicones for moulds, Shore A 10 to 30;
    * fold depth, if the skin has folds: 4 to 10 mm; deeper teeth cannot be meshed
      (docs/design.md);
    * lengths of links (LIMBS), if the body follows the skeleton: 15 % shorter or
      longer, but not shorter than their motors.

    Raises:
        InvalidInput: for a parameter that is outside its bounds already.
    """
    skin = problem.skin
    out = [
        Knob("wall", "m", skin.wall, 2e-3, 5.5e-3),
        Knob("modulus", "Pa", skin.material.youngs_modulus, shore_a(10), shore_a(30)),
    ]
    if skin.folds.depth:
        out.append(Knob("fold depth", "m", skin.folds.depth, 4e-3, 10e-3))
    if problem.body is not None:
        for name in LIMBS:
            length = float(parameter(problem.template, name))
            low = max(0.85 * length, 1.02 * problem.template.build.shortest)
            if low < length:
                out.append(Knob(name, "m", length, low, 1.15 * length))
    for knob in out:
        if not knob.low <= knob.value <= knob.high:
            raise InvalidInput(
                f"{problem.name}: {knob.name} of {knob.value:g} {knob.unit} is outside "
                f"{knob.low:g} to {knob.high:g}, where it can be made; change it first"
            )
    return tuple(out)


# --- the model: stiffness of the skin ---------------------------------------------


class SkinResponse:
    """The stiffness K of a skin against m joints, and how it changes with the design.

    Args:
        design: the design, whose skin has N nodes, g of them glued to links.
        joints: names of its joints, in the order of K.

    Attributes:
        fem: the skin's finite elements.
        links: link of each glued node (g,).
        glue: numbers of the glued nodes (g,).
        U: displacements of the nodes per turn of each joint (3 N, m) [m/rad].
    """

    def __init__(self, design: Design, joints: tuple[str, ...]):
        self.design, self.joints = design, joints
        self.fem = build_model(design.shell.mesh, design.materials)
        self.links = [link for link, ids in design.glue.items() for _ in ids]
        self.glue = np.concatenate([np.asarray(i, int) for i in design.glue.values()])
        self._dofs = (3 * self.glue[:, None] + np.arange(3)).ravel()
        self._solver = make_solver(self.fem.pattern, self._dofs, threads=1)
        self._solver.factor(rest_tangent(self.fem))
        J = self._turns(design.skeleton, self.fem.rest)
        zero = np.zeros((self.fem.rest.size, J.shape[1]))
        self.U = self._solver.expand(self._solver.reduce(zero)[0], J)

    def carried(self, before: Skeleton, after: Skeleton) -> np.ndarray:
        """Displacements of the glue (g, 3) [m] when the links change their lengths.

        Each glued node keeps its place along the axis of its link.

        Args:
            before, after: the skeletons at rest, before and after the change.
        """
        p, out = self.fem.rest[self.glue], np.empty((len(self.glue), 3))
        for row, name in enumerate(self.links):
            old, new = before.link(name), after.link(name)
            axis = old.p_WB - old.p_WA
            t = np.clip((p[row] - old.p_WA) @ axis / max(axis @ axis, 1e-12), 0, 1)
            out[row] = (1 - t) * (new.p_WA - old.p_WA) + t * (new.p_WB - old.p_WB)
        return out

    def extended(self, move: np.ndarray) -> np.ndarray:
        """Displacements of all nodes (N, 3) [m] for those of the glue (g, 3) [m].

        The rest of the skin takes its static equilibrium, linearized at rest.
        """
        state, _ = self._solver.reduce(np.zeros(self.fem.rest.size))
        return self._solver.expand(state, move.ravel()).reshape(-1, 3)

    def moved(
        self, x: np.ndarray | None = None, skeleton: Skeleton | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """K (m, m) [N m/rad] and the nodes' masses (N,) [kg] with moved rest positions.

        Only the rows of U at the glue change with the positions; the others stay. The
        error of K is then of second order in that of U, so its derivative is exact.

        Args:
            x: rest positions of the nodes (N, 3) [m], by default those of the design.
            skeleton: skeleton that goes with x, by default that of the design.
        """
        mesh, fem, U = self.design.shell.mesh, self.fem, self.U
        if x is not None:
            moved = TetMesh(x, mesh.tets, mesh.region)
            fem = build_model(moved, self.design.materials)
            U = U.copy()
            U[self._dofs] = self._turns(skeleton or self.design.skeleton, x)
        values = force_and_tangent(fem, fem.rest)[1]
        AU = np.stack([fem.pattern.multiply(values, u) for u in U.T], axis=1)
        K = U.T @ AU
        return (K + K.T) / 2, fem.node_mass

    def _turns(self, skeleton: Skeleton, x: np.ndarray) -> np.ndarray:
        """J (3 g, m) [m/rad], displacements of the glue at p per turn of each joint.

        They are a x (p - p_J) for the joints between the base and the link of the node,
        with the joint's axis a through p_J, and 0 for all others.
        """
        parent = {link.name: link.parent for link in skeleton.links}
        hinges = {hinge.name: hinge for hinge in skeleton.hinges}
        p, links = x[self.glue], np.array(self.links)
        J = np.zeros((len(p), 3, len(self.joints)))
        for link in dict.fromkeys(self.links):
            to_base, ancestor = set(), link
            while ancestor is not None:
                to_base.add(ancestor)
                ancestor = parent[ancestor]
            rows = links == link
            for k, name in enumerate(self.joints):
                if (hinge := hinges[name]).child in to_base:
                    J[rows, :, k] = np.cross(hinge.axis, p[rows] - hinge.p_WJ)
        return J.reshape(3 * len(p), -1)


def wall_velocity(design: Design) -> np.ndarray:
    """Change of the vertices' positions per change of the wall's thickness (N, 3).

    The outside stays, and the inside moves inwards; the soles keep their thickness.
    """
    shell = design.shell
    x, n = shell.mesh.vertices, len(shell.outer_vertices)
    layers = len(x) // n - 1
    across = x[shell.inner_vertices] - x[shell.outer_vertices]
    thick = np.linalg.norm(across, axis=1, keepdims=True)
    across = np.where(thick < 1.3 * design.problem.skin.wall, across / thick, 0.0)
    return np.concatenate([across * (k / layers) for k in range(layers + 1)])


def fold_velocity(design: Design) -> np.ndarray:
    """Change of the vertices' positions per change of the folds' depth (N, 3).

    The grooves move inwards. Cuffs, which get wider with the depth, move outwards.
    """
    mesh, settings = design.shell.mesh, design.problem.skin.folds
    x, out = mesh.vertices, np.zeros_like(mesh.vertices)
    cuff = settings.cuff if design.problem.body is not None else 0.0
    middles = np.array([fold.p_W for fold in design.folds])
    for region in np.unique(mesh.region[in_folds(mesh)]):
        ids = np.unique(mesh.tets[mesh.region == region])
        centre = x[ids].mean(axis=0)
        fold = design.folds[np.linalg.norm(middles - centre, axis=1).argmin()]
        radial = x[ids] - fold.p_W
        along = radial @ fold.axis_W
        radial -= np.outer(along, fold.axis_W)
        # A triangle wave along the axis: 0 between the grooves, 1 at their bottom.
        phase = (along / settings.length + 0.5) * settings.teeth
        wave = np.where((phase >= 0) & (phase <= settings.teeth), phase % 1.0, 0.0)
        wave = 1 - np.abs(1 - 2 * wave)
        radius = np.maximum(np.linalg.norm(radial, axis=1), 1e-9)
        outwards = (cuff if fold.radius else 0.0) - wave
        out[ids] = outwards[:, None] * (radial / radius[:, None])
    return out


# --- the model: torques of the walk -----------------------------------------------


class _Body(NamedTuple):
    """The numbers of a design that determine the torques of its walk.

    Attributes:
        quad: the skeleton.
        stiffness: K of the skin against the m joints (m, m) [N m/rad].
        nodes: rest positions of the skin's nodes (N, 3) [m].
        node_mass: their masses (N,) [kg].
        share: link with which each node moves.
    """

    quad: Quad
    stiffness: np.ndarray
    nodes: np.ndarray
    node_mass: np.ndarray
    share: SkinShare

    @property
    def mass(self) -> float:
        """Mass of skeleton and skin [kg]."""
        return self.quad.mass + self.node_mass.sum()


class WalkModel:
    """The rms torque of designs over the motion and the forces of one plan.

    Args:
        design: the design that was planned.
        robot: the same, as planned.
        result: its plan.
        folder: folder for the skeletons of changed designs.
    """

    def __init__(
        self, design: Design, robot: PlannedRobot, result: Result, folder: Path
    ):
        self.design, self.robot, self.folder = design, robot, folder
        quad, data = robot.quad, result.data
        rows = np.arange(EVERY, len(data.time), EVERY)
        q = robot.coordinates.from_positions(data.position.values)
        v = robot.coordinates.from_velocities(q, data.velocity.values)
        a = np.gradient(v, float(data.time.values[1]), axis=0)
        a = uniform_filter1d(a, EVERY, axis=0)
        # Forces in row i act in the pose of row i - 1.
        self.q, self.v, self.a = (x[rows - 1] for x in (q, v, a))
        feet = sum(len(sole.points) for sole in quad.soles)
        self.force = data.contact_force.values[rows][:, :feet]
        self.recorded = data.torque.values[1:]
        self.sampled = data.torque.values[rows]
        self.skin = SkinResponse(design, quad.joints)
        K, mass = self.skin.moved()
        planned = _Body(quad, K, self.skin.fem.rest, mass, robot.share)
        self._planned_mass, self._planned_lack = planned.mass, None
        self.start, self._planned_lack = self._torques(planned)

    @property
    def base(self) -> float:
        """rms torque of the plan [N m]."""
        return rms(self.recorded)

    def _torques(self, body: _Body) -> tuple[np.ndarray, np.ndarray]:
        """tau_m at the n sampled steps (n, m) [N m], and the base's lack (n, 6).

        The lack is the generalized force on the base that the motion needs and the
        contact forces do not give. The forces are those of the plan times the ratio of
        the weights, plus the least change, weighted by the loads, that leaves the base
        with the lack that it had in the plan.
        """
        quad = body.quad
        own = skin_on_links(
            quad, body.nodes, body.node_mass, body.share.link_of, body.share.links
        )
        inertia = (quad.tree.inertia + own.inertia).reshape(-1, 1)
        n, actuated = len(self.q), quad.actuated
        need = quad.tree.dynamics_function.map(n)(
            self.q.T, self.v.T, self.a.T, np.repeat(inertia, n, axis=1)
        )
        need = np.array(need).T
        ratio = body.mass / self._planned_mass
        lack, out = np.zeros((n, 6)), np.empty((n, len(actuated)))
        for k, force in enumerate(self.force):
            J = _patch_jacobian(quad, self.q[k])
            f = ratio * force.ravel()
            lack[k] = need[k, :6] - J[:, :6].T @ f
            if self._planned_lack is not None:
                load = np.repeat(np.maximum(force[:, 2], 0.0), 3)
                W = (J[:, :6] * load[:, None]).T
                excess = lack[k] - self._planned_lack[k]
                f = f + load * np.linalg.lstsq(W, excess, rcond=1e-9)[0]
            out[k] = (need[k] - J.T @ f)[actuated]
        turn = self.q[:, actuated] - quad.rest[actuated]
        return out + turn @ body.stiffness, lack

    def _rms(self, body: _Body) -> float:
        """rms torque of the plan, plus the change that the model predicts [N m]."""
        change = self._torques(body)[0] - self.start
        return self.base + rms(self.sampled + change) - rms(self.sampled)

    def of_design(self, design: Design, path: Path) -> float:
        """Modelled rms torque of another design, which was written to a path [N m]."""
        other = load_planned(path)
        K, mass = SkinResponse(design, other.quad.joints).moved()
        nodes = other.skinned.fem.rest
        return self._rms(_Body(other.quad, K, nodes, mass, other.share))

    def slope(self, knob: Knob) -> float:
        """Derivative of the rms torque with a parameter, times its range [N m]."""
        high, low = (
            self._rms(self._changed(knob, sign * STEP * knob.range)) for sign in (1, -1)
        )
        return (high - low) / (2 * STEP)

    def _changed(self, knob: Knob, step: float) -> _Body:
        """The planned design with one parameter changed, on the same mesh."""
        design, quad, skin = self.design, self.robot.quad, self.skin
        x, share = skin.fem.rest, self.robot.share
        if knob.name == "modulus":
            K, mass = skin.moved()
            return _Body(quad, K * (1 + step / knob.value), x, mass, share)
        if knob.name in LIMBS:
            before = design.template.skeleton()
            template = edit(design.template, {knob.name: knob.value + step})
            after = template.skeleton()
            x = x + skin.extended(skin.carried(before, after))
            path = write_sdf(_with_plates(after, design.skeleton), self.folder)
            quad = load_quad(str(path), self.robot.skinned.skin.patches)
            K, mass = skin.moved(x, after)
            return _Body(quad, K, x, mass, share)
        velocity = wall_velocity if knob.name == "wall" else fold_velocity
        x = x + step * velocity(design)
        K, mass = skin.moved(x)
        return _Body(quad, K, x, mass, share)


def _with_plates(skeleton: Skeleton, braced: Skeleton) -> Skeleton:
    """A skeleton with the bracing plates of another one."""
    links = tuple(
        replace(
            link,
            solids=link.solids
            + tuple(s for s in braced.link(link.name).solids if isinstance(s, Plate)),
        )
        for link in skeleton.links
    )
    return replace(skeleton, links=links)


def _patch_jacobian(quad: Quad, q: np.ndarray) -> np.ndarray:
    """Jacobian of the contact points of all soles (3 p, nv), in the world."""
    plant = quad.robot.plant
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, q)
    world = plant.world_frame()
    return np.concatenate(
        [
            plant.CalcJacobianTranslationalVelocity(
                context,
                JacobianWrtVariable.kQDot,
                find_body(plant, sole.body).body_frame(),
                (sole.p_BF + sole.points @ sole.R_BS.T).T,
                world,
                world,
            )
            for sole in quad.soles
        ]
    )


def rms(values: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


# --- the search -----------------------------------------------------------------


@dataclass(frozen=True)
class Improved:
    """The outcome of :func:`improve`.

    Attributes:
        verdict, message: success if a changed design was planned and replayed, and
            needs less torque by the share that was asked for.
        knobs: the parameters that could be changed, with their first values.
        values: their last values, in SI, by name.
        slopes: derivatives of the rms torque at the first design, times the ranges of
            the parameters [N m], by name.
        rms: rms torque of the walk before and after [N m]; the latter is that of the
            best plan.
        plans: the plans before and after.
        run: the replay of the plan after, or None where the search failed.
        path: file of the changed robot.
        steps: one entry for each design that was tried, with its parameters ("values"),
            and either the modelled rms torque ("model_rms_N_m") or why it could not be
            built ("message"); "plan_rms_N_m" too if it was planned.
    """

    verdict: Verdict
    message: str
    knobs: tuple[Knob, ...]
    values: Mapping[str, float]
    slopes: Mapping[str, float]
    rms: tuple[float, float]
    plans: tuple[Result, Result]
    run: Result | None
    path: Path
    steps: tuple[dict[str, Any], ...]

    @property
    def changes(self) -> dict[str, str]:
        """First value, last value and bounds of each parameter, as text."""
        return {
            k.name: f"{shown(k, k.value)} to {shown(k, self.values[k.name])}, of "
            f"{shown(k, k.low)} to {shown(k, k.high)}"
            for k in self.knobs
        }


def improve(
    problem: DesignProblem,
    folder: Path | str,
    *,
    what: str = "torque",
    motion: str = "walk",
    reduction: float = REDUCTION,
    progress: Progress | None = None,
) -> Improved:
    """Changes a design until the rms torque of its walk is lower by a share.

    Args:
        problem: the design problem to start from.
        folder: folder for the designs, before/, trial_1/ and so on. A plan that is
            there already is used again if it is of the same design.
        what: what to improve; so far "torque" is the only choice.
        motion: name of a motion of the library (:mod:`drakebots.robots.quads.motion`).
        reduction: the share, from 0.001 to 0.99.
        progress: called with the stage, and what is done of it.

    Returns:
        The best design. Ctrl-C ends the search and keeps the best so far.

    Raises:
        UnknownName: for another `what`.
        InvalidInput: for a reduction out of range.
        DrakebotsError: when the first design cannot be built or planned.
    """
    check_value("improve", what, one_of("figure to improve", ("torque",)))
    check_value("reduction", reduction, between(1e-3, 0.99))
    return _Search(problem, Path(folder), motion, reduction, progress).run()


class _Candidate(NamedTuple):
    """A design that was built, and what the model says of it.

    Attributes:
        rms: modelled rms torque [N m].
        design, path: the design, and its file.
        values: its parameters, in SI, by name.
    """

    rms: float
    design: Design
    path: Path
    values: dict[str, float]


@dataclass(frozen=True)
class _Planned:
    """A design that was planned.

    Attributes:
        plan: the plan.
        path: file of the robot.
        values: its parameters, in SI, by name.
        run: replay of the plan, if it was replayed.
    """

    plan: Result
    path: Path
    values: dict[str, float]
    run: Result | None = None

    @property
    def rms(self) -> float:
        """rms torque of the plan [N m]."""
        return rms(self.plan.data.torque.values[1:])


class _Search:
    """The search of :func:`improve`, whose arguments it takes."""

    def __init__(self, problem, folder, motion, reduction, progress):
        self.problem, self.folder = problem, folder
        self.motion, self.reduction, self.progress = motion, reduction, progress
        self.knobs = knobs(problem)
        self.steps: list[dict[str, Any]] = []
        self.slopes: dict[str, float] = {}
        self.best: _Planned | None = None

    def run(self) -> Improved:
        """Plans the first design, and changes it until the target is met."""
        values = {knob.name: knob.value for knob in self.knobs}
        design, path = self.design(values, "before")
        first = self.best = _Planned(self.plan(path), path, values)
        if not first.plan.ok:
            raise NoSolution(f"{design.problem.name}, before: {first.plan.message}")
        try:
            verdict, message = self.lower(design)
        except KeyboardInterrupt as error:
            verdict, message = ended_by(error)
        except DrakebotsError as error:
            verdict, message = Verdict.FAILED, str(error)
        best = self.best
        if best.run is None and verdict is Verdict.FAILED and best is not first:
            share = 1 - best.rms / first.rms
            message = f"only {100 * share:.1f} % less torque; {message}"
        return Improved(
            verdict,
            message,
            self.knobs,
            best.values,
            self.slopes,
            rms=(first.rms, best.rms),
            plans=(first.plan, best.plan),
            run=best.run,
            path=best.path,
            steps=tuple(self.steps),
        )

    def lower(self, design: Design) -> tuple[Verdict, str]:
        """Changes and plans designs until one meets the target; keeps the best.

        Args:
            design: the first design, whose plan is the best so far.
        """
        last = self.best
        target = (1 - self.reduction) * last.rms
        aim = (1 - MARGIN) * target
        for _ in range(MOST_PLANS):
            model = WalkModel(
                design, load_planned(last.path), last.plan, self.folder / "skeleton"
            )
            found = self.approach(model, last.values, aim)
            check_stop()
            design = found.design
            last = _Planned(self.plan(found.path), found.path, found.values)
            self.steps[-1]["plan_rms_N_m"] = last.rms
            if not last.plan.ok:
                return Verdict.FAILED, f"{last.path.parent.name}: {last.plan.message}"
            if last.rms < self.best.rms:
                self.best = last
            if last.rms <= target:
                run = track(
                    Tracking(last.plan, model=str(last.path)), progress=self.progress
                )
                run.save(last.path.parent / "track.nc")
                self.best = replace(last, run=run)
                return run.verdict, run.message
            # Plans gain less than the model predicts: aim lower by the same factor.
            predicted, gained = model.base - found.rms, model.base - last.rms
            factor = np.clip(predicted / max(gained, 1e-9), 1, 2)
            aim = last.rms - factor * (last.rms - (1 - MARGIN) * target)
        return Verdict.FAILED, "no design that needs less torque was found"

    def design(self, values, name: str) -> tuple[Design, Path]:
        """The design with these parameters, and its file in the folder `name`.

        A plan of another design that is there is removed.
        """
        check_stop()
        design = design_robot(
            redesigned(self.problem, values), progress=self._told(name)
        )
        place = self.folder / name
        before = _descriptions(place)
        path = write_design(design, place)
        if _descriptions(place) != before:
            (place / "plan.nc").unlink(missing_ok=True)
        return design, path

    def plan(self, path: Path) -> Result:
        """The plan of the design in a file: one stored beside it, or a new one."""
        stored = path.parent / "plan.nc"
        if os.path.isfile(stored) and (kept := load_result(stored)).ok:
            return kept
        problem = QuadProblem(model=str(path), motion=self.motion)
        return plan(problem, path=stored, progress=self._told(path.parent.name))

    def _told(self, name: str) -> Progress | None:
        if self.progress is None:
            return None
        return lambda stage, done, end: self.progress(f"{name}, {stage}", done, end)

    def approach(self, model: WalkModel, values, aim: float) -> _Candidate:
        """The best of a few designs, the last of which meets the aim by the model.

        All start from the last planned design and use its gradient.

        Args:
            model: model at the last planned design.
            values: parameters of that design, in SI, by name.
            aim: rms torque to reach [N m].

        Raises:
            NoSolution: when no changed design can be built.
        """
        here = [replace(knob, value=values[knob.name]) for knob in self.knobs]
        g = np.array([model.slope(knob) for knob in here])
        self.slopes = self.slopes or {k.name: float(s) for k, s in zip(here, g)}
        start = np.array([values[k.name] / k.range for k in here])
        low = np.array([k.low / k.range for k in here])
        high = np.array([k.high / k.range for k in here])
        goal, radius, best, failed = aim, TRUST, None, ""
        for _ in range(MOST_DESIGNS):
            y = least_change(g, model.base - goal, start, low, high, radius)
            asked = float(g @ (start - y))
            if asked < LEAST * model.base:
                failed = failed or "their bounds allow no more"
                break
            trial = {k.name: float(v * k.range) for k, v in zip(here, y)}
            name = f"trial_{len(self.steps) + 1}"
            try:
                design, path = self.design(trial, name)
                modelled = model.of_design(design, path)
            except DrakebotsError as error:
                failed = str(error)
                self.steps.append({"values": trial, "message": failed})
                radius /= 2
                continue
            self.steps.append({"values": trial, "model_rms_N_m": modelled})
            if best is None or modelled < best.rms:
                best = _Candidate(modelled, design, path, trial)
            if modelled <= aim:
                break
            # The model gained less than its gradient promised: ask it for more.
            gain = model.base - modelled
            if gain < 0.2 * asked:
                radius /= 2
            else:
                goal = model.base - (model.base - aim) * 1.05 * asked / gain
                radius = min(1.5 * radius, 1.0)
        if best is None:
            raise NoSolution(f"no further change of the parameters: {failed}")
        return best


def _descriptions(folder: Path) -> dict[str, bytes]:
    """Contents of the YAML files of a design, by name.

    They tell its parameters, the moduli of its folds and its feet.
    """
    return {path.name: path.read_bytes() for path in folder.glob("*.yaml")}


def least_change(g, gain: float, start, low, high, radius: float) -> np.ndarray:
    """The y nearest to `start` with g (start - y) = gain, within bounds (n,).

    It is start - rate g, clipped to the bounds, with the rate found by bisection. Where
    the bounds do not allow that gain, it is the y of the largest gain.

    Args:
        g: gradient (n,).
        gain: decrease that is requested.
        start, low, high: y to start from, and its bounds (n,).
        radius: largest change of each entry.
    """
    low, high = np.maximum(low, start - radius), np.minimum(high, start + radius)

    def at(rate):
        return np.clip(start - rate * g, low, high)

    below, above = 0.0, 1e3 / max(np.abs(g).max(), 1e-12)
    if g @ (start - at(above)) <= gain:
        return at(above)
    for _ in range(80):
        middle = (below + above) / 2
        if g @ (start - at(middle)) < gain:
            below = middle
        else:
            above = middle
    return at(above)


def plot_improved(found: Improved, path: Path | str) -> Path:
    """Draws the parameters and the torques of the walk, before and after.

    Raises:
        InvalidInput: for another ending than .png, .pdf or .svg.
        FileProblem: when the file cannot be written.
    """
    path = check_ending(path)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    for row, k in enumerate(found.knobs):
        first, last = ((x - k.low) / k.range for x in (k.value, found.values[k.name]))
        left.plot([0, 1], [row, row], color="0.85", lw=5, solid_capstyle="round")
        left.annotate("", (last, row), (first, row), arrowprops={"arrowstyle": "->"})
        left.plot(first, row, "o", color=COLOURS[1], ms=5)
        left.plot(last, row, "o", color=COLOURS[0], ms=5)
        text = f"{shown(k, k.value)} to {shown(k, found.values[k.name])}"
        left.text(0.5, row - 0.3, text, ha="center", fontsize=7)
    left.set(xticks=[0, 1], xticklabels=["least", "most"], ylim=(len(found.knobs), -1))
    left.set_yticks(range(len(found.knobs)), [k.name for k in found.knobs])
    for plan_, colour, name, value in zip(
        found.plans, (COLOURS[1], COLOURS[0]), ("before", "after"), found.rms
    ):
        data = plan_.data.isel(time=slice(1, None))
        over = np.sqrt(np.mean(data.torque.values**2, axis=1))
        label = f"{name}: rms {value:.3f} N m"
        right.plot(data.time, over, color=colour, lw=1.2, label=label)
    right.set(
        xlabel="time [s]", ylabel="rms torque of the joints [N m]", ylim=(0, None)
    )
    legend_below(right)
    return save(figure, path)


def shown(knob: Knob, value: float) -> str:
    """A value in mm or MPa."""
    factor, unit = (1e3, "mm") if knob.unit == "m" else (1e-6, "MPa")
    return f"{factor * value:.3g} {unit}"
