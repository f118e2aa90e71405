"""Changes a skinned robot's design until its walk needs less torque.

    improved = improve(table1_problem("beetle"), "out")

The figure is the rms of all joints' torques over the planned walk. Of a design p with
the motion q(t) and the contact forces f(t) of the last plan it is modelled as

    tau(p) = tau_plan + tau_m(p) - tau_m(p_0)
    tau_m = RNEA(q, v, a; skeleton, skin on its links) - J_f' f + K (q - q_rest)

with f scaled by the weight and balanced (:meth:`WalkModel.torques`), and K the skin's
stiffness against the joints. Its gradient uses the adjoint of the skin's equilibrium:
with U the nodes' displacements per turn of a joint, K = U' A U, and U minimises that
energy, so that the derivative needs no other factorization,

    dK/dp = U' dA/dp U + 2 sym(dJ/dp' (A U)_c),

with dA/dp from two assemblies of the mesh whose rest positions move with p. Each step
makes the smallest change, in shares of the parameters' ranges, that by this gradient
meets the target within a trust region; the changed design goes through the whole
pipeline, with a new mesh, before it counts. The end is a full plan and its replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pydrake.multibody.tree import JacobianWrtVariable
from scipy.ndimage import uniform_filter1d

from drakebots.core.checks import check_value, one_of
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
"""Share by which the rms torque should fall."""

MARGIN = 0.03
"""Share of the target that the model's figure must stay below it, as plans differ."""

EVERY = 5
"""Steps of the plan between those at which torques are modelled."""

STEP = 1e-3
"""Step of central differences, in shares of a parameter's range."""

MOST_PLANS = 3
"""Largest number of full plans of changed designs."""

MOST_DESIGNS = 6
"""Largest number of designs tried before each of them."""


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
"""Lengths of links that may be changed, where the body follows the skeleton."""


def knobs(problem: DesignProblem) -> tuple[Knob, ...]:
    """The parameters that may be changed.

    * wall: 2 to 5.5 mm, between twice the thinnest wall that is printed, 1 mm, and the
      room between links and body, 6 mm;
    * fold depth: 4 to 10 mm; deeper teeth cannot be meshed (docs/design.md);
    * modulus: silicones for moulds of Shore A 10 to 30;
    * links: 15 % shorter or longer, but not shorter than their motors.
    """
    skin = problem.skin
    out = [
        Knob("wall", "m", skin.wall, 2e-3, 5.5e-3),
        Knob(
            *("modulus", "Pa", skin.material.youngs_modulus),
            *(shore_a(10), shore_a(30)),
        ),
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


# --- the model ------------------------------------------------------------------


class SkinResponse:
    """The skin's stiffness against m joints, and how it changes with the design.

    Args:
        design: the design.
        joints: names of its joints, in the order of K.

    Attributes:
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
        """Moves of the glue (g, 3) [m] with the ends of its links at rest."""
        p, out = self.fem.rest[self.glue], np.empty((len(self.glue), 3))
        for row, name in enumerate(self.links):
            old, new = before.link(name), after.link(name)
            axis = old.p_WB - old.p_WA
            t = np.clip((p[row] - old.p_WA) @ axis / max(axis @ axis, 1e-12), 0, 1)
            ends = new.p_WA - old.p_WA, new.p_WB - old.p_WB
            out[row] = (1 - t) * ends[0] + t * ends[1]
        return out

    def extended(self, move: np.ndarray) -> np.ndarray:
        """Moves of the glue (g, 3) [m], carried on into the skin (N, 3) as it bends."""
        state, _ = self._solver.reduce(np.zeros(self.fem.rest.size))
        return self._solver.expand(state, move.ravel()).reshape(-1, 3)

    def moved(self, x: np.ndarray | None = None, skeleton: Skeleton | None = None):
        """K (m, m) [N m/rad] and the nodes' masses (N,) [kg] with moved rest positions.

        U is kept but for the glue's rows. K then is in error by the square of U's
        error, so that its derivative is exact.
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
        """J (3 g, m), a x (p - p_J) for the joints above the link of each vertex."""
        parent = {link.name: link.parent for link in skeleton.links}
        hinges = {hinge.name: hinge for hinge in skeleton.hinges}
        p, links = x[self.glue], np.array(self.links)
        J = np.zeros((len(p), 3, len(self.joints)))
        for link in dict.fromkeys(self.links):
            rows, above, at = links == link, set(), link
            while at is not None:
                above.add(at)
                at = parent[at]
            for k, name in enumerate(self.joints):
                if (hinge := hinges[name]).child in above:
                    J[rows, :, k] = np.cross(hinge.axis, p[rows] - hinge.p_WJ)
        return J.reshape(3 * len(p), -1)


def wall_velocity(design: Design) -> np.ndarray:
    """Velocities of the vertices by the wall's thickness (N, 3); the soles stay."""
    shell = design.shell
    x, n = shell.mesh.vertices, len(shell.outer_vertices)
    layers = len(x) // n - 1
    across = x[shell.inner_vertices] - x[shell.outer_vertices]
    thick = np.linalg.norm(across, axis=1, keepdims=True)
    across = np.where(thick < 1.3 * design.problem.skin.wall, across / thick, 0.0)
    return np.concatenate([across * (k / layers) for k in range(layers + 1)])


def fold_velocity(design: Design) -> np.ndarray:
    """Velocities of the vertices by the teeth's depth (N, 3): grooves inwards.

    Cuffs, which get wider with the depth, move outwards.
    """
    mesh, settings = design.shell.mesh, design.problem.skin.folds
    x, out = mesh.vertices, np.zeros_like(mesh.vertices)
    cuff = settings.cuff if design.problem.body is not None else 0.0
    middles = np.array([fold.p_W for fold in design.folds])
    for region in np.unique(mesh.region[in_folds(mesh)]):
        ids = np.unique(mesh.tets[mesh.region == region])
        centre = x[ids].mean(axis=0)
        fold = design.folds[np.linalg.norm(middles - centre, axis=1).argmin()]
        offset = x[ids] - fold.p_W
        s = offset @ fold.axis_W
        offset -= np.outer(s, fold.axis_W)
        phase = (s / settings.length + 0.5) * settings.teeth
        wave = np.where((phase >= 0) & (phase <= settings.teeth), phase % 1.0, 0.0)
        wave = 1 - np.abs(1 - 2 * wave)
        radius = np.maximum(np.linalg.norm(offset, axis=1), 1e-9)
        out[ids] = ((cuff if fold.radius else 0.0) - wave)[:, None] * (
            offset / radius[:, None]
        )
    return out


class WalkModel:
    """The rms torque of designs over the motion and the forces of a plan.

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
        self._weight, self._left = 1.0, None
        K, mass = self.skin.moved()
        self._weight = quad.mass + mass.sum()
        self.start, self._left = self._torques(
            quad, K, self.skin.fem.rest, mass, robot.share
        )

    @property
    def base(self) -> float:
        """rms torque of the plan [N m]."""
        return rms(self.recorded)

    def _torques(self, quad: Quad, K, nodes, mass, share: SkinShare):
        """tau_m at the sampled steps (n, m) [N m], and what the base lacks (n, 6).

        The forces are those of the plan times the ratio of the weights, plus the least
        change, weighted by the loads, with which the base lacks what it lacked before.
        """
        own = skin_on_links(quad, nodes, mass, share.link_of, share.links)
        inertia = (quad.tree.inertia + own.inertia).reshape(-1, 1)
        n, at = len(self.q), quad.actuated
        need = quad.tree.dynamics_function.map(n)(
            self.q.T, self.v.T, self.a.T, np.repeat(inertia, n, axis=1)
        )
        need = np.array(need).T
        ratio = (quad.mass + mass.sum()) / self._weight
        left, out = np.zeros((n, 6)), np.empty((n, len(at)))
        for k, force in enumerate(self.force):
            J = _patch_jacobian(quad, self.q[k])
            f = ratio * force.ravel()
            left[k] = need[k, :6] - J[:, :6].T @ f
            if self._left is not None:
                load = np.repeat(np.maximum(force[:, 2], 0.0), 3)
                W = (J[:, :6] * load[:, None]).T
                more = np.linalg.lstsq(W, left[k] - self._left[k], rcond=1e-9)[0]
                f = f + load * more
            out[k] = (need[k] - J.T @ f)[at]
        turn = self.q[:, at] - quad.rest[at]
        return out + turn @ K, left

    def figure(self, quad: Quad, K, nodes, mass, share: SkinShare) -> float:
        """rms torque of the plan, with the model's change of it added [N m]."""
        change = self._torques(quad, K, nodes, mass, share)[0] - self.start
        return self.base + rms(self.sampled + change) - rms(self.sampled)

    def of_design(self, design: Design, path: Path) -> float:
        """The figure of another design, which was written to a path [N m]."""
        other = load_planned(path)
        K, mass = SkinResponse(design, other.quad.joints).moved()
        return self.figure(other.quad, K, other.skinned.fem.rest, mass, other.share)

    def slope(self, knob: Knob) -> float:
        """Derivative of the figure by a parameter, per its range [N m]."""
        high, low = (
            self.figure(*self._changed(knob, sign * STEP * knob.range))
            for sign in (1, -1)
        )
        return (high - low) / (2 * STEP)

    def _changed(self, knob: Knob, step: float):
        """Arguments of :meth:`figure` with one parameter changed on the same mesh."""
        design, quad, skin = self.design, self.robot.quad, self.skin
        x, share = skin.fem.rest, self.robot.share
        if knob.name == "modulus":
            K, mass = skin.moved()
            return quad, K * (1 + step / knob.value), x, mass, share
        if knob.name in LIMBS:
            before = design.template.skeleton()
            template = edit(design.template, {knob.name: knob.value + step})
            after = template.skeleton()
            x = x + skin.extended(skin.carried(before, after))
            path = write_sdf(_with_plates(after, design.skeleton), self.folder)
            quad = load_quad(str(path), self.robot.skinned.skin.patches)
            return quad, *_ordered(skin.moved(x, after), x), share
        velocity = wall_velocity if knob.name == "wall" else fold_velocity
        x = x + step * velocity(design)
        return quad, *_ordered(skin.moved(x), x), share


def _ordered(found, x):
    return found[0], x, found[1]


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
    """Velocities of all patches by those of the coordinates (3 patches, nv)."""
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
    """What became of a design.

    Attributes:
        verdict, message: success where a changed design was planned and replayed, and
            needs less torque by the share that was requested.
        knobs: the parameters that could be changed, with their first values.
        values: their last values, in SI.
        slopes: first derivatives of the rms torque, per range [N m].
        rms: rms torque of the walk before and after (2,) [N m]; after is that of the
            best plan.
        plans: the plans before and after.
        run: the replay of the plan after, or None.
        path: file of the changed robot.
        steps: designs tried: parameters, the model's rms torque, the plan's or None.
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
        """What became of each parameter, in words."""
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
    progress: Progress | None = None,
) -> Improved:
    """Changes a design until the rms torque of its walk is 20 % lower.

    Args:
        problem: the design problem to start from.
        folder: folder of before/, and of trial_1/ and so on. Plans that are there
            are taken where they are of the same design.
        what: "torque".
        motion: motion of the library.
        progress: called with the stage, and what is done of it.

    Returns:
        the best design. Ctrl-C ends the search and keeps the best so far.

    Raises:
        DrakebotsError: when the first design cannot be made or planned.
    """
    check_value("improve", what, one_of("figure to improve", ("torque",)))
    return _Search(problem, Path(folder), motion, progress).run()


class _Search:
    def __init__(self, problem, folder, motion, progress):
        self.problem, self.folder = problem, folder
        self.motion, self.progress = motion, progress
        self.knobs = knobs(problem)
        self.steps: list[dict[str, Any]] = []

    def run(self) -> Improved:
        values = {knob.name: knob.value for knob in self.knobs}
        design, path = self.design(values, "before")
        first = self.plan(path)
        if not first.ok:
            raise NoSolution(f"{design.problem.name}, before: {first.message}")
        target = (1 - REDUCTION) * rms(first.data.torque.values[1:])
        best = (first, path, values, None)
        slopes: dict[str, float] = {}
        verdict, message = Verdict.FAILED, "no design that needs less torque was found"
        aim, now = target * (1 - MARGIN), first
        try:
            for _ in range(MOST_PLANS):
                model = WalkModel(
                    design, load_planned(path), now, self.folder / "skeleton"
                )
                figure, design, path, values, found = self.approach(
                    model, design, path, values, aim
                )
                slopes = slopes or found
                check_stop()
                now = self.plan(path)
                reached = rms(now.data.torque.values[1:])
                self.steps[-1]["plan_rms_N_m"] = reached
                # Plans gain less than the model: ask it for as much more.
                short = (model.base - figure) / max(model.base - reached, 1e-9)
                aim = reached - np.clip(short, 1, 2) * (reached - (1 - MARGIN) * target)
                if not now.ok:
                    message = f"{path.parent.name}: {now.message}"
                    break
                if reached < rms(best[0].data.torque.values[1:]):
                    best = (now, path, values, None)
                if reached <= target:
                    run = track(Tracking(now, model=str(path)), progress=self.progress)
                    run.save(path.parent / "track.nc")
                    best = (now, path, values, run)
                    verdict, message = run.verdict, run.message
                    break
        except KeyboardInterrupt as error:
            verdict, message = ended_by(error)
        except DrakebotsError as error:
            message = str(error)
        plan_after, path, values, run = best
        pair = tuple(rms(p.data.torque.values[1:]) for p in (first, plan_after))
        if run is None and verdict is Verdict.FAILED and plan_after is not first:
            share = 1 - pair[1] / pair[0]
            message = f"only {100 * share:.1f} % less torque; {message}"
        return Improved(
            *(verdict, message, self.knobs, values, slopes, pair),
            *((first, plan_after), run, path, tuple(self.steps)),
        )

    def design(self, values, name: str) -> tuple[Design, Path]:
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
        stored = path.parent / "plan.nc"
        if stored.is_file() and (kept := load_result(stored)).ok:
            return kept
        problem = QuadProblem(model=str(path), motion=self.motion)
        return plan(problem, path=stored, progress=self._told(path.parent.name))

    def _told(self, name: str) -> Progress | None:
        if self.progress is None:
            return None
        return lambda stage, done, end: self.progress(f"{name}, {stage}", done, end)

    def approach(self, model: WalkModel, design, path, values, aim: float):
        """Designs towards the aim, each from the gradient at the last plan's."""
        here = [replace(knob, value=values[knob.name]) for knob in self.knobs]
        g = np.array([model.slope(knob) for knob in here])
        start = np.array([values[k.name] / k.range for k in here])
        low = np.array([k.low / k.range for k in here])
        high = np.array([k.high / k.range for k in here])
        goal, radius, best, failed = aim, TRUST, None, ""
        for _ in range(MOST_DESIGNS):
            y = least_change(g, model.base - goal, start, low, high, radius)
            if g @ (start - y) < LEAST * model.base:
                failed = failed or "their bounds allow no more"
                break
            trial = {k.name: float(v * k.range) for k, v in zip(here, y)}
            name = f"trial_{len(self.steps) + 1}"
            try:
                made, at = self.design(trial, name)
                figure = model.of_design(made, at)
            except DrakebotsError as error:
                failed = str(error)
                self.steps.append({"values": trial, "message": failed})
                radius /= 2
                continue
            self.steps.append({"values": trial, "model_rms_N_m": figure})
            if best is None or figure < best[0]:
                best = figure, made, at, trial
            if figure <= aim:
                break
            # The model's gain fell short of the gradient's: ask it for more.
            gain, asked = model.base - figure, float(g @ (start - y))
            if gain < 0.2 * asked:
                radius /= 2
            else:
                goal = model.base - (model.base - aim) * 1.05 * asked / gain
                radius = min(1.5 * radius, 1.0)
        if best is None:
            raise NoSolution(f"no further change of the parameters: {failed}")
        slopes = {k.name: float(s) for k, s in zip(here, g)}
        return *best, slopes


def _descriptions(folder: Path) -> dict[str, bytes]:
    """Contents of the YAML files of a design: parameters, moduli of folds, feet."""
    return {path.name: path.read_bytes() for path in folder.glob("*.yaml")}


LEAST = 1e-3
"""Smallest gain for which a design is changed, over the rms torque."""

TRUST = 0.6
"""First trust region, in shares of the parameters' ranges."""


def least_change(g, gain: float, start, low, high, radius: float) -> np.ndarray:
    """The y nearest to `start` with g (start - y) = gain, within bounds.

    Where the bounds do not allow that much, the y of the largest gain.

    Args:
        g: gradient (n,).
        gain: decrease that is asked for.
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
