"""The experiment of the folding regions (paper, Fig. 17): smooth against folded skin.

python scripts/papers/quads/fold_experiment.py -o out/fold
python scripts/papers/quads/fold_experiment.py --quick

The ankle of the beetle turns by 70 degrees in 2 s, with at most 1.96 N m. The paper
reaches 20 degrees with a smooth skin and 70 with teeth 8 mm deep. The lower leg of a
designed robot is fixed in the world, its foot hangs on the ankle, and the skin between
is the robot's own, cut off below the knee and glued to the lower leg along the cut. The
elements are P2, which do not lock, and the folds have the skin's own modulus: that of
the models' silicone by default, 0.7 MPa, so that nothing is fitted.

JSON: smooth.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from drakebots.cli.output import one_line_errors
from drakebots.cli.progress import progress_bar
from drakebots.core.checks import check_value, non_negative, one_of, positive
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.files import replacing
from drakebots.core.run import Progress
from drakebots.design import Design, design_robot, smooth, table1_problem
from drakebots.design.problem import GAINS
from drakebots.design.skeleton import skeleton_sdf, write_meshes
from drakebots.fem.material import SILICONE
from drakebots.fem.mesh import TetMesh, write_mesh
from drakebots.plots import legend_below, line_style
from drakebots.results import Result
from drakebots.robots import record
from drakebots.skin import SkinSimulation, TableMotion, simulate_skinned
from drakebots.skin.file import SkinDescription, write_skin

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

RIM = 0.006
"""Height of the rim at the cut that is glued to the lower leg [m]."""


@checked("fold experiment")
class FoldExperiment:
    """The motion of Fig. 17.

    Raises:
        InvalidInput: for a value out of range.
    """

    angle: float = float(np.radians(70))
    """Angle to reach [rad]."""
    duration: Annotated[float, positive("s")] = 2.0
    """Duration of the ramp."""
    hold: Annotated[float, non_negative("s")] = 0.3
    """Time for which the angle is held afterwards."""
    time_step: Annotated[float, positive("s")] = 1e-2
    """Time step of the simulation."""

    def __post_init__(self):
        what = "fold experiment"
        if not abs(self.angle) < np.radians(80):
            raise InvalidInput(f"{what}: angle must be within 80 degrees")


def write_ankle(design: Design, folder: Path, limb: str = "FL") -> Path:
    """Writes the ankle of a limb as a model of its own; returns the SDF's path.

    Raises:
        UnknownName: for a limb that does not exist.
    """
    feet = [sole.foot for sole in design.skeleton.soles]
    check_value("limb", limb, one_of("limb", feet))
    folder.mkdir(parents=True, exist_ok=True)
    mesh, glue = ankle_skin(design, limb)
    path = folder / "ankle.sdf"
    with replacing(path) as part:
        part.write_text(_ankle_sdf(design, limb))
    kept = [design.skeleton.link(name) for name in _links(limb)]
    write_meshes(replace(design.skeleton, links=tuple(kept)), folder)
    write_mesh(folder / "skin.vtu", mesh, small=True)
    material = design.materials[0]
    write_skin(
        folder / "ankle.skin.yaml",
        SkinDescription(
            mesh="skin.vtu",
            glue=glue,
            material=material,
            second_order=mesh.regions,
            servos=GAINS,
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
        result of the skinned simulation; its metric angle_reached_deg is the outcome.
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
    reached = float(np.degrees(result.data.position.values[-1, -1]))
    return replace(result, metrics=result.metrics | {"angle_reached_deg": reached})


def draw(path: Path, results: dict, limit: float) -> None:
    """Draws the angle over time, and the torque over the angle, of each skin."""
    figure = Figure(figsize=(9, 4), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, (name, result) in enumerate(results.items()):
        data, style = result.data, line_style(k)
        angle = np.degrees(data.position.values[:, -1])
        label = f"{name}: {angle[-1]:.0f} degrees"
        left.plot(data.time, angle, **style, label=label)
        right.plot(angle, data.torque.values[:, 0], **style, label=name)
    angle = "angle of the ankle [degrees]"
    left.set(xlabel="time [s]", ylabel=angle)
    right.set(xlabel=angle, ylabel="torque of the servo [N m]", ylim=0)
    right.axhline(limit, color="0.6", ls="--", lw=1, label="most")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        legend_below(axes)
    with replacing(path) as part:
        figure.savefig(part, format="png")


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs both; prints a line each and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="two degrees of the smooth skin, coarse")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/fold"))
    parser.add_argument(
        "--angle", type=float, default=70.0, help="angle to reach [degrees]"
    )
    parser.add_argument(
        "--duration", type=float, default=2.0, help="duration of the ramp [s]"
    )
    parser.add_argument(
        "--vertices",
        type=int,
        help="number of vertices of the skin; the robot's by default",
    )
    parser.add_argument("--time-step", type=float, default=1e-2, help="time step [s]")
    parser.add_argument("--robot", default="beetle", help="robot of Table 1")
    parser.add_argument(
        "--youngs-modulus",
        type=float,
        default=SILICONE.youngs_modulus,
        help="Young's modulus [Pa] (default that of the models, 7e5)",
    )
    args = parser.parse_args(argv)
    if args.quick:
        args.angle, args.duration, args.time_step, args.vertices = 2.0, 0.1, 0.05, 3000
    experiment = FoldExperiment(
        angle=float(np.radians(args.angle)),
        duration=args.duration,
        time_step=args.time_step,
    )
    folded = table1_problem(args.robot)
    if args.vertices is not None:
        skin = replace(folded.skin, vertices=args.vertices)
        folded = replace(folded, skin=skin)
    material = folded.skin.material.with_modulus(args.youngs_modulus)
    # All tets are P2, so the moduli of P1 folds are not needed.
    skin = replace(folded.skin, material=material, fold_modulus=1.0)
    folded = replace(folded, skin=skin)
    results, problems = {}, {"smooth": smooth(folded), "folded": folded}
    if args.quick:
        del problems["folded"]  # teeth need a fine mesh
    for name, problem in problems.items():
        design = design_robot(problem)
        path = write_ankle(design, args.output / name)
        with progress_bar(name) as progress:
            results[name] = turn_ankle(path, experiment, progress=progress)
        results[name].save(args.output / f"{name}.nc")
        record(results[name]).save(args.output / f"{name}.html")
        reached = results[name].metrics["angle_reached_deg"]
        torque = results[name].metrics["largest_torque_N_m"]
        print(
            f"{name}: {results[name].message}; reaches {reached:.1f} of "
            f"{args.angle:g} degrees, torque {torque:.2f} N m",
            flush=True,
        )
    draw(args.output / "fold.png", results, design.skeleton.hinges[0].servo.effort)
    print(args.output / "fold.png")
    reached = {k: r.metrics["angle_reached_deg"] for k, r in results.items()}
    return parser.report(reached)


if __name__ == "__main__":
    with one_line_errors("fold_experiment"):
        main()
