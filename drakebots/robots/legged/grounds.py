"""A robot on flat ground that takes inputs step by step: Drake's SAP, or hard contact.

Both have the same face: `state()`, `forces()` of the ground on the feet, and
`advance(inputs)` by one time step. All quantities are in the plant's units.
"""

from __future__ import annotations

import numpy as np
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from drakebots.model import Model
from drakebots.multibody import Ground, add_soles, build_robot, touch_by_soles
from drakebots.multibody.hard_contact import TimeStepper

PENETRATION = 1e-3
"""Depth to which the robot's weight on one foot presses it into the ground, as a share
of the height of the centre of mass."""

DISSIPATION = 20.0
"""Hunt-Crossley dissipation of the ground [1/sqrt(g l)]: impacts are inelastic."""

GROUNDS = ("sap", "hard")
"""The contact models: Drake's SAP on stiff ground, and time stepping with hard
contact."""


def stiff_ground(model: Model, height: float, friction: float, g: float) -> Ground:
    """Ground that is stiff for a robot of this mass.

    Args:
        model: the robot's model.
        height: height of its centre of mass above the ground [m].
        friction: friction coefficient.
        g: magnitude of gravity [m/s^2].
    """
    return Ground(
        friction,
        # The soles are as stiff as the ground: two springs in series.
        stiffness=2 * model.summary.mass * g / (PENETRATION * height),
        dissipation=DISSIPATION / np.sqrt(g * height),
    )


class SapGround:
    """A robot in Drake's discrete plant; its feet touch the ground as points.

    Other bodies touch the ground with their own collision geometry, and no two bodies
    of the robot touch each other.

    Args:
        model: the robot.
        base: see :mod:`drakebots.multibody.base`.
        time_step: time step of the plant [s].
        ground: the ground z <= 0.
    """

    rolls = True
    """Whether friction acts at the lowest points of round feet."""

    def __init__(self, model: Model, *, base: str, time_step: float, ground: Ground):
        builder, soles = DiagramBuilder(), []

        def prepare(plant):
            soles.extend(add_soles(plant, model.feet, ground.material()))

        self.robot = build_robot(
            model,
            builder,
            time_step=time_step,
            base=base,
            ground=ground,
            prepare=prepare,
        )
        self.plant, self.period = self.robot.plant, time_step
        touch_by_soles(self.plant, self.robot.scene_graph, soles)
        self._soles = {key: foot for foot, key in enumerate(soles)}
        self._simulator = Simulator(builder.Build())
        root = self._simulator.get_mutable_context()
        self._context = self.plant.GetMyMutableContextFromRoot(root)
        self._steps = 0

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Sets the state."""
        self.plant.SetPositions(self._context, q)
        self.plant.SetVelocities(self._context, v)
        self._set_inputs(np.zeros(self.plant.num_actuators()))

    def _set_inputs(self, inputs: np.ndarray) -> None:
        if self.plant.num_actuators():
            self.plant.get_actuation_input_port().FixValue(self._context, inputs)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v."""
        plant, context = self.plant, self._context
        return plant.GetPositions(context).copy(), plant.GetVelocities(context).copy()

    def forces(self) -> np.ndarray:
        """Forces of the ground on the feet in the last step, world (nc, 3)."""
        force = np.zeros((len(self.robot.model.feet), 3))
        results = self.plant.get_contact_results_output_port().Eval(self._context)
        for k in range(results.num_point_pair_contacts()):
            info = results.point_pair_contact_info(k)
            pair = info.point_pair()
            # The contact force is that on body B.
            for key, sign in ((pair.id_B, 1.0), (pair.id_A, -1.0)):
                if key in self._soles:
                    force[self._soles[key]] += sign * info.contact_force()
        return force

    def advance(self, inputs: np.ndarray) -> None:
        """One time step under constant inputs."""
        self._set_inputs(inputs)
        self._steps += 1
        self._simulator.AdvanceTo(self._steps * self.period)


class HardGround:
    """A robot moved by :class:`TimeStepper`; only its feet touch the ground.

    Args:
        model: the robot.
        base: "euler" or "fixed".
        time_step: time step [s].
        friction: friction coefficient of the ground z = 0.
    """

    rolls = False
    """Whether friction acts at the lowest points of round feet: at their centres."""

    def __init__(self, model: Model, *, base: str, time_step: float, friction: float):
        self.robot = build_robot(model, base=base, time_step=0)
        self.plant, self.period = self.robot.plant, time_step
        self._stepper = TimeStepper(self.robot, time_step, friction=friction)
        self._force = np.zeros((len(model.feet), 3))

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Sets the state."""
        self._q, self._v = np.array(q, float), np.array(v, float)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v."""
        return self._q.copy(), self._v.copy()

    def forces(self) -> np.ndarray:
        """Forces of the ground on the feet in the last step, world (nc, 3)."""
        return self._force

    def advance(self, inputs: np.ndarray) -> None:
        """One time step under constant inputs.

        Raises:
            NoSolution: when the contact problem is not solved.
        """
        self._q, self._v, forces = self._stepper.step(self._q, self._v, inputs)
        self._force = np.column_stack([forces.friction, forces.normal])
