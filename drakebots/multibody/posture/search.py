"""The search for a standing posture: least squares from several bent legs.

Over x, the height, roll and pitch of the base and the joints of the legs, within joint
limits, the sum of squares of these rows is made small:

    heavy   z_i / L                  every foot on the ground
            c(q) / L                 loops closed, joints where their leaders have them
            (p_C - mean c_k)_xy / L  centre of mass over the middle of the legs' feet
            q_s - p_s                springs bent by what they carry, see below
    light   |p_HF| / reach - 0.92    every leg bent, neither stretched nor folded
            tau / (m g L)            small torques, the feet sharing the weight equally
            |tau| / limit - 0.6      where it is positive: motors with some reserve
            roll, pitch              the base upright as in the file
            z_s / L                  of every shape that reaches into the ground
            q - q_start              near where the search starts

The centre c_k of a leg's feet is their middle, or where that is further ahead of the
ankle of a sole than its motor holds with some reserve, a point as near as it does hold.

Then the heavy rows are solved to rounding by Newton steps of least norm, and the
positions p_s of springs without motors, first those at rest, are put where they carry
the load of the answer, p_rest - tau / k, until they stay. Starts are the
file's own positions, the middle of the joint limits, and legs bent forward or backward
at the knee, the same way on the left and on the right, so that a symmetric robot stands
symmetrically.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares, minimize

from drakebots.multibody.posture.servos import equilibrium
from drakebots.multibody.posture.stance import Leg, Stance

EXTENSION = 0.92
"""Desired distance from hip to foot, as a share of the leg's reach."""

STRETCHED = 0.985
"""A leg beyond this share of its reach is straight: it can only fold."""

RESERVE = 0.6
"""Share of its limit of effort that a motor should need at most to stand."""

_BEND = 0.5
"""Angle of a bent leg's first link at a start [rad]."""

_MARGIN = 0.05
"""Share of a joint's range (at most 2 rad of it) to keep off each limit."""

_STARTS, _EVALUATIONS, _SETTLINGS = 4, 40, 30


def search(
    stance: Stance, positions: np.ndarray, reaches: list[float | None]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Standing postures, the best first: x of the stance, positions of all joints.

    Args:
        stance: a robot with feet to stand on, or with loops or couplers; those are
            then closed near where the search starts.
        positions: positions of all joints to start from (len(joints),) [rad, m].
        reaches: reach of each leg, by :func:`leg_reaches`.
    """
    inside = np.clip(positions, stance.lower, stance.upper)
    starts = _starts(stance, positions) if stance.stands else [inside]
    rows = [_Rows(stance, start, reaches) for start in starts]
    order = np.argsort([np.sum(r.all(r.start) ** 2) for r in rows], kind="stable")
    most = 2 if stance.robot.closure.loops else _STARTS  # each takes longer with loops
    found = [rows[k].solve() for k in order[:most]]
    best = sorted(found, key=lambda answer: (answer[0] > 1e-6, answer[1]))
    return [(x, positions) for _, _, x, positions in best]


def settled(
    stance: Stance, positions: np.ndarray, reaches: list[float | None]
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest posture whose feet, loops and springs agree, as of :func:`search`."""
    rows = _Rows(stance, positions, reaches)
    return rows.settled(rows.start), stance.positions()


def leg_reaches(stance: Stance) -> list[float | None]:
    """The longest distance from hip to foot of every leg, limits aside [m].

    None for legs in loops, and for legs whose length hardly changes.
    """
    in_loops = stance.in_loops()
    return [
        None
        if any(in_loops[stance.joints[j].velocity_start()] for j in leg.joints)
        else _reach(stance, k, leg)
        for k, leg in enumerate(stance.legs)
    ]


def _reach(stance: Stance, number: int, leg: Leg) -> float | None:
    """The reach of one leg [m]; None if its length hardly changes."""
    bends = stance.bends[number]
    chain = bends if leg.to_ankle(bends) else leg.joints
    joints = [j for j in chain if stance.upper[j] > stance.lower[j]]
    if not joints:
        return None
    before = stance.positions()
    limits = [_travel(stance, j, before[j]) for j in joints]

    def length(angles: np.ndarray) -> float:
        q = before.copy()
        q[joints] = angles
        q = stance.followed(q)
        stance.place(stance.start(q), q)
        return float(np.linalg.norm(stance.hips()[number]))

    def furthest(sense: int) -> float:
        """The largest (1) or smallest (-1) length over two bent starts."""
        starts = np.outer([0.3, -0.3], np.resize([1, -2], len(joints)))
        how = {"method": "L-BFGS-B", "bounds": limits, "options": {"maxiter": 30}}
        answers = (
            minimize(lambda a: -sense * length(a), before[joints] + start, **how)
            for start in starts
        )
        return -sense * min(answer.fun for answer in answers)

    longest, shortest = furthest(1), furthest(-1)
    stance.place(stance.start(before), before)
    return longest if longest - shortest > 0.1 * longest else None


def _travel(stance: Stance, joint: int, now: float) -> tuple[float | None, ...]:
    """Range of a joint: any angle, the limits of a slide, else its position now."""
    if stance.joints[joint].type_name() == "revolute":
        return None, None
    low, high = stance.lower[joint], stance.upper[joint]
    return (low, high) if np.isfinite(high - low) else (now, now)


class _Rows:
    """The rows of the search from one start."""

    def __init__(self, stance: Stance, start: np.ndarray, reaches):
        self.stance, self.positions, self.reaches = stance, start, reaches
        self.low, self.high = stance.bounds(_MARGIN)
        x = np.clip(stance.start(start), self.low, self.high)
        self.start, self.scale = x, np.ones(len(x))
        self.sprung = list(stance.springs)
        self.laws = np.reshape(list(stance.springs.values()), (-1, 2)).T
        self.bent = self.laws[1]
        self.scale[: min(1, stance.base_coordinates)] = stance.size
        stance.place(x, start)
        if stance.base is not None and len(heights := stance.foot_heights()):
            self.start[0] -= heights.mean()

    def heavy(self, x: np.ndarray) -> np.ndarray:
        self.stance.place(x)
        return self._heavy()

    def _heavy(self) -> np.ndarray:
        """The heavy rows of the placed robot."""
        s = self.stance
        springs = s.positions()[self.sprung] - self.bent
        if not s.stands:
            return np.concatenate([s.loop_rows() / s.size, springs])
        aim = s.feet().mean(axis=0) + _shift(s) @ s.feet()
        offset = (s.centre_of_mass() - aim)[:2]
        lengths = [s.foot_heights(), s.loop_rows(), offset]
        return np.concatenate([np.concatenate(lengths) / s.size, springs])

    def _light(self, x: np.ndarray) -> np.ndarray:
        """The light rows at x, which is placed already."""
        s = self.stance
        away, count = x - self.start, s.base_coordinates
        if not s.stands:
            return 0.15 * away
        bent = [
            np.linalg.norm(p) / reach - EXTENSION
            for p, reach in zip(s.hips(), self.reaches)
            if p is not None and reach is not None
        ]
        tau = equal_share_torques(s)
        return np.concatenate(
            [
                3.0 * np.array(bent),
                0.3 * tau / (s.mass * s.gravity * s.size),
                np.maximum(np.abs(tau) / s.efforts[s.moved] - RESERVE, 0),
                3.0 * away[1:count],
                3.0 * np.minimum(s.shape_heights(), 0) / s.size,
                0.15 * away[count:],
            ]
        )

    def all(self, x: np.ndarray) -> np.ndarray:
        self.stance.place(x)
        return np.concatenate([100 * self._heavy(), self._light(x)])

    def solve(self) -> tuple[float, float, np.ndarray, np.ndarray]:
        """The largest heavy row, the light rows' sum of squares, x, all positions."""
        s = self.stance
        s.place(self.start, self.positions)
        how = {"x_scale": self.scale, "max_nfev": _EVALUATIONS}
        x = least_squares(self.all, self.start, bounds=(self.low, self.high), **how).x
        x = self.settled(x)
        error = float(np.abs(self.heavy(x)).max())
        return error, float(np.sum(self._light(x) ** 2)), x, s.positions()

    def settled(self, x: np.ndarray) -> np.ndarray:
        """x with the heavy rows solved, springs bent by what they carry."""
        x, share, before = self._polished(x), 1.0, np.inf
        stiffness, rest = self.laws
        for _ in range(_SETTLINGS if self.sprung else 0):
            forces = equilibrium(self.stance, sprung=True).springs
            change = rest - forces / stiffness - self.bent
            if (worst := np.abs(change).max()) < 1e-9:
                break
            share = share / 2 if worst > before else share  # soft springs swing
            before, self.bent = worst, self.bent + share * change
            x = self._polished(x)
        self.stance.place(x)
        return x

    def _polished(self, x: np.ndarray) -> np.ndarray:
        """x with the heavy rows solved by Newton steps of least norm."""
        low, high = self.stance.bounds(0.0)
        for _ in range(8):
            value = self.heavy(x)
            if np.abs(value).max() < 1e-11:
                break
            step = 1e-7
            J = np.array(
                [(self.heavy(x + step * e) - value) / step for e in np.eye(len(x))]
            ).T
            change = np.linalg.lstsq(J, -value, rcond=1e-8)[0]
            after = np.clip(x + change, low, high)
            if np.abs(self.heavy(after)).max() >= np.abs(value).max():
                break
            x = after
        return x


def equal_share_torques(stance: Stance) -> np.ndarray:
    """Torques of the joints in x that hold the robot, every leg carrying the same.

        tau = -(tau_g + sum_i J_i' f_i),    sum f_i = m g / (number of legs) upward

    Forces in loops are left out. Returns (len(moved),) [N m, N].
    """
    tau = stance.plant.CalcGravityGeneralizedForces(stance.context)
    weight = stance.mass * stance.gravity
    J = stance.foot_jacobians()[:, 2]
    for leg in stance.legs:
        tau = tau + J[list(leg.feet)].mean(axis=0) * (weight / len(stance.legs))
    tau += _shift(stance) @ J * weight
    columns = [stance.joints[j].velocity_start() for j in stance.moved]
    return -tau[columns]


def _shift(stance: Stance) -> np.ndarray:
    """Changes of the feet's shares of the weight (nf,) that bring the load of a sole
    from its middle as near to the ankle as its motor needs; zeros for other feet."""
    levers, count = stance.foot_jacobians()[:, 2], len(stance.legs)
    shift, weight = np.zeros(len(levers)), max(stance.mass * stance.gravity, 1e-12)
    for leg, bends in zip(stance.legs, stance.bends):
        if leg.to_ankle(bends):
            feet = list(leg.feet)
            arms = levers[feet, stance.joints[bends[-1]].velocity_start()]
            ahead, middle = arms - arms.mean(), arms.mean()
            most = RESERVE * stance.efforts[bends[-1]] * count / weight
            held = np.clip(middle, -most, most)
            change = np.clip(held, arms.min(), arms.max()) - middle
            shift[feet] = ahead * change / max(ahead @ ahead, 1e-12) / count
    return shift


# --- where the search starts ---


def _starts(stance: Stance, positions: np.ndarray) -> list[np.ndarray]:
    low, high = stance.lower, stance.upper
    middle = positions.copy()
    bounded = np.isfinite(high - low)
    bounded &= np.isin(np.arange(len(middle)), stance.moved)
    middle[bounded] = (low[bounded] + high[bounded]) / 2
    starts = [positions, (positions + middle) / 2, middle]
    zero = np.where(np.isin(np.arange(len(middle)), stance.moved), 0.0, positions)
    for straight in (positions, zero):
        for front in (-1, 1):
            for rear in (-1, 1):
                starts.append(_bent(stance, straight, front, rear))
    unique: list[np.ndarray] = []
    for start in (np.clip(stance.followed(s), low, high) for s in starts):
        if all(np.abs(start - other).max(initial=0) > 0.05 for other in unique):
            unique.append(start)
    return unique


def _bent(stance: Stance, positions, front: int, rear: int) -> np.ndarray:
    """Legs bent: hip by +-a, knee by -+2a, ankle by +-a about parallel axes.

    Args:
        front, rear: sense of the legs before and behind the centre of mass.
    """
    stance.place(stance.start(positions), positions)
    com, feet = stance.centre_of_mass(), stance.feet()
    bent = positions.copy()
    for leg, hinges in zip(stance.legs, stance.bends):
        if not hinges:
            continue
        axes = {j: stance.axis(j) for j in hinges}
        sideways = axes[hinges[-1]]  # the knee's axis, or the ankle's
        sideways = sideways * np.sign(sideways[np.argmax(np.abs(sideways))])
        ahead = np.array([sideways[1], -sideways[0], 0]) @ (
            feet[list(leg.feet)].mean(axis=0) - com
        )
        sense = front if ahead > 1e-3 * stance.size else rear
        for j, share in zip(hinges, (1, -2, 1)):
            bent[j] += sense * share * _BEND * np.sign(axes[j] @ sideways)
    return bent
