"""A skinned run, frame by frame, as a labelled dataset in SI."""

from __future__ import annotations

import numpy as np
import xarray as xr

from drakebots.fem.assembly import FemModel, von_mises
from drakebots.fem.mesh import surface_triangles
from drakebots.skin.file import SkinnedRobot
from drakebots.skin.frame import CoupledResult, CoupledState, CoupledStepper


def vertex_stress(model: FemModel, x: np.ndarray) -> np.ndarray:
    """Von Mises stress of the mesh's vertices (n,) [Pa]: their tets' mean by volume."""
    mesh = model.space.mesh
    weight = np.repeat(mesh.volumes, 4)
    corners = mesh.tets.ravel()
    stress = np.repeat(von_mises(model, x), 4)
    n = len(mesh.vertices)
    return np.bincount(corners, weight * stress, n) / np.bincount(corners, weight, n)


class SkinRecord:
    """Collects frames of a skinned run.

    Args:
        robot: that runs.
        stepper: whose frames they are.
        skin_period: between stored shapes of the skin [s].

    Attributes:
        worst_ratio: smallest det F so far.
        worst_gap: largest distance of glue from its place on the links [m].
    """

    def __init__(
        self, robot: SkinnedRobot, stepper: CoupledStepper, skin_period: float
    ):
        self.robot, self.stepper = robot, stepper
        self._every = max(1, round(skin_period / stepper.dt))
        self._rows: dict[str, list] = {}
        self._skin: dict[str, list] = {"time": [], "position": [], "stress": []}
        self.worst_ratio, self.worst_gap = 1.0, 0.0

    @property
    def frames(self) -> int:
        """Frames so far, the start included."""
        return len(self._rows.get("time", ()))

    def add(
        self,
        state: CoupledState,
        target: np.ndarray,
        result: CoupledResult | None = None,
        *,
        last: bool = False,
    ) -> None:
        """Adds a frame; the first without a result."""
        robot, glue, model = self.robot, self.stepper.glue, self.stepper.model
        links, m = glue.by_body(), len(self.stepper.joint_names)
        solution = None if result is None else result.solution
        pull = np.zeros((len(glue), 3)) if solution is None else solution.glue_forces
        feet = sum(len(p.p_BC) for p in self.stepper.patches)
        row = {
            "time": state.skin.time,
            "position": state.q,
            "velocity": state.v,
            "target": np.asarray(target, float),
            "torque": np.zeros(m) if result is None else result.torques,
            "com": centre_of_mass(self.stepper, state),
            # Of the skin on the links.
            "link_force": np.array([-pull[r].sum(axis=0) for r in links.values()]),
            "worst_volume_ratio": 1.0 if result is None else result.smallest_ratio,
            "patch_force": np.zeros((feet, 3))
            if result is None or result.patch_forces is None or not feet
            else result.patch_forces,
        }
        if result is not None:
            self.worst_ratio = min(self.worst_ratio, result.smallest_ratio)
        self.worst_gap = max(self.worst_gap, self.stepper.glue_gap(state))
        for name, value in row.items():
            self._rows.setdefault(name, []).append(value)
        if (self.frames - 1) % self._every == 0 or last:
            n = len(robot.mesh.vertices)
            self._skin["time"].append(state.skin.time)
            self._skin["position"].append(state.skin.positions[:n].astype(np.float32))
            stress = vertex_stress(model, state.skin.positions)
            self._skin["stress"].append(stress.astype(np.float32))

    def _of(self, name):
        return np.array(self._rows[name])

    @property
    def largest_torque(self) -> float:
        """[N m]."""
        return float(np.abs(self._of("torque")).max(initial=0.0))

    @property
    def saturated_share(self) -> float:
        """Share of frames in which a servo is at its limit."""
        limit = self.stepper.effort_limits
        if limit is None or self.frames < 2:
            return 0.0
        at = np.abs(self._of("torque")[1:]) >= limit * (1 - 1e-12)
        return float(at.any(axis=1).mean())

    @property
    def tracking_error(self) -> float:
        """Largest difference of a joint from its target [rad]."""
        q = self._of("position")[:, self.stepper.actuated]
        return float(np.abs(q - self._of("target")).max(initial=0.0))

    @property
    def largest_stress(self) -> float:
        """Of a vertex, in the stored shapes [Pa]."""
        return float(np.max(self._skin["stress"]))

    def dataset(self) -> xr.Dataset:
        """All frames; see the module's names in docs/skin.md."""
        plant, robot = self.stepper.plant, self.robot
        lengths = robot.robot.length_positions()
        mixed = "m or rad: see {}_unit"
        names = {
            "position": (("time", "position_name"), mixed.format("position")),
            "velocity": (
                ("time", "velocity_name"),
                "m/s or rad/s: see velocity_unit",
            ),
            "target": (("time", "joint"), "rad"),
            "torque": (("time", "joint"), "N m"),
            "com": (("time", "axis"), "m"),
            "link_force": (("time", "link", "axis"), "N"),
            "worst_volume_ratio": (("time",), "1"),
            "patch_force": (("time", "patch", "axis"), "N"),
        }
        variables = {
            name: (dims, self._of(name), {"units": unit})
            for name, (dims, unit) in names.items()
            if self._of(name).size
        }
        mesh = robot.mesh
        variables |= {
            "skin_position": (
                ("skin_time", "vertex", "axis"),
                np.array(self._skin["position"]),
                {"units": "m"},
            ),
            "skin_stress": (
                ("skin_time", "vertex"),
                np.array(self._skin["stress"]),
                {"units": "Pa"},
            ),
            "skin_triangle": (
                ("triangle", "corner"),
                surface_triangles(mesh).astype(np.int32),
                {"units": "1"},
            ),
            "skin_rest": (
                ("vertex", "axis"),
                mesh.vertices.astype(np.float32),
                {"units": "m"},
            ),
            "skin_glued": (
                ("glued",),
                np.sort(
                    self.stepper.glue.vertices[
                        self.stepper.glue.vertices < len(mesh.vertices)
                    ]
                ).astype(np.int32),
                {"units": "1"},
            ),
        }
        coordinates = {
            "time": ("time", self._of("time"), {"units": "s"}),
            "skin_time": ("skin_time", np.array(self._skin["time"]), {"units": "s"}),
            "axis": list("xyz"),
            "position_name": list(plant.GetPositionNames(always_add_suffix=False)),
            "velocity_name": list(plant.GetVelocityNames(always_add_suffix=False)),
            "position_unit": (
                "position_name",
                ["m" if m else "rad" for m in lengths[0]],
            ),
            "velocity_unit": (
                "velocity_name",
                ["m/s" if m else "rad/s" for m in lengths[1]],
            ),
            "joint": list(self.stepper.joint_names),
            "link": list(self.stepper.glue.by_body()),
        }
        patches = [
            f"{p.foot}_{k}" for p in self.stepper.patches for k in range(len(p.p_BC))
        ]
        if patches:
            coordinates["patch"] = patches
        return xr.Dataset(variables, coordinates, {"system": "skinned"})


def centre_of_mass(stepper: CoupledStepper, state: CoupledState) -> np.ndarray:
    """p_WCcm of skeleton and skin together (3,) [m]."""
    plant, model = stepper.plant, stepper.model
    stepper.pose(state.q, state.v)
    links = plant.CalcCenterOfMassPositionInWorld(stepper.context)
    mass = plant.CalcTotalMass(stepper.context)
    skin = model.node_mass @ state.skin.positions
    return (mass * links + skin) / (mass + model.total_mass)
