"""A robot model as a value: what its file says, and what was found out about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import ModelInstanceIndex

from drakebots.model.actuators import Actuator
from drakebots.model.candidates import FootCandidate
from drakebots.model.description import Reading
from drakebots.model.loops import Loop, ball_points, find_body
from drakebots.model.parse import parse_model
from drakebots.model.views import joints_of


@dataclass(frozen=True)
class Summary:
    """Contents of a model; counts are those of the plant with a free base.

    Attributes:
        positions, velocities, actuators: names in Drake's order.
        bodies: number of bodies without the world.
        springs: number of force elements without gravity.
        constraints: number of constraints that the file declares for SAP.
        mass: total mass [kg].
        loop_rows: number of rows of c(q), of loops and couplers.
        independent_rows: number of independent ones among them.
        loop_gap: largest gap of a loop at the default positions [m].
        joints: names of the joints of one degree of freedom.
        driven: those of them with a motor in the file.
        bases: number of free bodies, each with what its joints carry.
    """

    positions: tuple[str, ...]
    velocities: tuple[str, ...]
    actuators: tuple[str, ...]
    bodies: int
    springs: int
    constraints: int
    mass: float
    loop_rows: int
    independent_rows: int
    loop_gap: float
    joints: tuple[str, ...] = ()
    driven: tuple[str, ...] = ()
    bases: int = 1


@dataclass(frozen=True, kw_only=True)
class Model(Reading):
    """A model file that has passed the checks, and what the YAML beside it adds.

    What it has of its file is described in :class:`Reading`.

    Attributes:
        name: the file's stem, or the name it was loaded by.
        path: the model file.
        summary: its contents.
        actuators: motors added to those of the file.
        closed: default positions of joints that close the loops, where those of the
            file leave them open, by joint [rad, m].
        candidates: possible feet, best first; empty where feet are given by the
            file or the YAML beside it.
        options: arguments of :func:`load` besides the file, where it is not the
            default, as plain values; `units` as its length, mass and time [SI].
        files: hashes of the files that were read, by name; see
            :func:`drakebots.model.find.file_hashes`.
    """

    name: str
    path: Path
    summary: Summary
    actuators: tuple[Actuator, ...] = ()
    closed: Mapping[str, Sequence[float]] = field(default_factory=dict)
    candidates: tuple[FootCandidate, ...] = field(default=(), repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_yaml(self) -> str:
        """Form in a YAML file: its path."""
        return str(self.path)

    def add_to(
        self, plant: MultibodyPlant, *, close_loops: bool = True
    ) -> list[ModelInstanceIndex]:
        """Parses the model into a plant (SI), before Finalize.

        Args:
            plant: to add to.
            close_loops: whether to add SAP ball constraints for the loops that
                the file does not close itself.

        Returns:
            The model instances that were added.
        """
        instances = parse_model(plant, self.path, self)
        for motor, instance in product(self.actuators, instances):
            if plant.HasJointNamed(motor.joint, instance):
                joint = plant.GetJointByName(motor.joint, instance)
                plant.AddJointActuator(motor.joint, joint, motor.effort)
        for instance in instances:
            for name, positions in self.closed.items():
                if plant.HasJointNamed(name, instance):
                    joint = plant.GetJointByName(name, instance)
                    joint.set_default_positions(np.asarray(positions, float))
        if close_loops:
            self.close_loops(plant, [x for x in self.loops if not x.in_file])
        return instances

    def close_loops(
        self,
        plant: MultibodyPlant,
        loops: Sequence[Loop] | None = None,
        *,
        length_unit: float = 1.0,
    ) -> None:
        """Adds SAP ball constraints for loops to a plant, before Finalize.

        The two balls of a hinge are a tenth of the largest coordinate of the loops'
        points apart, or of the joints' where those are all zero: of the order of a
        link, so that they hold its direction well.

        Args:
            plant: with the model's bodies.
            loops: to close; all by default.
            length_unit: the plant's unit of length [m].
        """
        half = self._half_length(plant, length_unit)
        for loop in self.loops if loops is None else loops:
            A, B = (find_body(plant, name) for name in (loop.body_A, loop.body_B))
            for p_AP, p_BQ in ball_points(loop, half):
                ends = A, p_AP / length_unit, B, p_BQ / length_unit
                plant.AddBallConstraint(*ends)

    def balls(self, plant: MultibodyPlant) -> list[tuple[Loop, np.ndarray, np.ndarray]]:
        """The balls that close the loops: each with its loop, p_AP and p_BQ (3,) [m].

        Args:
            plant: with the model's bodies, in SI.
        """
        half = self._half_length(plant, 1.0)
        return [
            (loop, *points) for loop in self.loops for points in ball_points(loop, half)
        ]

    def _half_length(self, plant: MultibodyPlant, length_unit: float) -> float:
        points = [p for loop in self.loops for p in (loop.p_AP, loop.p_BQ)]
        reach = max((float(np.abs(p).max()) for p in points), default=0.0)
        if reach == 0 and points:
            frames = [joint.frame_on_parent() for joint in joints_of(plant)]
            places = [frame.GetFixedPoseInBodyFrame() for frame in frames]
            reach = max(float(np.abs(X.translation()).max()) for X in places)
            reach *= length_unit
        return reach / 20 or 1e-3

    def report(self) -> dict[str, Any]:
        """The contents as JSON-able values, lengths in m, mass in kg."""
        s = self.summary
        return {
            "name": self.name,
            "path": str(self.path),
            "mass_kg": s.mass,
            "bodies": s.bodies,
            "free_bases": s.bases,
            "num_positions": len(s.positions),
            "num_velocities": len(s.velocities),
            "positions": list(s.positions),
            "velocities": list(s.velocities),
            "actuators": list(s.actuators),
            "springs_and_dampers": s.springs,
            "sap_constraints_in_file": s.constraints,
            "loops": [loop.name for loop in self.loops],
            "couplers": [coupler.name for coupler in self.couplers],
            "loop_rows": s.loop_rows,
            "independent_loop_rows": s.independent_rows,
            "loop_gap_m": s.loop_gap,
            "feet": {
                foot.name: {
                    "body": foot.body,
                    "p_BF_m": foot.p_BF.tolist(),
                    "radius_m": foot.radius,
                }
                for foot in self.feet
            },
            "points": [point.name for point in self.points],
            "notes": list(self.notes),
        }
