"""Planted parameters found again from noisy measurements, by `drakebots identify`.

python scripts/bench/identify.py
python scripts/bench/identify.py --quick    # one case of the limb
python scripts/bench/identify.py --only loop --cases 5

Each case draws the parameters of a model anew, by up to a quarter from those in its
file, simulates it by another program than the one that fits, in shorter steps, and adds
noise of 1 % of each signal's motion (its standard deviation):

    loop    a four-bar leg under a body that slides and stands on rough ground; by
            Stewart and Trinkle's steps: friction, mass, stiffness, damping
    limb    a limb of the gecko, bent and shaken by its pressure; by Drake's SAP:
            stiffness and damping of the whole limb
    skin    the skinned leg, both joints to and fro; torques are measured too: the
            skin's modulus, and stiffness and damping of its servos. By the fit's own
            program and steps, since no other has such skins, so that its intervals,
            which count steps, are wider than its errors.

The error is the largest of a case's parameters, |found / planted - 1|, and `covered`
the share of all parameters that lie in their intervals of 95 %.

JSON: identify_planted_error, identify_planted_median, covered, cases, wall_s.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr
from measurement import Measurement
from pydrake.systems.analysis import Simulator

from drakebots.core.files import write_csv
from drakebots.formats import limbs_sdf, load
from drakebots.identify import Identification, identify
from drakebots.multibody import Limb, LimbMap, TimeStepper, build_robot
from drakebots.results import Result
from drakebots.skin import SkinSimulation, build_stepper
from drakebots.skin.file import load_skinned

NOISE = 0.01
SAMPLE, STEP = 2e-3, 5e-5
FINE = 1e-5
"""Step of Drake's plant, whose gains, taken at its end, damp a limb the more [s]."""

LEG_SDF = """<sdf version="1.10"><model name="leg">
<link name="rail">
<inertial><mass>0.02</mass><inertia><ixx>1e-5</ixx><iyy>1e-5</iyy>
<izz>1e-5</izz></inertia></inertial></link>
<link name="body">
<inertial><mass>0.5</mass><inertia><ixx>1e-3</ixx><iyy>1e-3</iyy>
<izz>1e-3</izz></inertia></inertial></link>
<link name="crank_link">
<inertial><pose>0 0 -0.04 0 0 0</pose><mass>0.06</mass>
<inertia><ixx>4e-5</ixx><iyy>4e-5</iyy><izz>4e-6</izz></inertia></inertial></link>
<link name="rocker_link"><pose>0.04 0 0 0 0 0</pose>
<inertial><pose>0 0 -0.04 0 0 0</pose>
<mass>0.06</mass><inertia><ixx>4e-5</ixx><iyy>4e-5</iyy><izz>4e-6</izz></inertia>
</inertial></link>
<link name="shoe"><pose>0 0 -0.08 0 0 0</pose>
<inertial><pose>0.02 0 -0.01 0 0 0</pose>
<mass>0.05</mass><inertia><ixx>1e-5</ixx><iyy>1e-5</iyy><izz>1e-5</izz></inertia>
</inertial></link>
<joint name="along" type="prismatic"><parent>world</parent>
<child>rail</child><axis>
<xyz>1 0 0</xyz><limit><effort>0</effort></limit></axis></joint>
<joint name="up" type="prismatic"><parent>rail</parent>
<child>body</child><axis>
<xyz>0 0 1</xyz><limit><effort>0</effort></limit></axis>
</joint><joint name="crank" type="revolute"><parent>body</parent>
<child>crank_link</child><axis>
<xyz>0 1 0</xyz>
<dynamics><damping>0.02</damping><spring_stiffness>1.0</spring_stiffness>
<spring_reference>0</spring_reference></dynamics></axis></joint>
<joint name="rocker" type="revolute"><parent>body</parent>
<child>rocker_link</child>
<axis><xyz>0 1 0</xyz><limit><effort>0</effort></limit></axis></joint>
<joint name="ankle" type="revolute"><parent>crank_link</parent>
<child>shoe</child><axis>
<xyz>0 1 0</xyz><limit><effort>0</effort></limit></axis></joint>
</model></sdf>
"""

LEG_YAML = """feet:
  foot: {body: shoe, p: [0.02, 0, -0.02]}
loops:
  bar: {A: rocker_link, p_A: [0, 0, -0.08], B: shoe, p_B: [0.04, 0, 0],
        axis: [0, 1, 0], rows: planar}
"""

WALL = """<joint name="wall" type="fixed"><parent>world</parent>
<child>limb_root</child></joint></model>"""


@dataclass(frozen=True)
class Kind:
    """A kind of robot with parameters to find.

    Attributes:
        write: writes its model into a folder; gives the path.
        run: simulates a model for a seed: heads and rows of a table.
        fit: what is found.
        planted: names of the YAML by parameter, each drawn as one factor.
        options: more of the identification.
        measured: kinds of signals with noise.
    """

    write: Callable[[Path], Path]
    run: Callable[[Path, Mapping[str, float], int], tuple[list[str], np.ndarray]]
    fit: Sequence[str]
    planted: Mapping[str, Sequence[str]]
    options: Mapping[str, object]
    measured: tuple[str, ...] = ("position",)


def write_leg(folder: Path) -> Path:
    """The four-bar leg."""
    (folder / "leg.drakebots.yaml").write_text(LEG_YAML)
    path = folder / "leg.sdf"
    path.write_text(LEG_SDF)
    return path


def run_leg(path: Path, values: Mapping[str, float], seed: int, duration: float = 0.8):
    """The leg slides, stops and shuffles."""
    rng = np.random.default_rng(seed)
    robot = build_robot(load(path, parameters=values), base="fixed")
    stepper = TimeStepper(robot, STEP, friction=values["friction"])
    names = robot.plant.GetPositionNames(always_add_suffix=False)
    q, v = np.zeros(5), np.zeros(5)
    q[1], v[0] = 0.1, rng.uniform(0.5, 0.9)
    phase, count = rng.uniform(0, 2 * np.pi, 2), round(duration / STEP)
    rows = []
    for k in range(count + 1):
        t = STEP * k
        effort = 0.15 * np.sin(2 * np.pi * 3 * t + phase[0])
        effort += 0.1 * np.sin(2 * np.pi * 5 * t + phase[1])
        rows.append([t, *q, effort])
        q, v, _ = stepper.step(q, v, np.array([effort]))
    heads = [
        "time [s]",
        *(f"position.{n} [{'m' if n in names[:2] else 'rad'}]" for n in names),
    ]
    return [*heads, "torque.crank [N m]"], np.array(rows)[:: round(SAMPLE / STEP)]


LIMB = {
    "name": "limb",
    "parent": "wall",
    "length": 0.091,
    "stiffness": 0.2,
    "mass": 0.03,
    "radius": 0.008,
    "damping": 4e-3,
    "tip_mass": 0.01,
    "segments": 4,
}
"""A leg of the gecko and its foot; see models/gecko/params.yaml."""


def write_limb(folder: Path) -> Path:
    """A limb whose flange is in the wall."""
    path = folder / "limb.sdf"
    path.write_text(limbs_sdf([Limb(**LIMB)]).replace("</model>", WALL))
    return path


def run_limb(path: Path, values: Mapping[str, float], seed: int):
    """The limb follows a desired angle for 1.2 s, in Drake."""
    rng, limb = np.random.default_rng(seed), Limb(**LIMB)
    robot = build_robot(load(path, parameters=values), time_step=FINE, base="fixed")
    plant = robot.plant
    limbs, simulator = LimbMap(plant, [limb]), Simulator(plant)
    context = simulator.get_mutable_context()
    port = plant.get_desired_state_input_port(limbs.instance)
    phase, rows = rng.uniform(0, 2 * np.pi, 2), []
    for k in range(round(1.2 / FINE) + 1):
        t = FINE * k
        alpha = 0.9 * np.sin(2 * np.pi * 3 * t + phase[0])
        alpha += 0.7 * np.sin(2 * np.pi * 8 * t + phase[1])
        desired = limbs.desired(np.array([alpha]))
        rows.append([t, *plant.GetPositions(context), *desired[: len(desired) // 2]])
        port.FixValue(context, desired)
        simulator.AdvanceTo(FINE * (k + 1))
    names = limb.joints
    heads = ["time [s]", *(f"position.{n} [rad]" for n in names)]
    return [*heads, *(f"target.{n} [rad]" for n in names)], np.array(rows)[
        :: round(SAMPLE / FINE)
    ]


SKIN_STEP = 5e-3
HERTZ = np.array([[2.0, 3.0], [11.0, 14.0]])
"""Frequencies of hip and knee: of a swing and of a shake, since one frequency would not
tell a servo's stiffness from its damping [Hz]."""


def write_skinned(folder: Path) -> Path:
    """The skinned leg, as it came."""
    return load("skinned_leg").path


def run_skinned(path: Path, values: Mapping[str, float], seed: int):
    """Hip and knee swing for 0.4 s, from rest; samples are lines between steps."""
    rng, t = np.random.default_rng(seed), np.arange(0, 0.4001, SKIN_STEP)
    robot = load_skinned(replace(load(path), parameters=values))
    rest, phase = robot.joint_positions(robot.rest_positions), rng.uniform(0, 6, (2, 2))
    waves = np.sin(np.multiply.outer(t, 2 * np.pi * HERTZ) + phase)
    rise = np.minimum(t / 0.1, 1.0)[:, None]
    targets = rest + rise * (0.3 * waves[:, 0] + 0.1 * waves[:, 1])
    stepper = build_stepper(SkinSimulation(time_step=SKIN_STEP), robot)
    state, rows = stepper.start(), []
    for end, target in zip(t[1:], targets[1:]):
        result = stepper.step(state, servo=robot.servo(target))
        state = result.state
        rows.append([end, *state.q, *result.torques, *target])
    first = [0.0, *stepper.home[0], *np.zeros(2), *targets[0]]
    columns = np.array([first, *rows]).T
    samples = np.arange(0, 0.4001, 1e-3)
    kinds = ("position", "rad"), ("torque", "N m"), ("target", "rad")
    heads = [f"{kind}.{j} [{unit}]" for kind, unit in kinds for j in robot.joints]
    table = [np.interp(samples, t, column) for column in columns]
    return ["time [s]", *heads], np.transpose(table)


def _bends(kind: str) -> list[str]:
    return [f"{kind}:{name}" for name in Limb(**LIMB).joints]


KINDS = {
    "loop": Kind(
        write_leg,
        run_leg,
        ("friction", "mass:body", "stiffness:crank", "damping:crank"),
        {n: [n] for n in ("friction", "mass:body", "stiffness:crank", "damping:crank")},
        {},
    ),
    "limb": Kind(
        write_limb,
        run_limb,
        ("stiffness:limb_bend_*~", "damping:limb_bend_*~"),
        {
            "stiffness:limb_bend_*~": _bends("stiffness"),
            "damping:limb_bend_*~": _bends("damping"),
        },
        {},
    ),
    "skin": Kind(
        write_skinned,
        run_skinned,
        ("youngs_modulus:*~", "servo.stiffness", "servo.damping"),
        {
            "youngs_modulus:*~": ["youngs_modulus:0", "youngs_modulus:1"],
            "servo.stiffness": ["servo.stiffness"],
            "servo.damping": ["servo.damping"],
        },
        {"time_step": SKIN_STEP},
        ("position", "torque"),
    ),
}


def case(name: str, seed: int, folder: Path, noise: float = NOISE):
    """One case: found result, and planted values in the result's terms."""
    kind, rng = KINDS[name], np.random.default_rng(1000 + seed)
    path = kind.write(folder)
    problem = Identification(path, folder / "run.csv", kind.fit, **kind.options)
    nominal = nominal_values(path, kind)
    shares = {p: rng.uniform(0.75, 1.25) for p in kind.planted}
    values = {n: s * nominal[n] for p, s in shares.items() for n in kind.planted[p]}
    heads, rows = kind.run(path, values, seed)
    measured = [i for i, head in enumerate(heads) if head.startswith(kind.measured)]
    spread = rows[:, measured].std(axis=0)
    rows[:, measured] += noise * spread * rng.normal(size=(len(rows), len(measured)))
    write_csv(folder / "run.csv", heads, rows)
    planted = {p: s if p.endswith("~") else values[p] for p, s in shares.items()}
    return identify(problem), planted


def nominal_values(path: Path, kind: Kind) -> dict[str, float]:
    """The values in a model's file of what is planted."""
    known = {"friction": 0.6}
    if kind is KINDS["skin"]:
        return load_skinned(path).parameters
    plant = build_robot(load(path), base="fixed").plant
    for names in kind.planted.values():
        for name in names:
            what, _, part = name.partition(":")
            if what == "mass":
                known[name] = plant.GetBodyByName(part).default_mass()
            elif what == "damping":
                known[name] = float(
                    plant.GetJointByName(part).default_damping_vector()[0]
                )
            elif what == "stiffness" and plant.HasJointActuatorNamed(part):
                motor = plant.GetJointActuatorByName(part)
                gains = motor.has_controller() and motor.get_controller_gains().p
                known[name] = gains or 1.0
            elif what == "stiffness":
                known[name] = 1.0
    return known


def judge(found: Result, planted: Mapping[str, float]) -> tuple[float, list[bool]]:
    """The largest relative error, and which intervals hold their parameter."""
    data: xr.Dataset = found.data
    errors, held = [], []
    for name, value in planted.items():
        row = data.sel(parameter=name)
        errors.append(abs(float(row.value) / value - 1))
        held.append(bool(float(row.low) <= value <= float(row.high)))
    return max(errors), held


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs it; prints a table and one JSON object."""
    parser = Measurement(__doc__, quick="one case of the limb")
    parser.add_argument("--cases", type=int, default=20, help="cases of each kind")
    parser.add_argument("--only", help="kinds, separated by commas")
    args = parser.parse_args(argv)
    count = 1 if args.quick else args.cases
    names = args.only.split(",") if args.only else list(KINDS)
    names = ["limb"] if args.quick else names
    worst, median, covered, wall = {}, {}, {}, {}
    print(f"{'kind':8}{'case':>6}{'error':>10}{'held':>8}{'wall [s]':>10}  verdict")
    for name in names:
        errors, held = [], []
        began = time.perf_counter()
        for seed in range(count):
            since = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found, planted = case(name, seed, Path(folder))
            error, inside = judge(found, planted)
            errors.append(error)
            held += inside
            spent = time.perf_counter() - since
            share = f"{sum(inside)}/{len(inside)}"
            print(
                f"{name:8}{seed:6}{error:10.2%}{share:>8}{spent:10.1f}  {found.verdict}"
            )
        worst[name], median[name] = max(errors), float(np.median(errors))
        covered[name] = float(np.mean(held))
        wall[name] = time.perf_counter() - began
    return parser.report(
        {
            "identify_planted_error": worst,
            "identify_planted_median": median,
            "covered": covered,
            "cases": count,
            "wall_s": wall,
        }
    )


if __name__ == "__main__":
    main()
