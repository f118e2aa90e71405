"""A skinned robot in both views that planning needs.

    robot = load_planned("beetle")
    robot.quad          # skeleton on Euler angles, for space-time programs
    robot.skinned       # skeleton and skin, for frames
    robot.link_skin     # the skin as weight on the links

Both have the same feet, in the same order.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp
from pydrake.multibody.plant import MultibodyPlant

from drakebots.core.errors import InvalidInput, NoSolution
from drakebots.core.files import replacing
from drakebots.fem import SkinState, equilibrium
from drakebots.fem.assembly import worst_tet
from drakebots.fem.material import Material
from drakebots.fem.solver import Prescribed
from drakebots.model import Model, find_body, load, model_stem, skin_path
from drakebots.robots.quads.robot.feet import Coordinates
from drakebots.robots.quads.robot.links_skin import (
    LinkSkin,
    SkinShare,
    skin_share,
    vertices_on_links,
)
from drakebots.robots.quads.robot.quad import Quad, load_quad
from drakebots.skin.file import SkinnedRobot, load_skinned, read_skin, write_skin
from drakebots.skin.frame import CoupledState, CoupledStepper, rigid_fit

# A robot standing, its skin in equilibrium: where a rollout starts.

GENTLE, MOVE = 0.5, 1e-3
"""Smallest det F at which a first shape is taken as it is; else the glue is pulled
there by so much at a time [m]."""


def settled_state(stepper: CoupledStepper, q: np.ndarray) -> CoupledState:
    """Skeleton at q, standing; the skin in equilibrium under its weight.

    Args:
        stepper: of the robot; the skin lies at rest in its first context.
        q: of the skeleton (nq,).

    Raises:
        InvalidInput: for a q that does not fit.
        NoSolution: when the skin finds no equilibrium.
    """
    state = stepper.start(q, np.zeros(stepper.plant.num_velocities()))
    model, glue = stepper.model, stepper.glue.vertices
    x, steps, held = state.skin.positions, 1, state.skin.positions[glue]
    if worst_tet(model, x)[1] < GENTLE:
        # Pulled by its glue in small moves from its rest shape.
        R, p = rigid_fit(model.rest[glue], held)
        x = model.rest @ R.T + p
        far = np.linalg.norm(held - x[glue], axis=1).max()
        steps = int(np.ceil(far / MOVE))
    begin = x[glue].copy()
    found = equilibrium(
        model,
        Prescribed(glue, lambda share: begin + share * (held - begin)),
        gravity=stepper.gravity,
        start=x,
        steps=steps,
    )
    if not found.converged:
        raise NoSolution(
            f"skin at the first pose: {found.message}; take a pose nearer to rest"
        )
    skin = SkinState(0.0, found.positions, np.zeros_like(found.positions))
    return replace(state, skin=skin)


# The same robot with another mass, or a skin of another modulus.

INERTIA = ("mass", "ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def variant(
    model: str | Path,
    folder: str | Path,
    *,
    mass: float = 1.0,
    modulus: float = 1.0,
    effort: float | None = None,
) -> Path:
    """Writes a changed robot into a folder; the SDF's path.

    Args:
        model: a name, or a path to an SDF with a `.skin.yaml` beside it.
        folder: made if it is not there.
        mass: factor of every inertia of the skeleton and of the skin's density.
        modulus: factor of the skin's, in all regions.
        effort: limit of all motors, in place of the model's [N m].

    Raises:
        InvalidInput: for a factor not > 0, or a model that is not SDF.
        FileProblem, UnknownName: as from `load` and `read_skin`.
    """
    for name, factor in (("mass", mass), ("modulus", modulus), ("effort", effort)):
        if factor is not None and not (np.isfinite(factor) and factor > 0):
            raise InvalidInput(f"{name} must be > 0, got {factor}")
    found = load(model)
    if found.path.suffix != ".sdf":
        raise InvalidInput(f"{found.path.name}: only an SDF can be changed")
    skin = read_skin(skin_path(found.path))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tree = ElementTree.parse(found.path)
    for inertial in tree.iter("inertial"):
        for entry in inertial.iter():
            if entry.tag in INERTIA and entry.text:
                entry.text = repr(mass * float(entry.text))
    if effort is not None:
        for entry in tree.iter("effort"):
            # Joints without a motor have an effort of 0.
            if entry.text and float(entry.text) > 0:
                entry.text = repr(effort)
    _bring_meshes(tree, found.path.parent, folder)
    out = folder / found.path.name
    with replacing(out) as part:
        tree.write(part, encoding="utf-8", xml_declaration=True)

    def changed(material: Material) -> Material:
        return replace(
            material,
            density=mass * material.density,
            youngs_modulus=modulus * material.youngs_modulus,
        )

    materials = {key: changed(material) for key, material in skin.regions.items()}
    mesh = found.path.parent / skin.mesh
    _copy(mesh, folder / mesh.name)
    own = changed(skin.material)
    write_skin(
        skin_path(out), replace(skin, material=own, regions=materials, mesh=mesh.name)
    )
    for beside in found.path.parent.glob(f"{model_stem(found.path)}.drakebots.yaml"):
        _copy(beside, folder / beside.name)
    return out


def _bring_meshes(tree: ElementTree.ElementTree, source: Path, folder: Path) -> None:
    """Copies files that the SDF names relative to itself to the same place here."""
    for entry in tree.iter("uri"):
        name = (entry.text or "").strip()
        if "://" in name or not (source / name).is_file():
            continue
        if (folder / name).resolve().is_relative_to(folder.resolve()):
            _copy(source / name, folder / name)
        else:
            entry.text = str((source / name).resolve())


def _copy(source: Path, target: Path) -> None:
    if source.resolve() != target.resolve():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


@dataclass(frozen=True)
class PlannedRobot:
    """One robot in both views.

    Attributes:
        skinned: skeleton on a quaternion base, with its skin.
        quad: the skeleton on Euler angles.
    """

    skinned: SkinnedRobot
    quad: Quad

    def __post_init__(self):
        names = tuple(p.foot for p in self.skinned.skin.patches)
        if not names:
            raise InvalidInput(
                f"{self.name}: its .skin.yaml lists no patches; a plan needs contact "
                "points of each foot"
            )
        if names != self.quad.feet:
            raise InvalidInput(
                f"{self.name}: feet {', '.join(self.quad.feet)} of the skeleton are "
                f"not the patches {', '.join(names)} of the skin"
            )
        # Their torques must be the same ones.
        if self.skinned.joints != self.quad.joints:
            raise InvalidInput(
                f"{self.name}: actuators are not in the order of the joints; write "
                "the joints with effort limits in the SDF in one order"
            )

    @property
    def name(self) -> str:
        """Of the model."""
        return self.skinned.model.name

    @property
    def mass(self) -> float:
        """Of skeleton and skin [kg]."""
        return self.skinned.skeleton_mass + self.skinned.skin_mass

    @cached_property
    def coordinates(self) -> Coordinates:
        """Conversions between the two views."""
        return Coordinates(self.quad)

    @cached_property
    def share(self) -> SkinShare:
        """Which link each node goes with."""
        return skin_share(self.skinned.fem, self.skinned.glue)

    @cached_property
    def link_skin(self) -> LinkSkin:
        """The skin at rest as weight on the links (section 5.4)."""
        share = self.share
        n = len(share.link_of)
        own = (np.ones(n), (np.arange(n), share.link_of))
        weights = sp.csr_matrix(own, (n, len(share.links)))
        return vertices_on_links(
            self.quad, self.skinned.fem.rest, share.node_mass, weights, share.links
        )

    @property
    def files(self) -> list[Path]:
        """That it is made of."""
        path = self.skinned.model.path
        return [path, skin_path(path), path.parent / self.skinned.skin.mesh]


def load_planned(name_or_path: str | Path | Model) -> PlannedRobot:
    """A robot from its skeleton's file with a `.skin.yaml` beside it.

    Raises:
        InvalidInput: without feet or actuators.
        UnknownName, FileProblem, ModelProblem: as from `load_skinned`.
    """
    skinned = load_skinned(name_or_path)
    return PlannedRobot(skinned, load_quad(skinned.model))


def moving_state(
    stepper: CoupledStepper, share: SkinShare, q: np.ndarray, v: np.ndarray
) -> CoupledState:
    """Skeleton at q and v, the skin settled under its weight and moving with its links.

    Args:
        stepper: of the robot.
        share: which link each node goes with.
        q, v: of the skeleton (nq,), (nv,).

    Raises:
        InvalidInput: for sizes that do not fit.
        NoSolution: when the skin finds no equilibrium.
    """
    settled = settled_state(stepper, q)
    stepper.pose(settled.q, v)
    rates = link_velocities(
        stepper.plant, stepper.context, share, settled.skin.positions
    )
    skin = SkinState(0.0, settled.skin.positions, rates)
    return CoupledState(settled.q, np.array(v, float), skin)


def link_velocities(
    plant: MultibodyPlant, context, share: SkinShare, positions: np.ndarray
) -> np.ndarray:
    """Velocities (N, 3) [m/s] of nodes fixed to their links, at the context's q, v."""
    out = np.zeros_like(positions)
    for k, name in enumerate(share.links):
        body, own = find_body(plant, name), share.link_of == k
        V = plant.EvalBodySpatialVelocityInWorld(context, body)
        arm = positions[own] - plant.EvalBodyPoseInWorld(context, body).translation()
        out[own] = V.translational() + np.cross(V.rotational(), arm)
    return out
