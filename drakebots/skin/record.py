"""Skins' motions: recorded as a labelled dataset in SI, written for ParaView."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from drakebots.core.convert import as_yaml
from drakebots.core.errors import DrakebotsError
from drakebots.core.files import check_output, make_folder, with_ending, write_text
from drakebots.fem.assembly import FemModel, von_mises
from drakebots.fem.mesh import surface_triangles, write_cells
from drakebots.formats import model_of
from drakebots.model import Model, skin_path
from drakebots.results import Result, require, with_units
from drakebots.skin.coupled import (
    CoupledResult,
    CoupledState,
    CoupledStepper,
    SceneForces,
    link_weights,
    whole_com,
)
from drakebots.skin.coupled.driven import DrivenSkeleton
from drakebots.skin.file import SkinnedRobot, read_skin
from drakebots.skin.file.robot import skin_mesh

Variables = Mapping[str, tuple[tuple[str, ...], np.ndarray, str]]
"""Dimensions, values and unit of variables by name."""


def skeleton_coordinates(stepper: DrivenSkeleton) -> dict[str, list[str]]:
    """Names of the axes and of a skeleton's positions, velocities and torques."""
    plant = stepper.plant
    return {
        "axis": list("xyz"),
        "position_name": list(plant.GetPositionNames(always_add_suffix=False)),
        "velocity_name": list(plant.GetVelocityNames(always_add_suffix=False)),
        "joint": np.array(stepper.joint_names, str),
    }


def vertex_stress(model: FemModel, x: np.ndarray) -> np.ndarray:
    """Von Mises stress at the mesh's vertices (n,) [Pa]: volume mean of their tets."""
    mesh = model.space.mesh
    weight = np.repeat(mesh.volumes, 4)
    corners = mesh.tets.ravel()
    stress = np.repeat(von_mises(model, x), 4)
    n = len(mesh.vertices)
    return np.bincount(corners, weight * stress, n) / np.bincount(corners, weight, n)


class SkinShapes:
    """Shapes of a skin at some times, with the stress at its vertices.

    Args:
        model: the skin.
    """

    def __init__(self, model: FemModel):
        self.model = model
        self._rows: list[tuple[float, np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, time: float, x: np.ndarray) -> None:
        """Adds the shape of positions x (N, 3) [m] at a time [s]."""
        position = x[: len(self.model.space.mesh.vertices)].astype(np.float32)
        stress = vertex_stress(self.model, x).astype(np.float32)
        self._rows.append((time, position, stress))

    @property
    def largest_stress(self) -> float:
        """Largest stress of a vertex [Pa]."""
        return float(max(stress.max() for _, _, stress in self._rows))

    def variables(self) -> Variables:
        """The shapes over skin_time, and the skin's triangles and rest."""
        mesh, of_vertices = self.model.space.mesh, ("skin_time", "vertex")
        time, position, stress = map(np.array, zip(*self._rows))
        triangles = surface_triangles(mesh).astype(np.int32)
        return {
            "skin_time": (("skin_time",), time, "s"),
            "skin_position": ((*of_vertices, "axis"), position, "m"),
            "skin_stress": (of_vertices, stress, "Pa"),
            "skin_triangle": (("triangle", "corner"), triangles, "1"),
            "skin_rest": (("vertex", "axis"), mesh.vertices.astype(np.float32), "m"),
        }


_ROWS = {
    "position": ("m or rad: see position_unit", "position_name"),
    "velocity": ("m/s or rad/s: see velocity_unit", "velocity_name"),
    "target": ("rad", "joint"),
    "torque": ("N m", "joint"),
    "com": ("m", "axis"),
    "link_force": ("N", "link", "axis"),
    "worst_volume_ratio": ("1",),
    "patch_force": ("N", "patch", "axis"),
}
"""Unit of each variable over time, and its other dimensions."""


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
        shapes: the stored shapes of the skin.
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
        # Each a structure of its own: a list of a step's small arrays would take
        # eight times what is in them.
        self._rows: list[np.ndarray] = []
        self.shapes = SkinShapes(stepper.model)
        self.worst_ratio, self.worst_gap = 1.0, 0.0
        glue, feet = robot.glue.by_body(), (each.body for each in stepper.patches)
        self._bodies = list(dict.fromkeys((*glue, *feet)))
        self._near = link_weights(robot.fem, robot.glue).argmax(axis=1)

    @property
    def frames(self) -> int:
        """Number of recorded states, the initial one included."""
        return len(self._rows)

    def _all(self) -> np.ndarray:
        """All states, with what was recorded of each by name (n,)."""
        return np.concatenate(self._rows)

    def add(
        self,
        state: CoupledState,
        target: np.ndarray,
        result: CoupledResult | None = None,
        *,
        last: bool = False,
    ) -> None:
        """Adds the state and result of a step; the initial state has no result."""
        glue, run = self.robot.glue, self.stepper
        run.pose(state.q, state.v)
        links, none = glue.by_body(), np.zeros(len(run.joint_names))
        if result is None:
            result = CoupledResult(state, True, "the start", 1.0, none)
        solution, feet = result.solution, result.patch_forces
        pull = np.zeros((len(glue), 3)) if solution is None else solution.glue_forces
        if feet is None:
            feet = np.zeros((sum(len(p.p_BC) for p in run.patches), 3))
        row = {
            "time": state.skin.time,
            "position": state.q,
            "velocity": state.v,
            "target": np.asarray(target, float),
            "torque": result.torques,
            # That of skeleton and skin together.
            "com": whole_com(run.plant, run.context, run.model, state.skin.positions),
            # Forces of the skin on the links.
            "link_force": np.array([-pull[r].sum(axis=0) for r in links.values()]),
            "worst_volume_ratio": result.smallest_ratio,
            "patch_force": feet,
        }
        row["ground_force"], row["ground_point"] = self._on_ground(result.forces)
        self.worst_ratio = min(self.worst_ratio, result.smallest_ratio)
        if isinstance(run, CoupledStepper):
            self.worst_gap = max(self.worst_gap, run.glue_gap(state))
        if not self._rows:
            self._kind = [(name, float, np.shape(each)) for name, each in row.items()]
        self._rows.append(np.array([tuple(row.values())], self._kind))
        if (self.frames - 1) % self._every == 0 or last:
            self.shapes.add(state.skin.time, state.skin.positions)

    def _on_ground(self, forces: SceneForces) -> tuple[np.ndarray, np.ndarray]:
        """Forces of the ground on each link and the skin around it (b, 3) [N], and
        their centres (b, 3) [m], NaN without force."""
        force, weight = np.zeros((len(self._bodies), 3)), np.zeros(len(self._bodies))
        point = np.zeros_like(force)
        if len(forces.A):
            names = {b: k for k, b in enumerate(self._bodies)}
            of = [
                names[A] if node < 0 else self._near[node]
                for A, node in zip(forces.A, forces.nodes)
            ]
            size = np.linalg.norm(forces.f_AC_W, axis=1)
            np.add.at(force, of, forces.f_AC_W)
            np.add.at(weight, of, size)
            np.add.at(point, of, size[:, None] * forces.p_WC)
        weight[weight == 0] = np.nan
        return force, point / weight[:, None]

    @property
    def torques(self) -> np.ndarray:
        """Torques of all states (n, m) [N m]; of a robot without motors none."""
        return self._all()["torque"]

    def figures(self) -> dict[str, float]:
        """Figures of a run: the worst tet, the largest torque of a joint, and the share
        of steps in which a servo is at its limit."""
        torque, limit = np.abs(self.torques), self.stepper.effort_limits
        full = np.inf if limit is None else limit * (1 - 1e-12)
        saturated = (torque[1:] >= full).any(axis=1).sum()
        return {
            "worst_volume_ratio": self.worst_ratio,
            "largest_torque_N_m": float(torque.max(initial=0.0)),
            "saturated_share": float(saturated / max(self.frames - 1, 1)),
        }

    def origin(self, problem: Any) -> dict[str, Any]:
        """Residuals and provenance of the result of a problem."""
        return {
            "residuals": {"glue gap [m]": self.worst_gap},
            "provenance": self.robot.provenance(as_yaml(problem)),
        }

    @property
    def tracking_error(self) -> float:
        """Largest difference of a joint from its target [rad]."""
        rows = self._all()
        q = rows["position"][:, self.stepper.actuated]
        return float(np.abs(q - rows["target"]).max(initial=0.0))

    def dataset(self) -> xr.Dataset:
        """All steps as a dataset; every variable states its unit."""
        robot, stepper, found = self.robot, self.stepper, self._all()
        of = {name: np.ascontiguousarray(found[name]) for name in found.dtype.names}
        glued = robot.glue.vertices
        glued = np.sort(glued[glued < len(robot.mesh.vertices)]).astype(np.int32)
        rows = {k: (("time", *dims), of[k], unit) for k, (unit, *dims) in _ROWS.items()}
        if of["ground_force"].any():
            by_body = ("time", "body", "axis")
            rows["ground_force"] = by_body, of["ground_force"], "N"
            rows["ground_point"] = by_body, of["ground_point"], "m"
        rows = {name: row for name, row in rows.items() if row[1].size}
        if stepper.effort_limits is not None:
            rows["effort_limit"] = ("joint",), stepper.effort_limits, "N m"
        skin = {**self.shapes.variables(), "skin_glued": (("glued",), glued, "1")}
        q_lengths, v_lengths = robot.robot.length_positions()
        coordinates = {
            "time": ("time", of["time"], {"units": "s"}),
            **skeleton_coordinates(stepper),
            "position_unit": ("position_name", np.where(q_lengths, "m", "rad")),
            "velocity_unit": ("velocity_name", np.where(v_lengths, "m/s", "rad/s")),
            "link": list(robot.glue.by_body()),
        }
        if "ground_force" in rows:
            coordinates["body"] = self._bodies
        patches = [f"{p.foot}_{k}" for p in stepper.patches for k in range(len(p.p_BC))]
        if patches:
            coordinates["patch"] = patches
        variables = with_units({**rows, **skin})
        return xr.Dataset(variables, coordinates, {"system": "skinned"})


# --- files for ParaView --------------------------------------------------------


def write_vtu(result: Result, path: str | Path, model: Model | None = None) -> Path:
    """Writes a skin's motion: `run.pvd`, which ParaView opens, and `run/0000.vtu`, ...

    Each file holds the skin at one time: its vertices in the world [m], the
    `displacement` from rest [m], the von Mises `stress` [Pa] where the result has it,
    and whether a vertex is `glued`. Cells are the tets of the model's skin file, or
    the surface's triangles where that is gone or has changed.

    Args:
        result: result with a skin.
        path: file of the series (.pvd), in a folder that exists.
        model: model of the robot; found by the result's name if None.

    Raises:
        InvalidInput: for a result without a skin.
        FileProblem: for another ending, or a file that cannot be written.
    """
    data = result.data
    require(data, "skin_position skin_triangle", "skin to write")
    path = with_ending(path, [".pvd"])
    check_output(path)
    folder = make_folder(path.with_suffix(""))
    rest = data.skin_rest.values
    cells = _cells(result, model)
    glued = np.zeros(len(rest), np.int32)
    if "skin_glued" in data:
        glued[data.skin_glued.values] = 1
    series = ET.Element("VTKFile", type="Collection", version="0.1")
    collection = ET.SubElement(series, "Collection")
    for number, (time, x) in enumerate(zip(data.skin_time.values, data.skin_position)):
        values = {"displacement": x.values - rest, "glued": glued}
        if "skin_stress" in data:
            values["stress"] = data.skin_stress.values[number]
        file = folder / f"{number:04d}.vtu"
        write_cells(file, x.values, cells, values)
        entry = {"timestep": repr(float(time)), "file": f"{folder.name}/{file.name}"}
        ET.SubElement(collection, "DataSet", entry)
    ET.indent(series)
    write_text(path, ET.tostring(series, "unicode") + "\n")
    return path


def _cells(result: Result, model: Model | None) -> np.ndarray:
    """Tets (n, 4) of the model's skin, or the surface's triangles (n, 3)."""
    surface, rest = result.data.skin_triangle.values, result.data.skin_rest.values
    try:
        beside = skin_path((model or model_of(result)).path)
        mesh, _ = skin_mesh(beside, read_skin(beside))
    except DrakebotsError:
        return surface
    same = mesh.vertices.shape == rest.shape
    if same and np.allclose(mesh.vertices, rest, rtol=1e-5, atol=1e-7):
        return mesh.tets
    return surface
