"""The four robots of the paper's Table 1 as design problems (sections 1, 6 and 7).

    design = design_robot(table1_problem("beetle"))

The paper's sizes are those of the skinned robots; the skeletons are drawn inside them
with room for the skin. Its sizes are read as length x height x width for the monster
("48.5 cm x 64.6 cm x 27 cm": it walks on four legs and is taller than long in Fig. 12)
and as length x width x height for the others. Bracing plates are equally thick in all
robots, `Build.rib`; the masses are what comes of it. table1.yaml has their numbers.

The bodies are formulas around the skeletons. Limbs are sleeves: two round cones side by
side around each link, just large enough for its motor bays. Torso, head and tail follow
the paper's pictures and dimensions. Robot frame: x forward, y left, z up, soles on
z = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from drakebots.core.checks import check_value, one_of
from drakebots.core.convert import build, changed
from drakebots.core.files import read_yaml
from drakebots.design.geometry import (
    HalfSpaceCut,
    Implicit,
    Part,
    RoundBox,
    RoundCone,
    mirrored,
)
from drakebots.design.problem import DesignProblem
from drakebots.design.skeleton import (
    Crouched,
    Link,
    Long,
    Skeleton,
    Sole,
    Template,
    Upright,
    edit,
)
from drakebots.design.skin import (
    COVER,
    SPREAD,
    FoldSettings,
    SkinSettings,
    joint_folds,
    with_cuffs,
)

_ROBOTS = read_yaml(Path(__file__).with_name("table1.yaml"))
"""What table1.yaml says of each robot, by name."""


def _column(entry: str, kind: type = int) -> dict[str, Any]:
    return {name: kind(said[entry]) for name, said in _ROBOTS.items() if entry in said}


SIZES = _column("size", tuple)
"""Length, width, height of the skinned robot [m]."""

MASSES = _column("masses", tuple)
"""The paper's masses of skeleton and skin of the robots that it built [kg]; of the
others it has the sum only."""

GLUE = _column("glue")
"""Numbers of glue vertices in Table 1."""

VERTICES = _column("vertices")
"""Numbers of skin vertices in Table 1."""

WEIGHTS = _column("weight", float)
"""Masses in Table 1 [kg]."""

JOINTS = _column("joints")
"""Numbers of joints in Table 1."""

_HARD = ("shell", "servo", "payload")


def table1_problem(name: str, vertices: int | None = None) -> DesignProblem:
    """The design problem of a robot of Table 1.

    Args:
        name: beetle, monster, lizard or cow.
        vertices: number of vertices of the skin; Table 1's by default.

    Raises:
        UnknownName: for another name.
    """
    template, said = table1_template(name), _ROBOTS[name]
    settings = FoldSettings(**said["folds"])
    body = _cuffed(template, settings)
    skin = SkinSettings(
        vertices=VERTICES[name] if vertices is None else vertices,
        glue=GLUE[name],
        folds=settings,
        rims=False,  # as the models in models/ are, so that their plans stay theirs
    )
    skin = changed(skin, said.get("skin", {}), "skin")
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
    body = _cuffed(template, skin.folds)
    return replace(problem, template=template, body=body, skin=skin)


def _cuffed(template: Template, folds: FoldSettings) -> Implicit:
    """The body around a robot's skeleton, with cuffs at its folds."""
    skeleton = template.skeleton()
    body = body_named(template.name, skeleton)
    return with_cuffs(body, joint_folds(skeleton, folds), folds)


def smooth(problem: DesignProblem) -> DesignProblem:
    """The same problem with a smooth skin, without teeth."""
    folds = replace(problem.skin.folds, depth=0.0)
    return replace(problem, skin=replace(problem.skin, folds=folds))


def table1_template(name: str) -> Template:
    """The template of a robot of Table 1.

    Raises:
        UnknownName: for another name.
    """
    said = _ROBOTS[check_value("robot", name, one_of("robot", _ROBOTS))]
    given = {part: said[part] for part in ("torso", "tail") if part in said}
    given |= {end: said["limb"] | said[end] for end in ("front", "hind")}
    kind = {kind.__name__: kind for kind in (Crouched, Upright, Long)}[said["kind"]]
    return edit(build(kind, {"name": name} | given), said.get("parameters", {}))


# The bodies.


def _sleeve(link: Link) -> list[RoundCone]:
    """Two round cones that contain a link, each end as thin as possible."""
    p_A, p_B = link.p_WA, link.p_WB
    points = np.concatenate(
        [link.origin + s.corners() for s in link.solids if s.kind in _HARD]
    )
    along = (p_B - p_A) / np.linalg.norm(p_B - p_A)
    side = np.array([0.0, 1.0, 0.0]) - along[1] * along
    side *= SPREAD / np.linalg.norm(side)
    length = np.linalg.norm(p_B - p_A)
    offset = points - p_A
    s = offset @ along
    lateral = np.abs(offset @ side) / SPREAD
    across = offset - s[:, None] * along
    depth = np.sqrt(np.maximum((across**2).sum(axis=1) - lateral**2, 0.0))
    beyond = np.maximum(np.maximum(-s, s - length), 0.0)
    r = np.sqrt(np.maximum(lateral - SPREAD, 0) ** 2 + depth**2 + beyond**2) + COVER
    half = length / 2
    r_A, r_B = float(r[s < half].max()), float(r[s >= half].max())
    return [RoundCone(p_A + k * side, p_B + k * side, r_A, r_B) for k in (1, -1)]


def _foot(link: Link, sole: Sole) -> list[Part]:
    """A sleeve from the sole of a foot up to its ankle, and a box around the sole."""
    middle = link.origin + sole.p_BP[4]
    size = np.array([sole.size[0] + 2 * 0.009, sole.size[1] + 2 * 0.009, 0.064])
    pad = RoundBox(middle, size, 0.013, blend=0.004)
    plates = [s for s in link.solids if s.name.startswith("fork_plate")]
    corners = np.concatenate([link.origin + s.corners() for s in plates])
    ankle = link.p_WA
    y = np.abs(corners[:, 1] - ankle[1]).max()
    x = np.abs(corners[:, 0] - ankle[0]).max()
    r = float(np.hypot(x, y - SPREAD)) + COVER
    low = np.array([ankle[0], ankle[1], 0.022])
    shift = np.array([0.0, SPREAD, 0.0])
    return [
        *(RoundCone(ankle + k * shift, low + k * shift, r, r) for k in (1, -1)),
        pad,
    ]


def _haunches(skeleton: Skeleton) -> list[Part]:
    """Rounded boxes around the hips and their motors on the torso, one a limb."""
    parts: list[Part] = []
    torso = skeleton.links[0]
    for sole in skeleton.soles:
        mounts = [
            torso.origin + s.corners()
            for s in torso.solids
            if s.kind in _HARD and s.name.startswith(f"{sole.foot}_")
        ]
        hip = skeleton.by_name.get(f"{sole.foot}_hip")
        if hip is not None:
            mounts += [hip.origin + s.corners() for s in hip.solids]
        points = np.concatenate(mounts)
        low, high = points.min(axis=0) - 0.007, points.max(axis=0) + 0.007
        parts.append(RoundBox((low + high) / 2, high - low, 0.012, blend=0.02))
    return parts


def _tail_cones(tail: Link, radii: Sequence[float], tip: Sequence[float]) -> list[Part]:
    """The skin of a tail: around its link, and from there to its tip."""
    ends = [tail.p_WA + 0.03 * np.eye(3)[0], tail.p_WB + 0.05 * np.eye(3)[0], tip]
    return [
        RoundCone(*(ends[k : k + 2] + radii[k : k + 2]), blend=b)
        for k, b in enumerate((0.03, 0.02))
    ]


def _toes(skeleton: Skeleton, places: Sequence[float]) -> list[Part]:
    """Toes at the outer side of every foot, at places along it [m]."""
    toes: list[Part] = []
    for p in skeleton.sole_middles:
        out = np.sign(p[1])
        for x in places:
            p_A = p + np.array([x, out * 0.03, 0.012])
            p_B = p + np.array([1.5 * x, out * 0.063, 0.006])
            toes.append(RoundCone(p_A, p_B, 0.016, 0.013, blend=0.006))
    return toes


_PARTS = {kind.__name__: kind for kind in get_args(Part)}


def _parts(said: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Parts by the names of their kinds, `{RoundBox: {p_W: ...}}`."""
    return [_PARTS[k](**fields) for entry in said for k, fields in entry.items()]


def body_named(name: str, skeleton: Skeleton) -> Implicit:
    """The outer shape of a robot of Table 1 around its skeleton.

    Raises:
        UnknownName: for another name.
    """
    said = _ROBOTS[check_value("robot", name, one_of("robot", _ROBOTS))]
    parts = [*_parts(said["body"]), *mirrored(_parts(said.get("pairs", ())))]
    if "tail_cones" in said:
        parts += _tail_cones(skeleton.link("tail"), **said["tail_cones"])
    parts += _haunches(skeleton)
    for link in skeleton.links:
        if link.name.split("_")[-1] in ("upper", "lower"):
            parts += _sleeve(link)
    for sole in skeleton.soles:
        parts += _foot(skeleton.link(sole.link), sole)
    parts += _toes(skeleton, said.get("toes", ()))
    ground = HalfSpaceCut([0.0, 0.0, 0.0], [0.0, 0.0, -1.0], 0.002)
    return Implicit(tuple(parts), (ground,), blend=said["blend"])
