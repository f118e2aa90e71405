"""Records the steps of a skinned robot as a labelled dataset in SI."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from drakebots.fem.assembly import FemModel, von_mises
from drakebots.fem.mesh import surface_triangles
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.frame import CoupledResult, CoupledState, CoupledStepper
from drakebots.skin.frame.driven import DrivenSkeleton


def vertex_stress(model: FemModel, x: np.ndarray) -> np.ndarray:
    """Von Mises stress at the mesh's vertices (n,) [Pa]: volume mean of their tets."""
    mesh = model.space.mesh
    weight = np.repeat(mesh.volumes, 4)
    corners = mesh.tets.ravel()
    stress = np.repeat(von_mises(model, x), 4)
    n = len(mesh.vertices)
    return np.bincount(corners, weight * stress, n) / np.bincount(corners, weight, n)


class _Rows:
    """Numbers of many steps by name, in blocks of memory.

    A list of a step's small arrays would take eight times what is in them.
    """

    BLOCK = 512

    def __init__(self):
        self.count = 0
        self._blocks: dict[str, list[np.ndarray]] = {}

    def add(self, row: Mapping[str, np.ndarray | float]) -> None:
        """Adds a step; each value has the shape that it had before."""
        at = self.count % self.BLOCK
        for name, value in row.items():
            blocks = self._blocks.setdefault(name, [])
            if at == 0:
                blocks.append(np.empty((self.BLOCK, *np.shape(value))))
            blocks[-1][at] = value
        self.count += 1

    def of(self, name: str) -> np.ndarray:
        """All values of a name (steps, ...)."""
        return np.concatenate(self._blocks[name])[: self.count]


class SkinRecord:
    """Collects the steps of a simulation.

    Args:
        robot: the simulated robot.
        stepper: its stepper; with a reduced skin, states are lifted before they are
            added.
        skin_period: time between stored shapes of the skin [s].
        period: time between the states that are added [s]; the stepper's by default.

    Attributes:
        worst_ratio: smallest det F so far.
        worst_gap: largest distance of the glue from its points on the links [m].
    """

    def __init__(
        self,
        robot: SkinnedRobot,
        stepper: CoupledStepper | DrivenSkeleton,
        skin_period: float,
        period: float | None = None,
    ):
        self.robot, self.stepper = robot, stepper
        self._every = max(1, round(skin_period / (period or stepper.dt)))
        self._rows = _Rows()
        self._skin: dict[str, list] = {"time": [], "position": [], "stress": []}
        self.worst_ratio, self.worst_gap = 1.0, 0.0

    @property
    def frames(self) -> int:
        """Number of recorded states, the initial one included."""
        return self._rows.count

    def add(
        self,
        state: CoupledState,
        target: np.ndarray,
        result: CoupledResult | None = None,
        *,
        last: bool = False,
    ) -> None:
        """Adds the state and result of a step; the initial state has no result."""
        robot, glue, model = self.robot, self.robot.glue, self.stepper.model
        links, m = glue.by_body(), len(self.stepper.joint_names)
        solution = getattr(result, "solution", None)
        pull = np.zeros((len(glue), 3)) if solution is None else solution.glue_forces
        feet = sum(len(p.p_BC) for p in self.stepper.patches)
        row = {
            "time": state.skin.time,
            "position": state.q,
            "velocity": state.v,
            "target": np.asarray(target, float),
            "torque": np.zeros(m) if result is None else result.torques,
            "com": _centre_of_mass(self.stepper, state),
            # Forces of the skin on the links.
            "link_force": np.array([-pull[r].sum(axis=0) for r in links.values()]),
            "worst_volume_ratio": 1.0 if result is None else result.smallest_ratio,
            "patch_force": np.zeros((feet, 3))
            if result is None or result.patch_forces is None or not feet
            else result.patch_forces,
        }
        if result is not None:
            self.worst_ratio = min(self.worst_ratio, result.smallest_ratio)
        if isinstance(self.stepper, CoupledStepper):
            self.worst_gap = max(self.worst_gap, self.stepper.glue_gap(state))
        self._rows.add(row)
        if (self.frames - 1) % self._every == 0 or last:
            n = len(robot.mesh.vertices)
            self._skin["time"].append(state.skin.time)
            self._skin["position"].append(state.skin.positions[:n].astype(np.float32))
            stress = vertex_stress(model, state.skin.positions)
            self._skin["stress"].append(stress.astype(np.float32))

    @property
    def largest_torque(self) -> float:
        """Largest torque of a joint [N m]."""
        return float(np.abs(self._rows.of("torque")).max(initial=0.0))

    @property
    def saturated_share(self) -> float:
        """Share of steps in which a servo is at its limit."""
        limit = self.stepper.effort_limits
        if limit is None or self.frames < 2:
            return 0.0
        at = np.abs(self._rows.of("torque")[1:]) >= limit * (1 - 1e-12)
        return float(at.any(axis=1).mean())

    @property
    def tracking_error(self) -> float:
        """Largest difference of a joint from its target [rad]."""
        q = self._rows.of("position")[:, self.stepper.actuated]
        return float(np.abs(q - self._rows.of("target")).max(initial=0.0))

    @property
    def largest_stress(self) -> float:
        """Largest stress of a vertex in the stored shapes [Pa]."""
        return float(np.max(self._skin["stress"]))

    def dataset(self) -> xr.Dataset:
        """All steps as a dataset; docs/skin.md describes its variables."""
        plant, robot, stepper = self.stepper.plant, self.robot, self.stepper
        of = self._rows.of
        mesh, glued = robot.mesh, robot.glue.vertices
        glued = np.sort(glued[glued < len(mesh.vertices)])
        shape = self._skin
        table = {
            "position": (
                ("time", "position_name"),
                of("position"),
                "m or rad: see position_unit",
            ),
            "velocity": (
                ("time", "velocity_name"),
                of("velocity"),
                "m/s or rad/s: see velocity_unit",
            ),
            "target": (("time", "joint"), of("target"), "rad"),
            "torque": (("time", "joint"), of("torque"), "N m"),
            "com": (("time", "axis"), of("com"), "m"),
            "link_force": (("time", "link", "axis"), of("link_force"), "N"),
            "worst_volume_ratio": (("time",), of("worst_volume_ratio"), "1"),
            "patch_force": (
                ("time", "patch", "axis"),
                of("patch_force"),
                "N",
            ),
            "skin_position": (
                ("skin_time", "vertex", "axis"),
                np.array(shape["position"]),
                "m",
            ),
            "skin_stress": (("skin_time", "vertex"), np.array(shape["stress"]), "Pa"),
            "skin_triangle": (
                ("triangle", "corner"),
                surface_triangles(mesh).astype(np.int32),
                "1",
            ),
            "skin_rest": (("vertex", "axis"), mesh.vertices.astype(np.float32), "m"),
            "skin_glued": (("glued",), glued.astype(np.int32), "1"),
        }
        variables = {
            name: (dims, values, {"units": unit})
            for name, (dims, values, unit) in table.items()
            if values.size or name.startswith("skin_")
        }
        q_lengths, v_lengths = robot.robot.length_positions()
        q_units = ["m" if length else "rad" for length in q_lengths]
        v_units = ["m/s" if length else "rad/s" for length in v_lengths]
        coordinates = {
            "time": ("time", of("time"), {"units": "s"}),
            "skin_time": ("skin_time", np.array(shape["time"]), {"units": "s"}),
            "axis": list("xyz"),
            "position_name": list(plant.GetPositionNames(always_add_suffix=False)),
            "velocity_name": list(plant.GetVelocityNames(always_add_suffix=False)),
            "position_unit": ("position_name", q_units),
            "velocity_unit": ("velocity_name", v_units),
            "joint": list(stepper.joint_names),
            "link": list(robot.glue.by_body()),
        }
        patches = [f"{p.foot}_{k}" for p in stepper.patches for k in range(len(p.p_BC))]
        if patches:
            coordinates["patch"] = patches
        return xr.Dataset(variables, coordinates, {"system": "skinned"})


def _centre_of_mass(stepper: CoupledStepper, state: CoupledState) -> np.ndarray:
    """Centre of mass p_WCcm of skeleton and skin together (3,) [m]."""
    plant, model = stepper.plant, stepper.model
    stepper.pose(state.q, state.v)
    links = plant.CalcCenterOfMassPositionInWorld(stepper.context)
    mass = plant.CalcTotalMass(stepper.context)
    skin = model.node_mass @ state.skin.positions
    return (mass * links + skin) / (mass + model.total_mass)
