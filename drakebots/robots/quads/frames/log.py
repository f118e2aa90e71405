"""What a rollout leaves: states, torques, contact forces, the skin's influence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from drakebots.core.run import Verdict
from drakebots.fem.assembly import von_mises, worst_tet
from drakebots.fem.mesh import surface_triangles
from drakebots.results import Result
from drakebots.robots.quads.frames.contact_state import (
    NAMES,
    centre_of_pressure,
    cop_margin,
)
from drakebots.robots.quads.frames.objective import TERMS, position_error
from drakebots.robots.quads.robot import skin_share, whole_com
from drakebots.skin.frame import glue_points, glue_wrenches, torque_map

UNITS = {
    "position": ("m or rad", "position_name"),
    "velocity": ("m/s or rad/s", "velocity_name"),
    "torque": ("N m", "joint"),
    "com": ("m", "axis"),
    "cop": ("m", "plane"),
    "cop_margin": ("m",),
    "patch_position": ("m", "patch", "axis"),
    "contact_force": ("N", "patch", "axis"),
    "contact_state": ("1", "patch"),
    "coupling_force": ("N or N m", "velocity_name"),
    "skin_force": ("N", "link", "axis"),
    "skin_moment": ("N m", "link", "axis"),
    "skin_com": ("m", "link", "axis"),
    "worst_volume_ratio": ("1",),
    "energy": ("1",),
    "energy_term": ("1", "term"),
    "qpcc_energy": ("1", "iteration"),
    "qpcc_iterations": ("1",),
    "complementarity": ("N",),
    "cop_dropped": ("1",),
    "follow_error": ("m or rad",),
    "frame_seconds": ("s",),
}


class FrameLog:
    """Collects frames and makes the result.

    Variables over time (row i at i dt): position, velocity, torque, com, cop,
    cop_margin, patch_position, contact_force (on the feet), contact_state (numbers of
    contact_state.NAMES), coupling_force (generalized, of the skin on the skeleton),
    skin_force and skin_moment (of the skin on each link, about its origin, world),
    skin_com (of the skin that goes with each link, in its frame), energies of the
    QPCC by iteration (NaN beyond the last; infinite without a solution), and more;
    see UNITS. Forces in row i act in the frame that ends there; row 0 repeats row 1.
    Besides: skin_mass and skin_com_rest by link, and the skin's shapes as in
    simulations of skins.
    """

    def __init__(self, planner, plan, model: str, provenance: dict):
        self.planner, self.plan = planner, plan
        self.model, self.provenance = model, provenance
        self.stepper = planner.stepper
        self.share = skin_share(self.stepper.model, self.stepper.glue)
        self.feet_of = planner.feet.foot_of
        plant, context = self.stepper.plant, self.stepper.context
        plant.SetPositions(context, self.stepper.start().q)
        self.centres = self.share.centres(plant, context, self.stepper.model.rest)
        self.rows: dict[str, list] = {name: [] for name in UNITS}
        self.times: list[float] = []
        self.shapes: list[tuple[float, np.ndarray, np.ndarray]] = []
        self.timings = {"settle": 0.0, "condense": 0.0, "qpcc": 0.0, "advance": 0.0}
        self.lost: dict[str, float] = {}

    def begin(self, state) -> None:
        """Row 0."""
        self._state(state)

    def add(self, step, q_ref: np.ndarray) -> float:
        """One frame; the largest distance of a coordinate from q_ref."""
        away = self._state(step.state, q_ref)
        found, rows = step.qpcc, self.rows
        plant, context = self.stepper.plant, self.stepper.context
        scheduled = np.zeros(len(step.p), bool)
        scheduled[: len(self.feet_of)] = self.plan.contact[len(self.times) - 1][
            self.feet_of
        ]
        bearing = scheduled & (step.p[:, 2] < self.planner.options.reach)
        on_links = -step.solution.glue_forces
        # They act in the pose in which the frame was assembled.
        plant.SetPositions(context, rows["position"][-2])
        wrenches = glue_wrenches(plant, context, self.stepper.glue, on_links)
        _, J = glue_points(plant, context, self.stepper.glue)
        moment, force = zip(*(wrenches[name] for name in self.share.links))
        values = {
            "torque": found.torques,
            "contact_force": found.forces,
            "contact_state": found.labels.astype(np.int8),
            "cop": centre_of_pressure(step.p, found.forces),
            "cop_margin": cop_margin(step.p, bearing, found.forces),
            "coupling_force": J.T @ on_links.ravel(),
            "skin_force": np.array(force),
            "skin_moment": np.array(moment),
            "energy": found.energy,
            "energy_term": np.array([found.terms[name] for name in TERMS]),
            "qpcc_energy": np.array([one.energy for one in found.iterates]),
            "qpcc_iterations": len(found.iterates),
            "complementarity": found.residual,
            "cop_dropped": "cop" in found.dropped,
            "frame_seconds": sum(step.seconds.values()),
        }
        for name, value in values.items():
            rows[name].append(value)
        for name, spent in step.seconds.items():
            self.timings[name] += spent
        return away

    def failed(self, step) -> None:
        """Notes what was worst in a failed frame."""
        if step.qpcc is not None:
            self.lost = {"complementarity of the failed frame [N]": step.qpcc.residual}

    def _state(self, state, q_ref=None) -> float:
        stepper, rows = self.stepper, self.rows
        plant, context, model = stepper.plant, stepper.context, stepper.model
        plant.SetPositions(context, state.q)
        plant.SetVelocities(context, state.v)
        away = 0.0
        if q_ref is not None:
            away = float(np.abs(position_error(plant, context, q_ref)).max())
        x = state.skin.positions
        rows["position"].append(state.q)
        rows["velocity"].append(state.v)
        rows["com"].append(whole_com(plant, context, model, x))
        rows["patch_position"].append(self.planner.contact_points(state))
        rows["skin_com"].append(self.share.centres(plant, context, x))
        rows["worst_volume_ratio"].append(worst_tet(model, x)[1])
        rows["follow_error"].append(away)
        every = self.plan.skin_every
        if every and len(self.times) % every == 0:
            points = len(model.space.mesh.vertices)
            self.shapes.append(
                (len(self.times) * stepper.dt, x[:points], von_mises(model, x)[:points])
            )
        self.times.append(len(self.times) * stepper.dt)
        return away

    def result(self, verdict: Verdict, message: str) -> Result:
        """The result with the frames so far."""
        stepper, plant = self.stepper, self.stepper.plant
        n, frames = len(self.times), len(self.times) - 1
        data = {}
        for name, (unit, *dims) in UNITS.items():
            values = self.rows[name]
            if not frames and len(values) < n:
                continue
            if name == "qpcc_energy":
                width = max(map(len, values))
                values = [
                    np.pad(v, (0, width - len(v)), constant_values=np.nan)
                    for v in values
                ]
            if len(values) < n:
                values = [values[0], *values]
            data[name] = (("time", *dims), np.array(values), {"units": unit})
        coords = {
            "time": ("time", np.array(self.times, float), {"units": "s"}),
            "position_name": list(plant.GetPositionNames(always_add_suffix=False)),
            "velocity_name": list(plant.GetVelocityNames(always_add_suffix=False)),
            "joint": _joints(plant, stepper.joints),
            "axis": ["x", "y", "z"],
            "plane": ["x", "y"],
            "patch": self._patches(),
            "link": list(self.share.links),
            "term": list(TERMS),
            "foot": list(self.planner.feet.names),
        }
        data["skin_mass"] = ("link", self.share.mass, {"units": "kg"})
        data["skin_com_rest"] = (("link", "axis"), self.centres, {"units": "m"})
        data["scheduled"] = (
            ("time", "foot"),
            self.plan.contact[:n],
            {"units": "1"},
        )
        if self.shapes:
            times, shapes, stress = zip(*self.shapes)
            mesh = stepper.model.space.mesh
            coords["skin_time"] = ("skin_time", np.array(times, float), {"units": "s"})
            data["skin_position"] = (
                ("skin_time", "vertex", "axis"),
                np.array(shapes, np.float32),
                {"units": "m"},
            )
            data["skin_stress"] = (
                ("skin_time", "vertex"),
                np.array(stress, np.float32),
                {"units": "Pa"},
            )
            data["skin_triangle"] = (
                ("triangle", "corner"),
                surface_triangles(mesh).astype(np.int32),
                {"units": "1"},
            )
            data["skin_rest"] = (("vertex", "axis"), mesh.vertices, {"units": "m"})
        dataset = xr.Dataset(data, coords, {"system": "skinned"})
        if frames:
            dataset["contact_state"].attrs["names"] = ", ".join(NAMES)
        return Result(
            kind="quads.frames",
            model=self.model,
            verdict=verdict,
            message=message,
            data=dataset,
            residuals=self._residuals(),
            timings=self.timings,
            metrics=self._metrics(frames),
            provenance=self.provenance,
        )

    def _patches(self):
        skin = [f"skin/{k}" for k in self.planner.on_skin]
        return [*self.planner.feet.patch_names, *skin]

    def _residuals(self):
        rows = self.rows
        if not rows["complementarity"]:
            return self.lost
        return self.lost | {
            "complementarity [N]": float(max(rows["complementarity"])),
            "follow_error [m or rad]": float(max(rows["follow_error"])),
        }

    def _metrics(self, frames):
        rows = self.rows
        if not frames:
            return {"frames": 0}
        return {
            "frames": frames,
            "frame_seconds_mean": float(np.mean(rows["frame_seconds"])),
            "qpcc_iterations_mean": float(np.mean(rows["qpcc_iterations"])),
            "frames_with_cop_dropped": int(np.sum(rows["cop_dropped"])),
            "largest_torque_N_m": float(np.abs(rows["torque"]).max()),
        }


def _joints(plant, joints):
    _, at = torque_map(plant, joints)
    names = {}
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        if joint.num_positions() == 1:
            names[joint.position_start()] = joint.name()
    return [names[k] for k in at]
