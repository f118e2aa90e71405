"""Two pneumatic geckos on planes of 0 to 76 degrees: Drake's robot beside the camera.

python scripts/evidence/inclines.py ../shared/data -o inclines.png    # four minutes
python scripts/evidence/inclines.py --quick                           # two rows

The pack real/gecko_inclines has speeds and bending angles of the robots vS11 and v40
(Schiller, Seibel, Schlattmann, Front. Neurorobot. 13:106, 2019), with the pressures
of the flat ("std") and with those tuned to the incline ("adj_new"). The robot is
`gecko.Drake`: limbs as elastic chains, welds for cups, gravity tilted. Given are
lengths, timings and, as the angles that the limbs would take alone, those measured on
the flat; the torso's from the raw logs (`key_frames.csv`), for the table's are 17 deg
smaller with vS11 at every incline, and the speeds are those of the logs.
Only the ratio of stiffness and weight counts at rest; masses are stated nowhere, so it
is that of `models/gecko` (silicone of 1.1 g/cm^3), of a section that grows as the
chambers' volumes do. Parameters:

    derived    solid limbs of silicone of 1 MPa; nothing is fitted
    flat       the torso's free angle such that the speed on the flat is the measured
               one; stiffness from pressures on the flat, K dalpha = p (V/l) h/2 with
               the chamber's volume V and half of a limb's height as its lever, which
               is assumed
    std 28     as flat, but one modulus a robot from its speed by "std" at 28 deg

On the flat gravity has no part along the plane: no speed there tells stiffness from
weight. Speeds are along x, over the logged time of a cycle. The logs also show how far
feet moved while they were held.

JSON: incline_speed_error_mean, incline_speed_error_predicted_mean,
incline_speed_error_derived_mean, incline_angle_error_deg, incline_rank_correlation,
held_feet, rows.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from packs import add_pack, pack_folder, read_rows
from scipy.optimize import brentq
from scipy.stats import spearmanr

from drakebots.cli.output import one_line_errors, print_rows
from drakebots.plots import save
from drakebots.robots.gecko import CupLimits, Drake, Walk, gecko, simulate_walk
from drakebots.robots.gecko.engines import PhaseTimes
from drakebots.robots.gecko.model import (
    FEET,
    FOOT_MARKERS,
    bending_stiffness,
    parameters,
)

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from measurement import Measurement, figure

PACK = "gecko_inclines"
FILES = ("incline_table.csv", "patterns.csv", "key_frames.csv")
SIZES = {"vS11": "small", "v40": "large"}
VOLUMES = {"vS11": 3.76e-6, "v40": 11.05e-6}
"""Volume of a chamber [m^3], from the pack."""
DELAY = 0.14 / 6
"""What the robots' loop adds to a step of the pattern: 2.09 to 2.19 s a cycle were
logged for 2.0 s [s]."""
TIMES = PhaseTimes(fix=0.1, free=0.1, move=0.8)
"""Phases of vS11. Those of v40, 3.0 s of motion, are simulated alike: at 48 deg that
makes its shift 5 % longer."""
HALF_CYCLE_AT_MOST = 1.5
"""Frames further apart are not of successive half cycles [s]."""
TUNED_FOR = 48.0
"""Incline whose pattern "adj_new" has at 0 deg [deg]."""
CASES = (("vS11", "std"), ("vS11", "adj_new"), ("v40", "std"))
ANGLES = ("FL_on", "torso_on", "RL_on", "FL_off", "RL_off")
HOLDS = replace(CupLimits(), suction=1e3, fall=10.0)
"""Feet that stay where they are, as the pack says of them, however far one slides."""


@dataclass(frozen=True)
class Reached:
    """What a walk reached: shift a cycle along x [m], angles of `ANGLES` (5,) [rad]."""

    shift: float
    angles: np.ndarray


@dataclass(frozen=True)
class Row:
    """A row of the table: robot, pattern, incline [deg], speed [m/s] and its spread,
    angles of `ANGLES` (5,) [rad]."""

    robot: str
    pattern: str
    incline: float
    speed: float
    spread: float
    angles: np.ndarray


@dataclass(frozen=True)
class Pack:
    """The tables of the pack."""

    rows: Sequence[Row]
    patterns: Sequence[Mapping]
    frames: Sequence[Mapping]

    def row(self, robot: str, pattern: str, incline: float) -> Row:
        """One row."""
        key = robot, pattern, incline
        return next(r for r in self.rows if (r.robot, r.pattern, r.incline) == key)

    def pressures(self, robot: str, incline: float) -> np.ndarray:
        """Reference pressures of front legs, torso and rear legs (3,) [Pa], means of
        both half cycles, of the pattern for an incline [deg]."""
        key = robot, incline
        half = [
            p
            for p in self.patterns
            if (p["robot"], p["pattern_for_incline_deg"]) == key
        ]
        highest = [max(p[f"p{k}_ref_bar"] for p in half) for k in range(6)]
        pairs = ((0, 1), (2, 3), (4, 5))
        return 1e5 * np.array([(highest[a] + highest[b]) / 2 for a, b in pairs])

    def cycle(self, robot: str) -> float:
        """Logged time of a cycle of its pattern for 0 deg [s]."""
        key = robot, 0.0
        steps = [
            p["duration_s"]
            for p in self.patterns
            if (p["robot"], p["pattern_for_incline_deg"]) == key
        ]
        return sum(steps) + DELAY * len(steps)

    def torso(self, robot: str, pattern: str) -> float:
        """Mean bending of the torso at the ends of half cycles on the flat [rad]."""
        pattern = "adj" if pattern == "adj_new" else pattern  # the same data there
        key = robot, pattern, 0.0
        ends = [
            abs(f["alpha_torso_deg"])
            for f in self.frames
            if _case(f) == key and f["phase"].startswith("end of")
        ]
        return float(np.radians(np.mean(ends)))

    def held_feet(self) -> list[dict]:
        """How far feet moved up the plane while held through a half cycle [mm]."""
        found = []
        for a, b in pairwise(self.frames):
            same = _case(a) == _case(b) and a["run"] == b["run"]
            if not (same and 0 < b["time_s"] - a["time_s"] < HALF_CYCLE_AT_MOST):
                continue
            held = f"{int(a['fixed_FL_FR_RL_RR']):04d}"
            for foot, marker, fixed in zip(FEET, FOOT_MARKERS, held):
                moved = 1e3 * (b[f"x{marker}_m"] - a[f"x{marker}_m"])
                if fixed == "1" and np.isfinite(moved):
                    robot, pattern, incline = _case(a)
                    where = {"robot": robot, "pattern": pattern, "incline_deg": incline}
                    to = {"to": b["phase"], "foot": foot, "moved_mm": moved}
                    found.append(where | to)
        return found

    def free(self, row: Row, torso: float | None = None) -> np.ndarray:
        """Angles of `ANGLES` (5,) [rad] that the limbs of a row would take alone: those
        on the flat, in proportion to the pressure where the pattern is another.

        Args:
            row: the row.
            torso: of the torso on the flat [rad]; None for that of the logs.
        """
        flat = self.row(row.robot, row.pattern, 0.0).angles.copy()
        flat[1] = self.torso(row.robot, row.pattern) if torso is None else torso
        if row.pattern == "std" or not row.incline:
            return flat
        share = self.pressures(row.robot, row.incline)
        share = share / self.pressures(row.robot, TUNED_FOR)
        rest = np.array([flat[3], 0.0, flat[4]])
        return np.concatenate([rest + share * (flat[:3] - rest), flat[3:]])


def _case(frame: Mapping) -> tuple:
    return frame["robot"], frame["pattern"], frame["incline_deg"]


def read_pack(folder: Path) -> Pack:
    """The pack's rows of `CASES`, and its patterns."""
    rows = [
        Row(
            r["robot"],
            r["pattern"],
            r["incline_deg"],
            r["speed_x_m_s"],
            r["speed_x_std_m_s"],
            np.radians([r[f"alpha_{a}_deg"] for a in ANGLES]),
        )
        for r in read_rows(folder / "incline_table.csv")
        if (r["robot"], r["pattern"]) in CASES
    ]
    return Pack(rows, *(read_rows(folder / name) for name in FILES[1:]))


# --- parameters ------------------------------------------------------------------


def growth(robot: str) -> float:
    """Area of a limb's section beside the small robot's, as that of its chamber."""
    areas = {k: V / gecko(SIZES[k]).leg for k, V in VOLUMES.items()}
    return areas[robot] / areas["vS11"]


def modulus_of(robot: str, stiffness: float) -> float:
    """Modulus [Pa] with which the model's legs, whose section does not grow, have the
    ratio of stiffness [N m/rad] and weight of the robot's."""
    own = bending_stiffness(gecko(SIZES[robot]), 1.0)["leg"]
    return stiffness / own / growth(robot)


def solid_modulus(robot: str) -> float:
    """That of solid legs of the silicone of `models/gecko` [Pa]."""
    solid = bending_stiffness(gecko(SIZES[robot]))["leg"]
    return modulus_of(robot, solid * growth(robot) ** 2)


def pressed_modulus(pack: Pack, robot: str) -> float:
    """That of the legs' pressures and angles on the flat [Pa]."""
    row, pressures = pack.row(robot, "std", 0.0), pack.pressures(robot, 0.0)
    bent = row.angles[[0, 2]] - row.angles[[3, 4]]
    height = parameters().table("section")["leg"]["height"] * np.sqrt(growth(robot))
    area = VOLUMES[robot] / gecko(SIZES[robot]).leg
    moments = pressures[[0, 2]] * area * height / 2
    return modulus_of(robot, float(np.mean(moments / bent)))


# --- walks -----------------------------------------------------------------------


def walk(
    robot: str, incline: float, free: np.ndarray, modulus: float, cycles: int = 2
) -> Reached:
    """A walk up an incline [deg] by the angles (5,) [rad] of limbs alone, `ANGLES`."""
    front, torso, rear, front_off, rear_off = free
    ends = (front_off, front, torso, rear_off, rear)
    mirrored = (front, front_off, -torso, rear, rear_off)
    angle = float(np.radians(incline))
    engine = Drake(
        incline=angle, limits=HOLDS, pressure=False, modulus=modulus, times=TIMES
    )
    found = simulate_walk(
        Walk(
            cycles=cycles,
            robot=gecko(SIZES[robot]),
            references=(ends, mirrored),
            engine=engine,
        )
    )
    half, data = engine.phases.half_cycle, found.data
    x = data.marker_position.sel(marker="front", axis="x")
    before = x.sel(time=2 * (cycles - 1) * half, method="nearest")
    # Just before feet are released; the first half cycle is the one with q1 > 0.
    b, a = (
        data.alpha.sel(time=k * half + TIMES.fix, method="nearest").values
        for k in (2 * cycles - 2, 2 * cycles - 1)
    )
    angles = np.array([b[0], -b[2], b[3], a[0], a[3]])
    return Reached(float(x[-1] - before), angles)


@dataclass
class Predictions:
    """The walks of all rows by one set of parameters.

    Attributes:
        name: of the set.
        pack: the pack.
        modulus: of each robot [Pa].
        torso: free angle of the torso on the flat by (robot, pattern) [rad].
    """

    name: str
    pack: Pack
    modulus: Mapping[str, float]
    torso: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def reached(self, row: Row) -> Reached:
        """The walk of a row."""
        free = self.pack.free(row, self.torso.get((row.robot, row.pattern)))
        return walk(row.robot, row.incline, free, self.modulus[row.robot])

    @cached_property
    def all(self) -> list[Reached]:
        """The walks of all rows."""
        return [self.reached(row) for row in self.pack.rows]

    @property
    def speeds(self) -> np.ndarray:
        """Speeds (R,) [m/s]."""
        cycles = [self.pack.cycle(row.robot) for row in self.pack.rows]
        return np.array([r.shift for r in self.all]) / cycles

    @property
    def angles(self) -> np.ndarray:
        """Angles (R, 5) [rad]."""
        return np.array([r.angles for r in self.all])


def torso_for(pack: Pack, robot: str, pattern: str, modulus: float) -> float:
    """Free angle of the torso [rad] at which the flat is walked at the measured speed;
    by one secant, for the shift is nearly linear in it."""
    row = pack.row(robot, pattern, 0.0)
    wanted = row.speed * pack.cycle(robot)
    tried = np.radians([70.0, 95.0])
    shifts = [walk(robot, 0.0, pack.free(row, float(t)), modulus).shift for t in tried]
    return float(
        tried[0] + (wanted - shifts[0]) / np.diff(shifts)[0] * np.diff(tried)[0]
    )


def modulus_for(pack: Pack, row: Row, torso: float) -> float:
    """The modulus [Pa] at which a row has its measured speed, to 3 %."""
    wanted = row.speed * pack.cycle(row.robot)

    def miss(log: float) -> float:
        free = pack.free(row, torso)
        return walk(row.robot, row.incline, free, float(np.exp(log))).shift - wanted

    return float(np.exp(brentq(miss, np.log(2e5), np.log(5e6), xtol=0.03)))


# --- the tables ------------------------------------------------------------------


def errors(speeds: np.ndarray, pack: Pack) -> np.ndarray:
    """|v - measured|/|measured| (R,)."""
    measured = np.array([row.speed for row in pack.rows])
    return np.abs(speeds - measured) / np.abs(measured)


def of_flat(speeds: np.ndarray, pack: Pack) -> float:
    """Mean of |v - measured| over the measured speed on the flat."""
    flat = [pack.row(row.robot, row.pattern, 0.0).speed for row in pack.rows]
    measured = np.array([row.speed for row in pack.rows])
    return float((np.abs(speeds - measured) / flat).mean())


def table(pack: Pack, sets: Sequence[Predictions]) -> list[dict]:
    """Speeds [cm/s] and the mean difference of the angles [deg] by row."""
    rows = []
    for k, row in enumerate(pack.rows):
        line = {
            "robot": row.robot,
            "pattern": row.pattern,
            "incline_deg": row.incline,
            "measured_cm_s": 100 * row.speed,
            "spread_cm_s": 100 * row.spread,
        }
        for one in sets:
            line[f"{one.name}_cm_s"] = 100 * one.speeds[k]
        for one in sets:
            off = np.degrees(np.abs(one.angles[k] - row.angles)).mean()
            line[f"{one.name}_angles_off_deg"] = off
        rows.append(line)
    return rows


def plot(path: Path, pack: Pack, sets: Sequence[Predictions]) -> Path:
    """Speeds, and bending angles by the last set, over the inclination."""
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    axes = figure.subplots(2, len(CASES), sharex=True, sharey="row", squeeze=False)
    for (speed, angle), case in zip(axes.T, CASES):
        which = [k for k, r in enumerate(pack.rows) if (r.robot, r.pattern) == case]
        rows = [pack.rows[k] for k in which]
        x = [r.incline for r in rows]
        measured = 100 * np.array([[r.speed, r.spread] for r in rows]).T
        speed.errorbar(x, *measured, fmt="ko", capsize=3, label="measured")
        for k, one in enumerate(sets):
            style = {"color": f"C{k}", "marker": ".", "label": one.name}
            speed.plot(x, 100 * one.speeds[which], **style)
        speed.axhline(0, color="0.7", lw=0.6)
        speed.set_title(f"{case[0]}, {case[1]}", fontsize=9)
        for k, name in enumerate(ANGLES):
            color = f"C{k + 3}"
            seen = np.degrees([r.angles[k] for r in rows])
            angle.plot(x, seen, "o", color=color, label=name.replace("_", " "))
            angle.plot(x, np.degrees(sets[-1].angles[which, k]), color=color)
        angle.set_xlabel("incline [deg]")
    axes[0, 0].legend(fontsize=7, frameon=False)
    axes[1, 0].legend(fontsize=7, frameon=False, ncols=2, title="dots: measured")
    axes[0, 0].set_ylabel("speed [cm/s]")
    axes[1, 0].set_ylabel(f"bending [deg], lines: {sets[-1].name}")
    return save(figure, path)


def main(argv: Sequence[str] | None = None) -> dict:
    """Predicts the walks; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="vS11 by std at 0 and 48 deg, derived and flat")
    add_pack(parser, PACK)
    parser.add_argument("-o", "--output", type=Path, help="picture to write")
    args = parser.parse_args(argv)
    pack = read_pack(pack_folder(PACK, args.data, FILES))
    if args.quick:
        kept = [r for r in pack.rows if (r.robot, r.pattern) == CASES[0]]
        pack = replace(pack, rows=[r for r in kept if r.incline in (0.0, 48.0)])
    cases = dict.fromkeys((r.robot, r.pattern) for r in pack.rows)
    robots = dict.fromkeys(robot for robot, _ in cases)
    pressed = {robot: pressed_modulus(pack, robot) for robot in robots}
    torso = {case: torso_for(pack, *case, pressed[case[0]]) for case in cases}
    derived = Predictions("derived", pack, {r: solid_modulus(r) for r in robots})
    flat = Predictions("flat", pack, pressed, torso)
    sets = [derived, flat]
    if not args.quick:
        known = {r: pack.row(r, "std", 28.0) for r in robots}
        found = {r: modulus_for(pack, known[r], torso[r, "std"]) for r in robots}
        sets.append(Predictions("std 28", pack, found, torso))
    rows = table(pack, sets)
    print_rows("geckos on inclines: measured and predicted", rows)
    measured = np.array([row.speed for row in pack.rows])
    steep = np.array([row.incline > 0 for row in pack.rows])
    summary = {
        one.name: {
            "modulus_MPa": {r: one.modulus[r] / 1e6 for r in robots},
            "torso_deg": {" ".join(c): np.degrees(t) for c, t in one.torso.items()},
            "speed_error_mean": errors(one.speeds, pack).mean(),
            "speed_error_predicted": errors(one.speeds, pack)[steep].mean(),
            "speed_error_of_flat_speed": of_flat(one.speeds, pack),
            "speed_rms_cm_s": 100 * np.sqrt(((one.speeds - measured) ** 2).mean()),
            "angle_error_deg": _angles_off(one, steep),
            "rank_correlation": spearmanr(one.speeds, measured).statistic,
        }
        for one in sets
    }
    feet = pack.held_feet()
    print_rows("feet that are held", feet)
    print_rows("means", [{"set": name} | row for name, row in summary.items()])
    if args.output:
        plot(args.output, pack, sets)
    mine = summary["flat"]
    return parser.report(
        {
            "incline_speed_error_mean": figure(mine["speed_error_mean"], target=0.2),
            "incline_speed_error_predicted_mean": figure(mine["speed_error_predicted"]),
            "incline_speed_error_derived_mean": figure(
                summary["derived"]["speed_error_mean"]
            ),
            "incline_angle_error_deg": figure(mine["angle_error_deg"], "deg"),
            "incline_rank_correlation": figure(mine["rank_correlation"]),
            "held_feet": feet,
            "sets": summary,
            "rows": rows,
        }
    )


def _angles_off(one: Predictions, among: np.ndarray) -> float:
    """Mean difference from the measured angles of some rows [deg]."""
    measured = np.array([row.angles for row in one.pack.rows])
    return float(np.degrees(np.abs(one.angles - measured))[among].mean())


if __name__ == "__main__":
    with one_line_errors("inclines"):
        main()
