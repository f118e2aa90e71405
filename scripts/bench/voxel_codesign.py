"""Codesign of lattices beside random search and CMA-ES, checked by frame and Drake.

python scripts/bench/voxel_codesign.py            # twenty minutes of processor time
python scripts/bench/voxel_codesign.py --quick    # two problems, one seed, less search

Every way chooses voxels, the sides of each voxel's struts and four places for
actuators, and is measured by the same frame, in which the lengths of a gait are the
best ones for every way. Random search and CMA-ES (Hansen, "The CMA Evolution Strategy:
A Tutorial", 2016, with all its default constants) choose keys within 0 to 1: of voxels,
which a shape is grown by that always hangs together and has its targets; of struts; of
places, the largest four of which count. They factor at least as many stiffness
matrices as `codesign` does, and go on until they have had its processor time too.

Two more ways say where the gain comes from: random shapes with the actuators that
`codesign` finds for a shape, and `codesign` whose exchanges no gradient ranks. At equal
reach, `codesign` with two actuators, and with fewer voxels, stands beside the others
with four and all.

The best designs are checked by the frame of the kept voxels alone, their actuators'
lengths prescribed (`FactoredFrame`), and in Drake: rigid octahedra on ball joints, the
base welded, actuators as springs of commanded length, the springs at the targets; at a
tenth of the lengths, where turns are small, and at all of them.

JSON: lattice_codesign_gain, lattice_codesign_gain_range, lattice_codesign_by_problem,
lattice_half_actuators_ratio, lattice_fewer_voxels_share, lattice_codesign_frame_error,
lattice_codesign_drake_ratio.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from codesign import Codesign, Design, DesignSpace, codesign, exchanged, largest
from measurement import Measurement, figure
from pydrake.math import RigidTransform
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.multibody.tree import (
    ForceElementIndex,
    LinearBushingRollPitchYaw,
    LinearSpringDamper,
)
from pydrake.systems.analysis import Simulator

from drakebots.cli.output import print_table
from drakebots.core.errors import NoSolution
from drakebots.lattice.frame import FactoredFrame, Frame, Load, Supports, lattice_frame
from drakebots.lattice.pom import Control, actuator_nodes
from drakebots.lattice.shape import Lattice, LatticeSpec, Strut, block
from drakebots.robots.voxels.model import (
    Actuators,
    Octahedra,
    OctahedraPlant,
    node_positions,
    octahedra_sdf,
)

LINK = 1.0
"""Length of the springs at the targets [m]; long, so that they keep their direction."""


MASS, DAMPING, UNTIL = 0.03, 0.01, 4.0
"""Mass of a voxel [kg], damping of its ball joints [N m s/rad], and time [s] within
which a pose comes to rest in Drake; the lengths are reached at half of it."""


def _problem(size, base, voxels: int, targets: Sequence[str], motions) -> Codesign:
    controls = [Control.from_word(word, "target") for word in targets]
    spec = LatticeSpec(block(*size))
    return Codesign(spec, controls, base, motions, voxels, 4, factorizations=300)


PROBLEMS = {
    "reach": _problem((3, 3, 3), (0, 0, 0), 14, ["5,5,6:x"], [[1]]),
    "lift": _problem((5, 2, 2), (0, 0, 0), 12, ["10,1,1:z"], [[1]]),
    "jaws": _problem((3, 3, 3), (1, 1, 0), 14, ["1,3,6:x", "5,3,6:x"], [[1, -1]]),
    "foot": _problem(
        (3, 3, 3), (0, 0, 2), 14, ["5,5,0:x", "5,5,0:z"], [[1, 0], [0, 1]]
    ),
    "platform": _problem(
        (3, 3, 2), (1, 1, 0), 12, ["1,1,4:z", "5,5,4:z"], [[1, 1], [1, -1]]
    ),
    "wide jaws": _problem((4, 4, 3), (1, 1, 0), 24, ["1,4,5:x", "7,4,5:x"], [[1, -1]]),
}
"""A corner far from the base along x; the end of an arm up; jaws that close; a foot
along x and z, each without the other; two corners up together and against each other;
jaws of a larger domain. Fixed before this comparison; prototypes had seen the corner,
the jaws and a foot with two actuators."""


# --- the ways ---------------------------------------------------------------


class Keys:
    """Designs by keys within 0 to 1: of voxels, struts and places (2 V + A,)."""

    def __init__(self, problem: Codesign):
        self.space = DesignSpace(problem)
        self.size = 2 * len(self.space.held) + len(self.space.places)

    def design(self, keys: np.ndarray) -> Design:
        """The design of some keys, measured."""
        space, problem = self.space, self.space.problem
        voxels, struts, places = np.split(keys, len(space.held) * np.array([1, 2]))
        kept, (low, high) = space.grown(np.clip(voxels, 0.01, 1)), problem.sides
        sides = np.round(low + (high - low) * np.clip(struts, 0, 1), 4)
        fits = space.fits(kept)
        chosen = fits[np.argsort(-places[fits])[: problem.most_actuators]]
        T, flex = space.response(kept, sides, chosen)
        S, most = T @ np.linalg.inv(flex), 2 * problem.stroke
        reach = min(float(largest(S, w, most)[0]) for w in problem.motions)
        return Design(kept, sides, tuple(chosen.tolist()), reach)

    def best(self, trials: Iterator, least: int, seconds: float) -> Design:
        """The best of the trials until both limits are passed."""
        began, best = time.process_time(), None
        for design in trials:
            best = design if best is None or design.reach > best.reach else best
            spent = time.process_time() - began
            if self.space.factorizations >= least and spent >= seconds:
                return best


def random_search(keys: Keys, seed: int) -> Iterator[Design]:
    """Designs at random."""
    random = np.random.default_rng(seed)
    while True:
        yield keys.design(random.uniform(size=keys.size))


def random_shapes(keys: Keys, seed: int) -> Iterator[Design]:
    """Shapes at random, each with the actuators that codesign finds for it."""
    random, space = np.random.default_rng(seed), keys.space
    low, high = space.problem.sides
    while True:
        kept = space.grown(random.uniform(0.01, 1, len(space.held)))
        sides = np.round(random.uniform(low, high, len(kept)), 4)
        yield space.placed(kept, sides)


def evolution(keys: Keys, seed: int) -> Iterator[Design]:
    """Designs of CMA-ES from the middle of the keys, step 0.3."""

    def worth(x: np.ndarray) -> tuple[float, Design]:
        found = keys.design(np.clip(x, 0, 1))
        return -found.reach, found

    yield from cma_es(worth, np.full(keys.size, 0.5), 0.3, seed)


def cma_es(
    cost: Callable[[np.ndarray], tuple[float, object]],
    mean: np.ndarray,
    step: float,
    seed: int,
) -> Iterator[object]:
    """Rank-mu CMA-ES of Hansen's tutorial; the second of each trial's values.

    Args:
        cost: of a point, and what comes with it.
        mean: start.
        step: standard deviation at the start.
        seed: of the random numbers.
    """
    random, n = np.random.default_rng(seed), len(mean)
    size = 4 + int(3 * np.log(n))
    mu = size // 2
    weights = np.log((size + 1) / 2) - np.log(np.arange(1, mu + 1))
    weights /= weights.sum()
    effective = 1 / (weights**2).sum()
    c_step = (effective + 2) / (n + effective + 5)
    damping = 1 + 2 * max(0, np.sqrt((effective - 1) / (n + 1)) - 1) + c_step
    c_path = (4 + effective / n) / (n + 4 + 2 * effective / n)
    c_one = 2 / ((n + 1.3) ** 2 + effective)
    c_mu = 2 * (effective - 2 + 1 / effective) / ((n + 2) ** 2 + effective)
    c_mu = min(1 - c_one, c_mu)
    length = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))
    C, basis, scale = np.eye(n), np.eye(n), np.ones(n)
    path, path_step = np.zeros(n), np.zeros(n)
    generation, since = 0, 0
    while True:
        drawn = random.standard_normal((size, n)) * scale @ basis.T
        tried = [cost(mean + step * row) for row in drawn]
        yield from (what for _, what in tried)
        order = np.argsort([value for value, _ in tried], kind="stable")[:mu]
        y = weights @ drawn[order]
        mean, generation = mean + step * y, generation + 1
        white = basis @ ((basis.T @ y) / scale)
        path_step *= 1 - c_step
        path_step += np.sqrt(c_step * (2 - c_step) * effective) * white
        size_now = np.linalg.norm(path_step)
        decay = np.sqrt(1 - (1 - c_step) ** (2 * generation))
        steady = size_now / decay < (1.4 + 2 / (n + 1)) * length
        path = (1 - c_path) * path
        path += steady * np.sqrt(c_path * (2 - c_path) * effective) * y
        old = c_one * (1 - steady) * c_path * (2 - c_path)
        C = (1 - c_one - c_mu + old) * C + c_one * np.outer(path, path)
        C += c_mu * (drawn[order].T * weights) @ drawn[order]
        step *= np.exp(c_step / damping * (size_now / length - 1))
        since += 1
        if since > 1 / (c_one + c_mu) / n / 10:
            values, basis = np.linalg.eigh((C + C.T) / 2)
            scale, since = np.sqrt(np.maximum(values, 1e-20)), 0


WAYS = {"random": random_search, "CMA-ES": evolution, "random shapes": random_shapes}
"""Ways that stand beside codesign, as trials without end."""


def unranked(problem: Codesign) -> Design:
    """Codesign whose exchanges come in the order of random gains."""
    space, random = DesignSpace(problem), np.random.default_rng(problem.seed)
    plain = np.full(len(space.held), np.round(np.mean(problem.sides), 4))
    by_gradient, best = space.exchanges, Design(space.held, plain)
    space.exchanges = lambda kept, gain: by_gradient(
        kept, random.standard_normal(len(kept))
    )
    while space.factorizations < problem.factorizations:
        start = space.grown(random.uniform(0.01, 1, len(plain)))
        found = exchanged(space, space.placed(start, plain))
        best = found if found.better(best) else best
    return best


def compared(problem: Codesign, seed: int) -> dict[str, float | Design]:
    """Reach of every way on a problem [m], and codesign's design."""
    problem = replace(problem, seed=seed)
    began = time.process_time()
    found = codesign(problem)
    limits = problem.factorizations, time.process_time() - began
    row: dict = {"codesign": found.reach, "design": found}
    for name, way in WAYS.items():
        keys = Keys(problem)
        row[name] = keys.best(way(keys, seed), *limits).reach
    return row | {"unranked": unranked(problem).reach, "seconds": limits[1]}


# --- checks of a design -----------------------------------------------------


def shape_of(problem: Codesign, design: Design) -> tuple[Lattice, list[Strut]]:
    """The kept voxels, the base first (Drake's tree starts there), and a strut each."""
    domain, strut = problem.lattice.lattice, problem.lattice.strut
    rows = np.flatnonzero(design.kept)
    base = (domain.voxels[rows] == problem.base).all(axis=1)
    rows = rows[np.argsort(~base, kind="stable")]
    lattice, sides = Lattice(domain.voxels[rows], domain.pitch), design.sides[rows]
    return lattice, [replace(strut, d1=d, d2=d) for d in sides.tolist()]


def actuators_of(problem: Codesign, design: Design) -> list[Control]:
    """Its actuators."""
    places = DesignSpace(problem).places
    return [places[k] for k in design.places]


def by_frame(problem: Codesign, design: Design) -> np.ndarray:
    """Motions of the targets in each pose (T, W) [m], by the frame of the kept voxels
    with beams for the springs, and prescribed extensions of the actuators.

    The extensions x meet the actuators' law p = k (e - x), p = P x by the frame.
    """
    lattice, struts = shape_of(problem, design)
    own = lattice_frame(lattice, [strut for strut in struts for _ in range(12)])
    at = [lattice.node(t.node) for t in problem.targets]
    axes = np.eye(3)[[t.axis for t in problem.targets]]
    thin = 1e-4 * LINK  # so it bends by next to nothing
    spring = Strut(thin, thin, problem.load * LINK / thin**2, 0.0, 1.0)
    count = len(own)
    frame = Frame(
        np.vstack([own.positions, own.positions[at] + LINK * axes]),
        np.vstack([own.beams, np.c_[at, count + np.arange(len(at))]]),
        [*own.struts, *[spring] * len(at)],
        np.vstack([own.up, np.roll(axes, 1, axis=1)]),
    )
    held = np.zeros((len(frame), 6), bool)
    held[count:] = True
    held[lattice.voxel_nodes[0]] = True
    pairs = actuator_nodes(lattice, actuators_of(problem, design))
    units = [Load(extension=row) for row in np.eye(len(pairs))]
    found = FactoredFrame(frame, Supports(held, pairs)).solve(*units)
    P = np.array([one.actuator_force for one in found]).T
    rows = [t.axis for t in problem.targets]
    S = np.array([one.displacement[at, rows] for one in found]).T
    k = problem.push / (2 * problem.stroke)
    e = DesignSpace(problem).gait(design)
    x = np.linalg.solve(np.eye(len(P)) + P / k, e.T)
    return (S @ x).T


def in_drake(problem: Codesign, design: Design, share: float) -> np.ndarray:
    """Motions of the targets in each pose (T, W) [m] at a share of its lengths, by the
    plant of rigid octahedra at rest.

    A joint between voxels with struts of different sides is half of one voxel's joint
    in series with half of the other's. At rest masses and damping do not count: they
    are chosen for stable steps of 1 ms.
    """
    lattice, struts = shape_of(problem, design)
    cut = Octahedra(lattice, struts[0], MASS)
    plant = MultibodyPlant(1e-3)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kLagged)
    plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
    Parser(plant).AddModelsFromString(octahedra_sdf(cut), "sdf")
    built = OctahedraPlant(cut, plant)
    world, base = plant.world_frame(), built.bodies[0].body_frame()
    plant.WeldFrames(world, base, RigidTransform(cut.centres[0]))
    k = problem.push / (2 * problem.stroke)
    actuators = actuators_of(problem, design)
    rods = Actuators(built, actuators, stiffness=k, damping=1.0)
    nodes = [lattice.node(t.node) for t in problem.targets]
    axes = np.eye(3)[[t.axis for t in problem.targets]]
    for node, axis in zip(nodes, axes):
        voxel, _ = lattice.voxel_of(node)
        anchor = lattice.positions[node] + LINK * axis
        ends = plant.world_body(), anchor, built.bodies[voxel], cut.in_body(voxel, node)
        plant.AddForceElement(LinearSpringDamper(*ends, LINK, problem.load, 0.5))
    for shared in cut.tree:
        joint = plant.GetJointByName(f"node_{shared.node}")
        joint.set_default_damping_vector(np.full(3, DAMPING))
    plant.Finalize()
    simulator = Simulator(plant)
    context = simulator.get_mutable_context()
    bend = [replace(cut, strut=strut).stiffness for strut in struts]
    bushings = (
        plant.get_force_element(index)
        for index in map(ForceElementIndex, range(plant.num_force_elements()))
    )
    bushings = [b for b in bushings if isinstance(b, LinearBushingRollPitchYaw)]
    for shared, bushing in zip(cut.shared, bushings, strict=True):
        A, B = bend[shared.A], bend[shared.B]
        bushing.SetTorqueStiffnessConstants(context, 2 * A * B / (A + B))
    found = []
    for e in share * DesignSpace(problem).gait(design):
        simulator.get_mutable_context().SetTime(0.0)
        plant.SetPositions(context, plant.GetDefaultPositions())
        plant.SetVelocities(context, np.zeros(plant.num_velocities()))
        simulator.Initialize()
        for now in np.arange(0.0, UNTIL, 0.01):
            rods.command(context, rods.rest + e * min(2 * now / UNTIL, 1.0))
            simulator.AdvanceTo(now + 0.01)
        moved = node_positions(cut, built.poses(context)) - lattice.positions
        found.append((moved[nodes] * axes).sum(axis=1))
    return np.array(found)


# --- the figures ------------------------------------------------------------


def at_equal_reach(problem: Codesign, reach: float) -> dict[str, float]:
    """Codesign with half the actuators, and the fewest voxels with which it still has
    the reach of another way; one voxel less each time."""
    half = codesign(replace(problem, most_actuators=problem.most_actuators // 2)).reach
    fewest = problem.most_voxels
    with suppress(NoSolution):
        while codesign(replace(problem, most_voxels=fewest - 1)).reach >= reach:
            fewest -= 1
    return {"half": half / reach, "fewest": fewest, "of": problem.most_voxels}


def checked(problem: Codesign, design: Design) -> dict[str, float]:
    """Its frame's error, and Drake's motions over the frame's along the motion asked
    for, at a tenth of the lengths and at all of them; the least over the poses."""
    frame, w = by_frame(problem, design), problem.motions
    reach = ((frame * w).sum(axis=1) / (w**2).sum(axis=1)).min()
    found = {"frame_error": abs(reach / design.reach - 1)}
    for name, share in (("drake_tenth", 0.1), ("drake_whole", 1.0)):
        moved = in_drake(problem, design, share) / share
        ratio = (moved * w).sum(axis=1) / (frame * w).sum(axis=1)
        found[name] = float(ratio[np.argmax(np.abs(ratio - 1))])
    return found


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the comparison; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="two problems, one seed, 40 factorizations")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    parser.add_argument("--factorizations", type=int, default=300, help="of each way")
    args = parser.parse_args(argv)
    names, seeds, many = list(PROBLEMS), args.seeds, args.factorizations
    if args.quick:
        names, seeds, many = ["reach", "jaws"], 1, 40
    problems = {n: replace(PROBLEMS[n], factorizations=many) for n in names}
    rows: dict[str, list[dict]] = {name: [] for name in names}
    for seed in range(seeds):
        for name, problem in problems.items():
            rows[name].append(row := compared(problem, seed))
            shown = {k: v for k, v in row.items() if k != "design"}
            words = (f"{k} {1e3 * v:.1f}" for k, v in shown.items() if k != "seconds")
            print(f"{name}, seed {seed} [mm]: {', '.join(words)}", flush=True)
    table: dict = {}
    by_problem, every, checks, equal = {}, [], [], []
    for name, found in rows.items():
        gains = [row["codesign"] / max(row["random"], row["CMA-ES"]) for row in found]
        by_problem[name], every = float(np.median(gains)), every + gains
        for way in ("codesign", *WAYS, "unranked"):
            reach = [1e3 * row[way] for row in found]
            table[f"{name}: {way} [mm]"] = spread(reach)
        table[f"{name}: gain"] = spread(gains)
        best = max(found, key=lambda row: row["codesign"])
        other = float(np.median([max(row["random"], row["CMA-ES"]) for row in found]))
        checks.append(checked(problems[name], best["design"]))
        equal.append(at_equal_reach(problems[name], other))
        for what in (checks[-1], equal[-1]):
            table |= {f"{name}: {key}": value for key, value in what.items()}
        print_table(name, {k: v for k, v in table.items() if k.startswith(name + ":")})
    return parser.report(
        {
            "lattice_codesign_gain": figure(
                float(np.median(list(by_problem.values()))), "1", 2.0
            ),
            "lattice_codesign_gain_range": figure([min(every), max(every)]),
            "lattice_codesign_by_problem": figure(by_problem),
            "lattice_half_actuators_ratio": figure(
                float(np.median([one["half"] for one in equal])), "1", 1.0
            ),
            "lattice_fewer_voxels_share": figure(
                float(np.median([one["fewest"] / one["of"] for one in equal]))
            ),
            "lattice_codesign_frame_error": figure(
                max(one["frame_error"] for one in checks), "1", 1e-3
            ),
            "lattice_codesign_drake_ratio": figure(
                [[one[key] for one in checks] for key in ("drake_tenth", "drake_whole")]
            ),
        }
    )


def spread(values: Sequence[float]) -> str:
    """Median and range."""
    low, middle, high = np.percentile(values, (0, 50, 100))
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"


if __name__ == "__main__":
    main()
