"""What folding regions are for (paper, Fig. 17): an ankle turns by 70 degrees in 2 s.

The lower leg of a designed robot is held in the world, its foot hangs on the ankle,
the skin between is the robot's own, cut off below the knee and glued to the lower leg
along the cut. The elements are P2 and do not lock; the modulus of the folds is the
skin's own. The servo is limited to its torque.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.files import replacing
from drakebots.core.run import Progress
from drakebots.design import SERVOS, Design, write_compressed_mesh
from drakebots.design.skeleton import skeleton_sdf, write_plates
from drakebots.fem.mesh import TetMesh
from drakebots.results import Result
from drakebots.skin import SkinSimulation, TableMotion, simulate_skinned
from drakebots.skin.file import SkinDescription, write_skin

RIM = 0.006
"""Of the cut, glued to the lower leg [m]."""


@dataclass(frozen=True)
class FoldExperiment:
    """The motion of Fig. 17.

    Attributes:
        limb: whose ankle.
        angle: to reach [rad].
        duration: of the ramp [s].
        hold: the target is held afterwards [s].
        time_step: [s].

    Raises:
        InvalidInput: for a value out of range.
    """

    limb: str = "FL"
    angle: float = float(np.radians(70))
    duration: float = 2.0
    hold: float = 0.3
    time_step: float = 1e-2

    def __post_init__(self):
        if not abs(self.angle) < np.radians(80):
            raise InvalidInput(
                f"fold experiment: angle {self.angle} rad: the ankle turns 80 degrees"
            )
        for name in ("duration", "time_step"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"fold experiment: {name} must be > 0 s")


def write_ankle(design: Design, folder: Path, limb: str = "FL") -> Path:
    """Writes the ankle as a model of its own; returns the SDF's path.

    Raises:
        UnknownName: for a limb that does not exist.
        InvalidInput: for one whose foot is not on an ankle.
    """
    feet = [sole.foot for sole in design.skeleton.soles]
    if limb not in feet:
        raise UnknownName("limb", limb, feet)
    folder.mkdir(parents=True, exist_ok=True)
    mesh, glue = ankle_skin(design, limb)
    path = folder / "ankle.sdf"
    with replacing(path) as part:
        part.write_text(_ankle_sdf(design, limb))
    kept = [design.skeleton.link(name) for name in _links(limb)]
    write_plates(replace(design.skeleton, links=tuple(kept)), folder)
    write_compressed_mesh(folder / "skin.vtu", mesh)
    material = design.materials[0]
    write_skin(
        folder / "ankle.skin.yaml",
        SkinDescription(
            mesh="skin.vtu",
            glue=glue,
            material=material,
            second_order=mesh.regions,
            servos=SERVOS,
        ),
    )
    return path


def ankle_skin(design: Design, limb: str) -> tuple[TetMesh, dict]:
    """The skin from below the knee down, and its glue by link."""
    mesh, skeleton = design.shell.mesh, design.skeleton
    lower, foot = skeleton.link(f"{limb}_lower"), skeleton.link(f"{limb}_foot")
    down = (lower.p_WB - lower.p_WA) / lower.length
    cut = design.problem.skin.folds.length / 2 + 0.004
    middle = mesh.vertices[mesh.tets].mean(axis=1)
    s = (middle - lower.p_WA) @ down
    across = np.linalg.norm(middle - lower.p_WA - s[:, None] * down, axis=1)
    sole = next(x for x in skeleton.soles if x.foot == limb)
    low = np.abs(middle - (foot.origin + sole.p_BP[4]))
    near = (low[:, :2] < np.array(sole.size) / 2 + 0.03).all(axis=1)
    mine = (s > cut) & ((across < 0.07) | (near & (low[:, 2] < 0.05)))
    mine &= np.sign(middle[:, 1]) == np.sign(foot.p_WA[1])
    used, tets = np.unique(mesh.tets[mine], return_inverse=True)
    number = np.full(len(mesh.vertices), -1)
    number[used] = np.arange(len(used))
    glue = {}
    for link in (lower.name, foot.name):
        ids = number[np.asarray(design.glue[link])]
        glue[link] = set(ids[ids >= 0].tolist())
    x = mesh.vertices[used]
    rim = np.flatnonzero((x - lower.p_WA) @ down < cut + RIM)
    glue[lower.name] |= set(rim.tolist())
    small = TetMesh(x, tets.reshape(-1, 4), mesh.region[mine])
    return small, {link: tuple(sorted(ids)) for link, ids in glue.items()}


def _links(limb: str) -> tuple[str, str]:
    return f"{limb}_lower", f"{limb}_foot"


def _ankle_sdf(design: Design, limb: str) -> str:
    keep = _links(limb)
    root = ET.fromstring(skeleton_sdf(design.skeleton))
    model = root.find("model")
    model.set("name", "ankle")
    for link in model.findall("link"):
        if link.get("name") not in keep:
            model.remove(link)
        elif link.get("name") == f"{limb}_lower":
            p = design.skeleton.link(f"{limb}_lower").origin
            pose = link.find("pose")
            pose.attrib.clear()
            pose.text = " ".join(f"{x:.12g}" for x in [*p, 0, 0, 0])
    for joint in model.findall("joint"):
        if joint.get("name") != f"{limb}_ankle":
            model.remove(joint)
    held = ET.SubElement(model, "joint", {"name": "held", "type": "fixed"})
    ET.SubElement(held, "parent").text = "world"
    ET.SubElement(held, "child").text = f"{limb}_lower"
    ET.indent(root)
    return '<?xml version="1.0"?>\n' + ET.tostring(root, "unicode") + "\n"


def turn_ankle(
    path: Path,
    problem: FoldExperiment = FoldExperiment(),
    *,
    progress: Progress | None = None,
) -> Result:
    """Runs the motion on a model of :func:`write_ankle`.

    Returns:
        a skinned simulation's result; `angle_reached(result)` is its outcome.
    """
    target = float(problem.angle)
    motion = TableMotion(
        (0.0, problem.duration, problem.duration + problem.hold + 1.0),
        ((0.0,), (target,), (target,)),
    )
    simulation = SkinSimulation(
        model=str(path),
        duration=problem.duration + problem.hold,
        time_step=problem.time_step,
        motion=motion,
        ground=False,
        skin_period=0.05,
    )
    result = simulate_skinned(simulation, progress=progress)
    reached = float(np.degrees(angle_reached(result)))
    return replace(result, metrics=result.metrics | {"angle_reached_deg": reached})


def angle_reached(result: Result) -> float:
    """Of the ankle at the end [rad], with its sign."""
    return float(result.data.position.values[-1, -1])
