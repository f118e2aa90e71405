"""Real blocks thrown on a table, by four simulators from the first frame on.

A cube (Pfrommer, Halm, Posa, CoRL 2020) and two blocks on a hinge (Bianchini, Halm,
Posa, CoRL 2023), tracked at 148 Hz. A simulator gets the pose and the velocities of a
toss's first frame and goes on to its last. Parameters are published ones, or fitted to
a sample of the first half of the tosses by the mean error of position; all errors are
of tosses of the second half.

    python scripts/evidence/tosses.py ../shared/data      # a quarter of an hour
    python scripts/evidence/tosses.py --pack elbow_tosses -o elbow.png
    python scripts/evidence/tosses.py --quick
    python scripts/evidence/tosses.py --file more.npz     # judge other tosses

Lengths of the data are 2 % too small (free fall at 9.62 m/s^2): positions and
velocities are multiplied by g/9.62 m/s^2.

hard       our time stepping with hard, inelastic contact at the corners: friction
sap        Drake's SAP with the ground that our robots stand on: friction
drake      Drake with its own defaults and the file's boxes, of which point contact
           sees one corner at a time; and with a ball at each corner: friction,
           stiffness and dissipation
mujoco     MuJoCo with its own defaults, or with other `solref`: friction, time
           constant and damping ratio

Friction coefficients that nobody fitted are those of the file. The hinge's damping is
one number for all, from its decay in flight.

`toss_error_ours_vs_drake` and `_vs_mujoco` are errors of position of "sap" over theirs,
all fitted: one parameter of ours, three of theirs; `toss_error_hard_vs_...` those of
"hard", with one as well.

JSON: toss_error_ours_vs_drake, toss_error_ours_vs_mujoco, pack, tosses, rows.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import mujoco
import numpy as np
from matplotlib.figure import Figure
from packs import add_pack, pack_folder
from pydrake.geometry import (
    AddContactMaterial,
    Box,
    HalfSpace,
    ProximityProperties,
    Sphere,
)
from pydrake.math import RigidTransform
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from scipy.optimize import minimize, minimize_scalar
from scipy.spatial.transform import Rotation

from drakebots import build_robot, load
from drakebots.cli.output import one_line_errors, print_table
from drakebots.control import Command, SapPlant, stiff_ground
from drakebots.core.errors import DrakebotsError
from drakebots.core.units import GRAVITY
from drakebots.model import Model, Point
from drakebots.multibody import Flat, TimeStepper
from drakebots.plots import save

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from measurement import Measurement, figure

PACKS = {
    "cube_tosses": ("contactnets_cube.urdf", "tosses_000_399.npz"),
    "elbow_tosses": ("contactnets_elbow.urdf", "tosses_000_404.npz"),
}
"""Files of each pack: the model and the tosses."""
FRAME = 1 / 148  # [s]
SUBSTEPS = 7  # of a frame, some 1 ms each
LENGTHS = GRAVITY / 9.62  # by which the data's lengths are too small
DOUBTFUL = 40.0  # rad/s of a body: not believed as a start


@dataclass(frozen=True)
class Shape:
    """A box of a body: its size and its centre in the body (3,) [m]."""

    size: np.ndarray
    centre: np.ndarray


@dataclass(frozen=True)
class Block:
    """A thrown robot: bodies with one box each, at most one hinge.

    Attributes:
        text: its URDF.
        boxes: their boxes by body, the first of which is the base.
        friction: coefficient in its file.
    """

    text: str
    boxes: Mapping[str, Shape]
    friction: float

    @staticmethod
    def read(path: Path) -> Block:
        """A block from its file."""
        text, boxes = path.read_text(), {}
        for name, body in re.findall(r'<link name="(\w+)">(.*?)</link>', text, re.S):
            shape = re.search(r"<collision>.*?</collision>", body, re.S)[0]
            size, centre = (
                np.array(re.search(f'{key}="([^"]+)"', shape)[1].split(), float)
                for key in ("size", "xyz")
            )
            boxes[name] = Shape(size, centre)
        friction = re.search(r'mu_static value="([^"]+)"', text)[1]
        return Block(text, boxes, float(friction))

    def damped(self, damping: float) -> Block:
        """The block with another damping of its hinge [N m s/rad]."""
        rule = f'<dynamics damping="{damping}"/></joint>'
        return replace(self, text=self.text.replace("</joint>", rule))

    @cached_property
    def width(self) -> float:
        """The longest side of a box [m]."""
        return max(box.size.max() for box in self.boxes.values())

    @cached_property
    def corners(self) -> tuple[Point, ...]:
        """The corners of all boxes as feet."""
        return tuple(
            Point(f"{body}_{k}", body, box.centre + np.array(signs) * box.size / 2)
            for body, box in self.boxes.items()
            for k, signs in enumerate(itertools.product((-1, 1), repeat=3))
        )

    def model(self) -> Model:
        """The model with its corners for feet."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "block.urdf"
            # Balls at the corners touch the table, not the boxes too.
            path.write_text(self.bare)
            return replace(load(path), text=self.bare, feet=self.corners)

    @property
    def bare(self) -> str:
        """Its URDF without collision shapes."""
        return re.sub(r"<collision>.*?</collision>", "", self.text, flags=re.S)


def read_tosses(path: Path) -> list[np.ndarray]:
    """Tosses of a pack's file, with right lengths.

    Returns:
        Of each toss (K, n) the first body's quaternion wxyz, its centre, the hinge's
        angle if there is one; its angular velocity in the world, its velocity, the
        hinge's rate. Those that begin with a speed that is doubtful are left out.
    """
    data = np.load(path)
    R_WB = Rotation.from_quat(data["quaternion_wxyz"], scalar_first=True)
    w_WB = R_WB.apply(data["angular_velocity_body"])
    q = [data["quaternion_wxyz"], LENGTHS * data["position"]]
    v = [w_WB, LENGTHS * data["velocity"]]
    if "joint_angle" in data:
        q.append(data["joint_angle"][:, None])
        v.append(data["joint_velocity"][:, None])
    ends = itertools.pairwise(data["start"])
    tosses = [np.hstack([*q, *v])[a:b] for a, b in ends]
    turning = slice(sum(a.shape[1] for a in q), None)
    return [t for t in tosses if np.linalg.norm(t[0, turning][:3]) < DOUBTFUL]


# --- simulators ---------------------------------------------------------------


class Simulated(ABC):
    """A simulator of a block with its parameters.

    Attributes:
        nq: number of positions, quaternion first.
    """

    nq: int

    @abstractmethod
    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Sets the state."""

    @abstractmethod
    def frame(self) -> np.ndarray:
        """Goes on by a frame; the positions (nq,)."""

    def run(self, toss: np.ndarray) -> np.ndarray:
        """Positions (K, nq) from the first frame of a toss."""
        self.start(toss[0, : self.nq], toss[0, self.nq :])
        return np.array([toss[0, : self.nq], *(self.frame() for _ in toss[1:])])


class HardContact(Simulated):
    """Our time stepping with hard contact."""

    def __init__(self, block: Block, friction: float):
        robot = build_robot(block.model(), base="quaternion", time_step=0)
        self.nq = robot.plant.num_positions()
        self._stepper = TimeStepper(robot, FRAME / SUBSTEPS, friction=friction)

    def start(self, q, v):
        self._q, self._v = q, v

    def frame(self):
        none = np.zeros(0)
        for _ in range(SUBSTEPS):
            self._q, self._v, _ = self._stepper.step(self._q, self._v, none)
        return self._q


class OurSap(Simulated):
    """Drake's SAP on the ground that our robots stand on."""

    def __init__(self, block: Block, friction: float):
        model = block.model()
        height = min(box.size.min() for box in block.boxes.values()) / 2
        self._plant = SapPlant(
            model,
            base="quaternion",
            time_step=FRAME / SUBSTEPS,
            ground=stiff_ground(model, height, friction, GRAVITY, Flat()),
        )
        self.nq = self._plant.plant.num_positions()

    def start(self, q, v):
        self._plant.start(q, v)

    def frame(self):
        for _ in range(SUBSTEPS):
            self._plant.advance(Command(np.zeros(0), np.zeros(0)))
        return self._plant.state()[0]


class PlainDrake(Simulated):
    """A plant as Drake's examples make it.

    Args:
        block: what is thrown.
        friction: coefficient of block and ground.
        balls: whether balls at the corners touch the ground, in place of the boxes.
        stiffness, dissipation: of the contact [N/m, s/m]; None for Drake's defaults.
    """

    def __init__(
        self,
        block: Block,
        friction: float,
        *,
        balls=False,
        stiffness=None,
        dissipation=None,
    ):
        builder = DiagramBuilder()
        plant, _ = AddMultibodyPlantSceneGraph(builder, FRAME / SUBSTEPS)
        material = ProximityProperties()
        # Two springs in series are half as stiff as each.
        given = {} if stiffness is None else {"point_stiffness": 2 * stiffness}
        given |= {} if dissipation is None else {"dissipation": dissipation}
        surface = CoulombFriction(friction, friction)
        AddContactMaterial(friction=surface, properties=material, **given)
        Parser(plant).AddModelsFromString(block.bare, "urdf")
        if balls:
            shapes = [(f.body, f.p_BF, Sphere(1e-9), f.name) for f in block.corners]
        else:
            shapes = [
                (body, box.centre, Box(*box.size), body)
                for body, box in block.boxes.items()
            ]
        for body, p_BG, shape, name in shapes:
            plant.RegisterCollisionGeometry(
                plant.GetBodyByName(body), RigidTransform(p_BG), shape, name, material
            )
        world = plant.world_body()
        plant.RegisterCollisionGeometry(
            world, RigidTransform(), HalfSpace(), "table", material
        )
        plant.Finalize()
        self._plant, self.nq = plant, plant.num_positions()
        self._simulator = Simulator(builder.Build())
        self._root = self._simulator.get_mutable_context()

    def start(self, q, v):
        self._root.SetTime(0.0)
        self._context = self._plant.GetMyMutableContextFromRoot(self._root)
        self._plant.SetPositionsAndVelocities(self._context, np.r_[q, v])
        self._simulator.Initialize()
        self._frames = 0

    def frame(self):
        self._frames += 1
        self._simulator.AdvanceTo(self._frames * FRAME)
        return self._plant.GetPositions(self._context)


class MuJoCo(Simulated):
    """A model of MuJoCo.

    Args:
        block: what is thrown.
        friction: coefficient of block and ground.
        solref: time constant [s] and damping ratio of contacts; None for the defaults.
    """

    def __init__(self, block: Block, friction: float, *, solref=None):
        spec = mujoco.MjSpec.from_string(block.text)
        spec.option.timestep = FRAME / SUBSTEPS
        spec.body(next(iter(block.boxes))).add_freejoint()
        for geom in spec.geoms:  # they touch the table, not each other
            geom.contype, geom.conaffinity = 0, 1
        table = spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1]
        )
        table.contype, table.conaffinity = 1, 0
        for geom in spec.geoms:
            geom.friction[0] = friction
            if solref is not None:
                geom.solref = solref
        self._model = spec.compile()
        self._data = mujoco.MjData(self._model)
        self.nq = self._model.nq

    def start(self, q, v):
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[:] = np.r_[q[4:7], q[:4], q[7:]]
        # Its angular velocity is the body's.
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, q[:4])
        self._data.qvel[:] = np.r_[v[3:6], R.reshape(3, 3).T @ v[:3], v[6:]]

    def frame(self):
        for _ in range(SUBSTEPS):
            mujoco.mj_step(self._model, self._data)
        q = self._data.qpos
        return np.r_[q[3:7], q[:3], q[7:]]


# --- errors and fits ----------------------------------------------------------


def errors(block: Block, toss: np.ndarray, path: np.ndarray) -> dict[str, float]:
    """What a simulated toss is off by, means over its frames.

    Returns:
        `position` of the first body's centre [widths], `rotation` of it [deg], `hinge`
        [deg], `face`: whether it ends on the right one.
    """
    nq = path.shape[1]
    real = toss[:, :nq]
    apart = np.linalg.norm(path[:, 4:7] - real[:, 4:7], axis=1) / block.width
    R, R_real = (Rotation.from_quat(q[:, :4], scalar_first=True) for q in (path, real))
    turn = np.degrees((R.inv() * R_real).magnitude())
    up, up_real = (r[-1].inv().apply([0, 0, 1]) for r in (R, R_real))
    hinge = np.abs(np.angle(np.exp(1j * (path[:, 7:] - real[:, 7:]))))
    return {
        "position": float(apart.mean()),
        "rotation": float(turn.mean()),
        "hinge": float(np.degrees(hinge).mean()) if nq > 7 else 0.0,
        "face": float(
            np.abs(up).argmax() == np.abs(up_real).argmax() and up @ up_real > 0
        ),
    }


def judged(block: Block, simulator: Simulated, tosses) -> dict[str, np.ndarray]:
    """Errors of tosses (T,) by name, and whether each `failed`: such a run counts as
    one that stays where it began."""
    rows = []
    for toss in tosses:
        failed = False
        try:
            path = simulator.run(toss)
        except (DrakebotsError, RuntimeError):
            failed = True
            path = np.repeat(toss[:1, : simulator.nq], len(toss), axis=0)
        rows.append(errors(block, toss, path) | {"failed": float(failed)})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def fitted(block: Block, make, start: Mapping[str, float], tosses, evaluations: int):
    """Parameters near a start, all positive, that make the mean error of position
    least: Nelder and Mead's method on their logarithms."""

    def loss(x: np.ndarray) -> float:
        simulator = make(**dict(zip(start, np.exp(x))))
        return judged(block, simulator, tosses)["position"].mean()

    x0 = np.log(list(start.values()))
    first = np.vstack([x0, x0 + 0.5 * np.eye(len(x0))])
    options = {"maxfev": evaluations, "initial_simplex": first, "xatol": 0.02}
    found = minimize(loss, x0, method="Nelder-Mead", options=options)
    return dict(zip(start, map(float, np.exp(found.x))))


def in_flight(block: Block, toss: np.ndarray) -> int:
    """Number of frames before the first with a corner within 20 mm of the table."""
    robot = build_robot(block.model(), base="quaternion", time_step=0)
    plant, context = robot.plant, robot.plant.CreateDefaultContext()
    for k, row in enumerate(toss):
        plant.SetPositions(context, row[: plant.num_positions()])
        heights = [
            frame.CalcPoseInWorld(context).multiply(p)[2]
            for frame, p in robot.frames(robot.model.feet)
        ]
        if min(heights) < 0.02:
            return k
    return len(toss)


def hinge_damping(block: Block, tosses: Sequence[np.ndarray]) -> float:
    """Damping of the hinge [N m s/rad] with which flights until the first contact end
    nearest to the angles that were seen, by the sum of the differences: a few tosses
    are far off."""
    flights = [toss[: in_flight(block, toss)] for toss in tosses]
    flights = [toss for toss in flights if len(toss) >= 8]

    def loss(damping: float) -> float:
        robot = build_robot(
            block.damped(damping).model(), base="quaternion", time_step=0
        )
        stepper = TimeStepper(robot, FRAME / SUBSTEPS)
        wrong = 0.0
        for toss in flights:
            q, v = np.split(toss[0], [8])
            for _ in range(SUBSTEPS * (len(toss) - 1)):
                q, v, _ = stepper.step(q, v, np.zeros(0))
            wrong += np.abs(np.angle(np.exp(1j * (q[7] - toss[-1, 7]))))
        return wrong

    bounds = {"bounds": (0.0, 0.02), "method": "bounded", "options": {"xatol": 1e-4}}
    return float(minimize_scalar(loss, **bounds).x)


# --- the study ----------------------------------------------------------------


@dataclass(frozen=True)
class Contender:
    """A simulator to fit.

    Attributes:
        name: its row's name.
        make: makes one of a block and its parameters.
        start: parameters that a fit starts from, or none to fit.
        plain: makes one of a block and a friction coefficient, with its own defaults.
    """

    name: str
    make: Callable[..., Simulated]
    start: Mapping[str, float]
    plain: Callable[..., Simulated]


class _MuJoCoBySpring(MuJoCo):
    """MuJoCo with a time constant [s] and a damping ratio of contacts."""

    def __init__(self, block, friction, time_constant, damping_ratio):
        super().__init__(block, friction, solref=[time_constant, damping_ratio])


FRICTION = 0.225  # where fits start: that of sliding in the data
CONTENDERS = (
    Contender("hard", HardContact, {"friction": FRICTION}, HardContact),
    Contender("sap", OurSap, {"friction": FRICTION}, OurSap),
    Contender("drake boxes", PlainDrake, {}, PlainDrake),
    Contender(
        "drake",
        partial(PlainDrake, balls=True),
        {"friction": FRICTION, "stiffness": 15e3, "dissipation": 1.3},
        partial(PlainDrake, balls=True),
    ),
    Contender(
        "mujoco",
        _MuJoCoBySpring,
        {"friction": FRICTION, "time_constant": 0.02, "damping_ratio": 1.0},
        MuJoCo,
    ),
)


FITTED = tuple(one.name for one in CONTENDERS if one.start)


def published(folder: Path) -> dict[str, partial]:
    """Simulators with the parameters that Acosta et al. (2021) identified."""
    path = folder / "authors_parameters.json"
    if not path.is_file():
        return {}
    found = json.loads(path.read_text())["identified_by_acosta_2021"]
    drake, by_mujoco = found["drake"], found["mujoco"]
    return {
        "drake, Acosta's": partial(
            PlainDrake,
            friction=drake["mu"],
            balls=True,
            stiffness=drake["stiffness_N_m"],
            dissipation=drake["hunt_crossley_dissipation_s_m"],
        ),
        "mujoco, Acosta's": partial(
            MuJoCo,
            friction=by_mujoco["mu_tangent"],
            solref=[-by_mujoco["stiffness"], -by_mujoco["damping"]],
        ),
    }


def study(block: Block, folder: Path, train, test, evaluations: int) -> dict[str, dict]:
    """Errors of all simulators by name, {name: (T,)}, with their parameters."""
    found: dict[str, dict] = {}

    def add(name: str, simulator: Simulated, parameters: Mapping) -> None:
        found[name] = judged(block, simulator, test) | {"parameters": dict(parameters)}
        mean = found[name]["position"].mean()
        print(f"{name}: {mean:.3f} widths, {dict(parameters)}", flush=True)

    for one in CONTENDERS:
        file = {"friction": block.friction}
        add(f"{one.name}, as it comes", one.plain(block, **file), file)
    for name, make in published(folder).items():
        given = {k: v for k, v in make.keywords.items() if k != "balls"}
        add(name, make(block), given)
    for one in CONTENDERS:
        if one.start:
            make = partial(one.make, block)
            count = evaluations if len(one.start) > 1 else max(4, evaluations // 4)
            parameters = fitted(block, make, one.start, train, count)
            add(f"{one.name}, fitted", make(**parameters), parameters)
    return found


def plot(found: Mapping[str, dict], path: Path) -> Path:
    """Share of tosses below an error, of all simulators: a colour each, full lines
    where parameters are fitted."""
    drawing = Figure(figsize=(10, 4), layout="constrained")
    axes = drawing.subplots(1, 2)
    kinds = list(dict.fromkeys(name.partition(",")[0] for name in found))
    for axis, key, unit in zip(axes, ("position", "rotation"), ("widths", "deg")):
        for name, row in found.items():
            kind, _, state = name.partition(", ")
            style = {"fitted": "-", "as it comes": ":"}.get(state, "--")
            error = np.sort(row[key])
            share = np.arange(1, len(error) + 1) / len(error)
            color = f"C{kinds.index(kind)}"
            axis.plot(error, share, style, color=color, label=name)
        axis.set_xlabel(f"mean error of {key} [{unit}]")
        axis.set(ylabel="share of tosses", ylim=(0, 1))
        axis.grid(alpha=0.25)
    axes[0].set_xlim(0, 2)
    axes[1].legend(fontsize=7)
    return save(drawing, path)


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the study; prints a table and one JSON object, returns it."""
    parser = Measurement(__doc__, quick="two tosses to fit, four to judge")
    add_pack(parser, "cube_tosses")
    parser.add_argument("--pack", choices=PACKS, default="cube_tosses", help="what")
    parser.add_argument(
        "--file", type=Path, help="judge all tosses of this file (.npz)"
    )
    parser.add_argument("--fit", type=int, help="tosses to fit; 40, 2 when quick")
    parser.add_argument("--test", type=int, help="tosses to judge; all, 4 when quick")
    parser.add_argument("-o", "--output", type=Path, help="PNG to draw")
    args = parser.parse_args(argv)
    model, own = PACKS[args.pack]
    folder = pack_folder(args.pack, args.data, (model, own))
    block, tosses = Block.read(folder / model), read_tosses(folder / own)
    half = len(tosses) // 2
    train = spread(tosses[:half], args.fit or (2 if args.quick else 40))
    test = read_tosses(args.file) if args.file else tosses[half:]
    test = spread(test, args.test or (4 if args.quick else len(test)))
    facts = {}
    if len(block.boxes) > 1:
        facts["hinge_damping"] = figure(hinge_damping(block, train), "N m s/rad")
        block = block.damped(facts["hinge_damping"]["value"])
    found = study(block, folder, train, test, 4 if args.quick else 80)
    rows = {
        name: {
            "position_widths": float(row["position"].mean()),
            "median_widths": float(np.median(row["position"])),
            "rotation_deg": float(row["rotation"].mean()),
            "hinge_deg": float(row["hinge"].mean()),
            "right_face": float(row["face"].mean()),
            "failed": int(row["failed"].sum()),
        }
        for name, row in found.items()
    }
    print_table(f"{args.pack}: {len(test)} tosses", rows)
    if args.output:
        plot(found, args.output)
    fits = {name: rows[f"{name}, fitted"]["position_widths"] for name in FITTED}
    ratios = {
        f"toss_error_{ours}_vs_{peer}": figure(fits[name] / fits[peer], target=1.0)
        for ours, name in (("ours", "sap"), ("hard", "hard"))
        for peer in ("drake", "mujoco")
    }
    parameters = {name: row["parameters"] for name, row in found.items()}
    facts |= {"pack": args.pack, "tosses": len(test), "fitted_on": len(train)}
    return parser.report(ratios | facts | {"rows": rows, "parameters": parameters})


def spread(tosses: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    """At most `count` of them, evenly."""
    index = np.linspace(0, len(tosses) - 1, min(count, len(tosses))).round().astype(int)
    return [tosses[k] for k in index]


if __name__ == "__main__":
    with one_line_errors("tosses"):
        main()
