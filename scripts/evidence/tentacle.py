"""A silicone tentacle pulled by tendons: poses of our limbs beside motion capture.

python scripts/evidence/tentacle.py ../shared/data -o tentacle.png
python scripts/evidence/tentacle.py --quick    # limbs of 2 cm

The pack real/tentacle has held poses of a conical tentacle that hangs and is pulled by
one or two tendons (tud-phi/soromox, section Va; MIT), and what its authors' fitted rod
gives. Here a cone is a chain of limbs of one segment each (`drakebots.multibody.Limb`),
with a slide before each for the strain along the axis:

    bending    1/K = integral ds/(E I),  I = pi r^4/4     of a limb between two sections
    stretch    1/k = integral ds/(E A),  A = pi r^2
    tendons    V = sum T l(q), through guides at the ends of the limbs

Its pose is the minimum of gravity, springs and tendons, by Newton's method on the
CasADi twin; Drake's own Jacobians then check the balance of forces. It bends in the
plane in which the tendons pull: by symmetry with one, and to 1e-4 of the moment with
two, whose lengths change with the other curvature by T b (b'/(1 - a))^2 only.

Geometry and tensions are the pack's. Modulus and density are the authors', or ours:
those whose mean distance is least on the authors' own fitting poses in the pack, of one
tendon at 0.10, 0.15, 0.20 and 0.25 N m; the other poses ("unseen") are predicted.

JSON: tentacle_error_vs_authors, tentacle_error_m, tentacle_authors_parameters_error_m,
tentacle_authors_error_m, tentacle_unseen_error_m, tentacle_leave_one_out_error_m,
modulus_Pa, density_kg_m3, balance_residual, segments.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import casadi as ca
import numpy as np
from matplotlib.figure import Figure
from packs import add_pack, pack_folder, read_rows
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    JacobianWrtVariable,
    PrismaticJoint,
    SpatialInertia,
)
from scipy.optimize import minimize_scalar

from drakebots.cli.output import one_line_errors, print_rows
from drakebots.core.errors import NoSolution
from drakebots.core.units import GRAVITY
from drakebots.formats import add_limbs
from drakebots.multibody import Limb, Twin
from drakebots.plots import save

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from measurement import Measurement, figure

PACK = "tentacle"
FILES = ("equilibria.csv", "parameters.json")
MODULI = (1e5, 1e6)
"""The authors' own bounds of E [Pa]."""
DENSITIES = (900.0, 1600.0)
"""Bounds of the density [kg/m^3]: silicones have 1000 to 1300."""
FITTING = (0.10, 0.15, 0.20, 0.25)
"""Torques of the single-tendon poses on which the authors fitted [N m]."""


@dataclass(frozen=True)
class Tendon:
    """A tendon at (y, z) = (offset + slope s) (cos angle, sin angle), 0 <= s <= end."""

    angle: float
    offset: float
    slope: float
    end: float


@dataclass(frozen=True)
class Shape:
    """A rod of round sections, its tendons and its markers; lengths in m.

    Attributes:
        s, radius: stations along the rod and the radii there (k,), straight between.
        tendons: the tendons.
        stations, offsets: of markers, s (M,) and p in the section's frame (M, 3).
    """

    s: np.ndarray
    radius: np.ndarray
    tendons: tuple[Tendon, ...]
    stations: np.ndarray
    offsets: np.ndarray

    def grid(self, step: float) -> np.ndarray:
        """Ends of limbs, about a step apart, among them all stations."""
        ends = [tendon.end for tendon in self.tendons]
        marks = np.unique(np.concatenate([self.s, self.stations, ends]))
        counts = np.maximum(1, np.rint(np.diff(marks) / step)).astype(int)
        parts = [
            np.linspace(a, b, n, endpoint=False)
            for a, b, n in zip(marks, marks[1:], counts)
        ]
        return np.append(np.concatenate(parts), marks[-1])


class Rod:
    """A rod as limbs and slides in a plant, and its static equilibria.

    The plant's x is the rod's axis, downward at rest; the limbs bend in its xy plane.

    Args:
        shape: of the rod.
        step: length of a limb, about [m].
        stretches: whether the axis gives way.
    """

    def __init__(self, shape: Shape, step: float, *, stretches: bool = True):
        self.shape, self.grid = shape, shape.grid(step)
        self.plant, self.tips = MultibodyPlant(1e-3), ["world"]
        self.plant.mutable_gravity_field().set_gravity_vector([GRAVITY, 0, 0])
        r = np.interp(self.grid, shape.s, shape.radius)
        stiffness: dict[str, float] = {}
        before, slides = self.plant.world_frame(), self.plant.AddModelInstance("slides")
        for k, (r0, r1, h) in enumerate(zip(r, r[1:], np.diff(self.grid))):
            squares = r0**2 + r0 * r1 + r1**2
            slide = self.plant.AddRigidBody(f"slide_{k}", slides, SpatialInertia.Zero())
            if stretches:
                ends = before, slide.body_frame(), [1, 0, 0]
                self.plant.AddJoint(PrismaticJoint(f"stretch_{k}", *ends))
                stiffness[f"stretch_{k}"] = np.pi * r0 * r1 / h
            else:
                self.plant.WeldFrames(before, slide.body_frame(), RigidTransform())
            limb = Limb(
                name=f"limb_{k}",
                parent=f"slide_{k}",
                length=h,
                stiffness=0.75 * np.pi * (r0 * r1) ** 3 / (h * squares),
                mass=np.pi * h * squares / 3,
                radius=(r0 + r1) / 2,
                segments=1,
            )
            add_limbs(self.plant, [limb], name=f"part_{k}")
            shares = limb.stiffness / limb.weights
            stiffness |= dict(zip(limb.joints, shares))
            before = self.plant.GetBodyByName(limb.tip).body_frame()
            self.tips.append(limb.tip)
        self.plant.Finalize()
        n = self.plant.num_positions()
        self.stiffness = np.zeros(n)
        for name, k in stiffness.items():
            self.stiffness[self.plant.GetJointByName(name).position_start()] = k
        self._angle = np.array(
            ["stretch" not in x for x in self.plant.GetPositionNames()]
        )

    def guides(self, tendon: Tendon, plane: float) -> list[tuple[str, np.ndarray]]:
        """Links and points on them (3,) that a tendon runs through, from the root."""
        turn = tendon.angle - plane
        across = np.array([0.0, np.cos(turn), np.sin(turn)])
        return [
            (link, (tendon.offset + tendon.slope * s) * across)
            for link, s in zip(self.tips, self.grid)
            if s <= tendon.end + 1e-9
        ]

    def plane(self, tensions) -> float:
        """Direction in which tendons pull, an angle in the section's yz plane."""
        angles = [tendon.angle for tendon in self.shape.tendons]
        return float(np.angle(np.sum(tensions * np.exp(1j * np.array(angles)))))

    @cached_property
    def _energy(self) -> ca.Function:
        """V, its gradient and Hessian of q and of (E, rho, plane, tensions).

        Coordinates are scaled: Drake's limbs are of a material with E = rho = 1.
        """
        twin = Twin(self.plant)
        q = ca.SX.sym("q", twin.nq)
        p = ca.SX.sym("p", 3 + len(self.shape.tendons))
        bodies = {x: link.body for x, link in zip(twin.body_names, twin.links)}
        bodies["world"] = 0
        poses = twin.poses(q)
        V = p[1] * twin.potential_energy(q)
        V += 0.5 * p[0] * ca.dot(ca.SX(self.stiffness), q * q)
        for k, tendon in enumerate(self.shape.tendons):
            points = []
            for link, at in self.guides(tendon, 0.0):
                size, turn = np.linalg.norm(at), tendon.angle - p[2]
                inward = size * ca.vertcat(0, ca.cos(turn), ca.sin(turn))
                points.append(poses[bodies[link]].point(inward))
            length = sum(ca.norm_2(b - a) for a, b in pairwise(points))
            V += p[3 + k] * length
        H, g = ca.hessian(V, q)
        return ca.Function("energy", [q, p], [V, g, H])

    def rest(self, tensions, modulus: float, density: float, start=None) -> np.ndarray:
        """Positions q at rest under tensions [N].

        Raises:
            NoSolution: where Newton's method does not end in a minimum.
        """
        values = [modulus, density, self.plane(tensions), *tensions]
        q = np.zeros(len(self.stiffness)) if start is None else start
        V, g, H = (np.array(x) for x in self._energy(q, values))
        scale = modulus * self.stiffness
        for _ in range(200):
            if not np.isfinite(V).all():
                break
            if np.abs(g[:, 0] / np.sqrt(scale)).max() < 1e-11:
                return q
            shift = 0.0
            while True:
                try:
                    L = np.linalg.cholesky(H + shift * np.diag(scale))
                    break
                except np.linalg.LinAlgError:
                    shift = max(2 * shift, 0.05)
            step = -np.linalg.solve(L.T, np.linalg.solve(L, g))[:, 0]
            step *= min(1.0, 0.3 / np.abs(step * self._angle).max(initial=1e-9))
            for share in 0.5 ** np.arange(30):
                tried = [np.array(x) for x in self._energy(q + share * step, values)]
                if tried[0] <= V + 1e-4 * share * (g[:, 0] @ step) + 1e-15:
                    break
            q, (V, g, H) = q + share * step, tried
        raise NoSolution(
            "the tentacle finds no rest; take shorter steps of the tension"
        )

    def residual(self, q, tensions, modulus: float, density: float) -> float:
        """Largest generalized force that Drake leaves over at q, as a share of the
        largest spring force of its kind: by Drake's gravity and Jacobians."""
        plant, plane = self.plant, self.plane(tensions)
        context = plant.CreateDefaultContext()
        plant.SetPositions(context, q)
        springs = modulus * self.stiffness * q
        left = density * plant.CalcGravityGeneralizedForces(context) - springs
        world = plant.world_frame()
        for tension, tendon in zip(tensions, self.shape.tendons):
            points, jacobians = [], []
            for link, at in self.guides(tendon, plane):
                frame = plant.GetBodyByName(link).body_frame()
                points.append(
                    plant.CalcPointsPositions(context, frame, at, world)[:, 0]
                )
                jacobians.append(
                    plant.CalcJacobianTranslationalVelocity(
                        context, JacobianWrtVariable.kV, frame, at, world, world
                    )
                )
            for k in range(len(points) - 1):
                span = points[k + 1] - points[k]
                pull = tension * span / np.linalg.norm(span)
                left -= (jacobians[k + 1] - jacobians[k]).T @ pull
        kinds = self._angle, ~self._angle
        worst = [
            np.abs(left[i]).max() / np.abs(springs[i]).max() for i in kinds if i.any()
        ]
        return float(max(worst))

    def markers(self, q, plane: float) -> np.ndarray:
        """Positions of the markers (M, 3) [m] in the robot's frame, z up."""
        context = self.plant.CreateDefaultContext()
        self.plant.SetPositions(context, q)
        c, s = np.cos(plane), np.sin(plane)
        across = np.array([[1, 0, 0], [0, c, s], [0, -s, c]])  # section to plant
        found = []
        for station, at in zip(self.shape.stations, self.shape.offsets):
            tip = self.tips[int(np.argmin(np.abs(self.grid - station)))]
            X_WT = self.plant.GetBodyByName(tip).EvalPoseInWorld(context)
            x, y, z = across.T @ (X_WT @ (across @ at))
            found.append([z, y, -x])
        return np.array(found)


# --- the pack ------------------------------------------------------------------


@dataclass(frozen=True)
class Poses:
    """The poses of the pack: names (P,), torques (P, 2) [N m], tensions (P, 2) [N],
    markers measured and of the authors' fitted rod (P, M, 3) [m]."""

    names: list[str]
    torques: np.ndarray
    tensions: np.ndarray
    measured: np.ndarray
    authors: np.ndarray

    @property
    def fitting(self) -> np.ndarray:
        """Whether the authors fitted on each pose (P,)."""
        most, least = self.torques.max(1), self.torques.min(1)
        return (least == 0) & np.isclose(most[:, None], FITTING).any(1)


def read_shape(folder: Path) -> tuple[Shape, Mapping]:
    """The rod of the pack, and its authors' identified material."""
    raw = json.loads((folder / "parameters.json").read_text())
    parts, tendons = raw["rod"], raw["tendons"]
    s = np.cumsum([0.0, *(part["length_m"] for part in parts)])
    radius = [parts[0]["radius_start_m"], *(part["radius_end_m"] for part in parts)]
    number = tendons["offset_m"].split()  # "0.0114 - 0.0295 s, s in m"
    offset, slope = float(number[0]), float(number[1] + number[2])
    lines = [
        Tendon(float(np.radians(angle)), offset, slope, tendons["to_s_m"])
        for angle in tendons["angle_deg"]
    ]
    stations = np.array([m["s_m"] for m in raw["markers"]])
    offsets = np.array([m["offset_m"] for m in raw["markers"]], float)
    shape = Shape(s, np.array(radius), tuple(lines), stations, offsets)
    return shape, raw["identified"]


def read_poses(folder: Path) -> Poses:
    """The poses of the pack."""
    rows = read_rows(folder / "equilibria.csv")

    def table(*names: str) -> np.ndarray:
        return np.array([[row[name] for name in names] for row in rows], float)

    def points(before: str) -> np.ndarray:
        names = [f"{before}{k}_{x}_m" for k in (1, 2, 3, 4) for x in "xyz"]
        return table(*names).reshape(-1, 4, 3)

    return Poses(
        [row["name"] for row in rows],
        table("torque_motor1_Nm", "torque_motor2_Nm"),
        table("tension1_N", "tension2_N"),
        points("p"),
        points("authors_fit_p"),
    )


# --- predictions and the modulus -------------------------------------------------


class Predictions:
    """Markers of the poses by modulus and density, each found once."""

    def __init__(self, rod: Rod, poses: Poses):
        self.rod, self.poses = rod, poses
        self._known: dict[tuple, np.ndarray] = {}
        self._last: list[np.ndarray | None] = [None] * len(poses.names)
        self.worst = 0.0

    def markers(self, modulus: float, density: float, among=None) -> np.ndarray:
        """Markers (P, M, 3) [m] of all poses, or of those of `among` (P,) of bool.

        `worst` keeps the largest residual so far.
        """
        return np.array(
            [
                self._one(k, modulus, density)
                for k in range(len(self.poses.names))
                if among is None or among[k]
            ]
        )

    def _one(self, k: int, modulus: float, density: float) -> np.ndarray:
        key = k, modulus, density
        if key not in self._known:
            tensions = self.poses.tensions[k]
            q = self.rod.rest(tensions, modulus, density, self._last[k])
            left = self.rod.residual(q, tensions, modulus, density)
            self.worst, self._last[k] = max(self.worst, left), q
            self._known[key] = self.rod.markers(q, self.rod.plane(tensions))
        return self._known[key]

    def distances(self, modulus: float, density: float, among=None) -> np.ndarray:
        """Distances from the measured markers (P, M) [m]."""
        measured = self.poses.measured
        measured = measured if among is None else measured[among]
        return distances(self.markers(modulus, density, among), measured)

    def identify(self, among: np.ndarray, density: float) -> float:
        """The modulus [Pa] of least mean distance on some of the poses (P,) of bool."""

        def cost(log: float) -> float:
            return float(self.distances(float(np.exp(log)), density, among).mean())

        return float(np.exp(_least(cost, np.log(MODULI), 1e-3)))

    def identify_both(self, among: np.ndarray) -> tuple[float, float]:
        """Modulus [Pa] and density [kg/m^3], likewise."""

        def cost(density: float) -> float:
            E = self.identify(among, density)
            return float(self.distances(E, density, among).mean())

        density = _least(cost, DENSITIES, 2.0)
        return self.identify(among, density), density


def _least(cost, bounds, tolerance: float) -> float:
    """Where a function is least within bounds: the best of a grid, then by golden
    sections beside it."""
    grid = np.linspace(*bounds, 9)
    k = int(np.argmin([cost(float(x)) for x in grid]))
    near = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    options = {"xatol": tolerance}
    return float(
        minimize_scalar(cost, bounds=near, method="bounded", options=options).x
    )


def distances(markers: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Distances (P, M) [m] between markers (P, M, 3)."""
    return np.linalg.norm(markers - measured, axis=-1)


def row_of(name: str, error: np.ndarray, poses: Poses, E: float, density: float):
    """A row of the table: mean distances [mm] by marker, over all, over the poses that
    were not fitted on, and the worst."""
    return {
        "model": name,
        "E_kPa": E / 1e3,
        "rho_kg_m3": density,
        **{f"M{k + 1}_mm": x for k, x in enumerate(1e3 * error.mean(0))},
        "mean_mm": 1e3 * error.mean(),
        "unseen_mm": 1e3 * error[~poses.fitting].mean(),
        "rms_mm": 1e3 * np.sqrt((error**2).mean()),
        "worst_mm": 1e3 * error.max(),
    }


def plot(path: Path, poses: Poses, ours: np.ndarray) -> Path:
    """Measured and predicted markers of all poses, from the side they bend to."""
    figure = Figure(figsize=(11, 6.2), layout="constrained")
    axes = figure.subplots(2, 6, sharex=True, sharey=True).ravel()
    for axis, name, *sets in zip(
        axes, poses.names, poses.measured, ours, poses.authors
    ):
        aside = sets[0][-1, :2] / np.linalg.norm(sets[0][-1, :2])
        for points, style, label in zip(
            sets, ("ko", "C0.-", "C1x--"), ("measured", "ours", "the authors' rod")
        ):
            axis.plot(
                1e3 * points[:, :2] @ aside,
                1e3 * points[:, 2],
                style,
                label=label,
                ms=5,
            )
        axis.set_title(name, fontsize=8)
        axis.set_aspect("equal")
    for axis in axes[len(poses.names) :]:
        axis.axis("off")
    axes[0].legend(fontsize=7, frameon=False, loc="lower left")
    figure.supxlabel("to the side of the tip [mm]", fontsize=8)
    figure.supylabel("height [mm]", fontsize=8)
    return save(figure, path)


def main(argv: Sequence[str] | None = None) -> dict:
    """Predicts the poses; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="limbs of 2 cm, no variants")
    add_pack(parser, PACK)
    parser.add_argument("-o", "--output", type=Path, help="picture to write")
    args = parser.parse_args(argv)
    folder = pack_folder(PACK, args.data, FILES)
    shape, theirs = read_shape(folder)
    poses = read_poses(folder)
    E, density = theirs["E_Pa"], theirs["rho_kg_m3"]
    rod = Rod(shape, 0.02 if args.quick else 0.01)
    ours = Predictions(rod, poses)
    modulus, ours_density = ours.identify_both(poses.fitting)
    found = ours.distances(modulus, ours_density)
    given = ours.distances(E, density)
    authors = distances(poses.authors, poses.measured)
    rows = [
        row_of("authors' fitted rod", authors, poses, E, density),
        row_of("ours, the authors' E and density", given, poses, E, density),
        row_of("ours, E and density identified", found, poses, modulus, ours_density),
    ]
    one = ours.identify(poses.fitting, density)
    error = ours.distances(one, density)
    rows.append(row_of("ours, E alone identified", error, poses, one, density))
    left_out = []
    for k, out in enumerate(np.eye(len(poses.names), dtype=bool)):
        left_out.append(ours.identify(~out, density))
        error[k] = ours.distances(left_out[-1], density, out)[0]
    name = "ours, E alone, each pose left out of its fit"
    rows.append(row_of(name, error, poses, float(np.mean(left_out)), density))
    if not args.quick:
        rows += variants(shape, poses, modulus, ours_density)
    print_rows("the tentacle: distance from the measured markers", rows)
    if args.output:
        plot(args.output, poses, ours.markers(modulus, ours_density))
    return parser.report(
        {
            "tentacle_error_vs_authors": figure(
                found.mean() / authors.mean(), target=1.0
            ),
            "tentacle_error_m": figure(found.mean(), "m"),
            "tentacle_authors_parameters_error_m": figure(given.mean(), "m"),
            "tentacle_authors_error_m": figure(authors.mean(), "m"),
            "tentacle_unseen_error_m": figure(found[~poses.fitting].mean(), "m"),
            "tentacle_leave_one_out_error_m": figure(error.mean(), "m"),
            "modulus_Pa": figure(modulus, "Pa"),
            "density_kg_m3": figure(ours_density, "kg/m^3"),
            "balance_residual": figure(ours.worst),
            "segments": len(rod.grid) - 1,
            "moduli_left_out_Pa": left_out,
            "fitted_on": [n for n, yes in zip(poses.names, poses.fitting) if yes],
            "rows": rows,
        }
    )


def variants(shape: Shape, poses: Poses, modulus: float, density: float) -> list[dict]:
    """Rows of other numbers of limbs, and of an axis that does not give way."""
    rows = []
    for step in (0.04, 0.02, 0.005):
        rod = Rod(shape, step)
        error = Predictions(rod, poses).distances(modulus, density)
        name = f"ours, {len(rod.grid) - 1} limbs"
        rows.append(row_of(name, error, poses, modulus, density))
    stiff = Predictions(Rod(shape, 0.01, stretches=False), poses)
    E, density = stiff.identify_both(poses.fitting)
    error = stiff.distances(E, density)
    rows.append(row_of("no stretch, both identified", error, poses, E, density))
    return rows


if __name__ == "__main__":
    with one_line_errors("tentacle"):
        main()
