"""The four robots of Table 1 as design problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from drakebots.design.problem import DesignProblem
from drakebots.design.skeleton import GLUE, edit, table1_template
from drakebots.design.skin import (
    FoldSettings,
    SkinSettings,
    SoftBall,
    body_named,
    joint_folds,
    with_cuffs,
)

VERTICES = {"beetle": 14152, "monster": 16624, "lizard": 18261, "cow": 12494}
"""Numbers of skin vertices in Table 1."""

WEIGHTS = {"beetle": 3.9, "monster": 11.87, "lizard": 10.8, "cow": 5.95}
"""Masses in Table 1 [kg]."""

JOINTS = {"beetle": 12, "monster": 16, "lizard": 17, "cow": 16}
"""Numbers of joints in Table 1."""

_HIP_SHIFT = {"beetle": 0.028, "monster": 0.038, "lizard": 0.036, "cow": 0.040}
"""Distance from a hip to the middle of its folds, below its motors [m]."""

_SOFT = {
    # The paper softens tail and belly of the monster by 85 %.
    "monster": (
        SoftBall("tail", (-0.235, 0.0, 0.215), 0.085, 0.15),
        SoftBall("belly", (0.0, 0.0, 0.215), 0.085, 0.15),
    ),
    # Ours: otherwise a root 92 mm wide would take three quarters of its motor.
    "lizard": (SoftBall("tail_root", (-0.30, 0.0, 0.222), 0.085, 0.15),),
}


def table1_problem(name: str, vertices: int | None = None) -> DesignProblem:
    """The design problem of a robot of Table 1.

    Args:
        name: beetle, monster, lizard or cow.
        vertices: number of vertices of the skin; Table 1's by default.

    Raises:
        UnknownName: for another name.
    """
    template = table1_template(name)
    skeleton = template.skeleton()
    # The cow's legs are close to each other.
    margin = 0.006 if name == "cow" else None
    settings = FoldSettings(hip_shift=_HIP_SHIFT[name], margin=margin)
    body = with_cuffs(
        body_named(name, skeleton), joint_folds(skeleton, settings), settings
    )
    skin = SkinSettings(
        vertices=VERTICES[name] if vertices is None else vertices,
        glue=GLUE[name],
        folds=settings,
        fold_refine=0.75 if name == "lizard" else 1.0,
        soft=_SOFT.get(name, ()),
        rims=False,  # as the models in models/ are, so that their plans stay theirs
    )
    return DesignProblem(name, template, body=body, skin=skin)


def redesigned(problem: DesignProblem, values: Mapping[str, float]) -> DesignProblem:
    """The problem with other values of some parameters.

    Args:
        problem: of a body by formulas, or of a surface.
        values: in SI, by name: "wall", "modulus", "fold depth", or, for a body by
            formulas, which follows its skeleton, a dotted name of the template.
    """
    skin, template, values = problem.skin, problem.template, dict(values)
    modulus = values.pop("modulus", skin.material.youngs_modulus)
    depth = values.pop("fold depth", skin.folds.depth)
    skin = replace(
        skin,
        wall=values.pop("wall", skin.wall),
        material=skin.material.with_modulus(modulus),
        folds=replace(skin.folds, depth=depth),
    )
    if problem.body is None:
        return replace(problem, skin=skin)
    template = edit(template, values)
    skeleton = template.skeleton()
    body = body_named(problem.template.name, skeleton)
    body = with_cuffs(body, joint_folds(skeleton, skin.folds), skin.folds)
    return replace(problem, template=template, body=body, skin=skin)


def smooth(problem: DesignProblem) -> DesignProblem:
    """The same problem with a smooth skin, without teeth."""
    folds = replace(problem.skin.folds, depth=0.0)
    return replace(problem, skin=replace(problem.skin, folds=folds))
