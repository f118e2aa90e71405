"""Two skeletons for planning tests, as SDF: a sprawled one of 3 joints a leg,
an upright one of 4. Sizes and masses are near the paper's beetle and cow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from drakebots.formats import load
from drakebots.model import find_body
from drakebots.robots.quads.robot import (
    Quad,
    SkinShare,
    load_quad,
    skin_on_links,
)
from drakebots.skin.file.description import Patches

LEGS = {"fl": (1, 1), "fr": (1, -1), "rl": (-1, 1), "rr": (-1, -1)}


def _box(m: float, size) -> str:
    x, y, z = (s * s for s in size)
    moments = m / 12 * (y + z), m / 12 * (x + z), m / 12 * (x + y)
    names = zip(("ixx", "iyy", "izz"), moments)
    entries = "".join(f"<{n}>{v:.8g}</{n}>" for n, v in names)
    return (
        f"<mass>{m}</mass><inertia>{entries}<ixy>0</ixy><ixz>0</ixz><iyz>0</iyz>"
        "</inertia>"
    )


def _link(name, at, com, mass, size) -> str:
    at, com = (" ".join(f"{v:.6g}" for v in p) for p in (at, com))
    return (
        f'<link name="{name}"><pose>{at} 0 0 0</pose><inertial><pose>{com} 0 0 0'
        f"</pose>{_box(mass, size)}</inertial></link>"
    )


def _joint(name, parent, child, axis, effort, reach) -> str:
    axis = " ".join(f"{v:.9g}" for v in axis)
    return (
        f'<joint name="{name}" type="revolute"><parent>{parent}</parent><child>{child}'
        f"</child><axis><xyz>{axis}</xyz><limit><lower>{-reach}</lower><upper>{reach}"
        f"</upper><effort>{effort}</effort><velocity>8</velocity></limit>"
        "<dynamics><damping>0.01</damping></dynamics></axis></joint>"
    )


def sprawled_sdf(effort: float = 1.96, mass: float = 2.8) -> str:
    """Shoulder about z, knee and ankle about the leg's own horizontal."""
    s = mass / 2.8
    out = [_link("torso", (0, 0, 0.17), (0, 0, 0), 1.2 * s, (0.26, 0.16, 0.06))]
    for leg, (x, y) in LEGS.items():
        away = np.array([0.5 * x, y, 0.0]) / np.hypot(0.5, 1)
        hip = np.array([0.11 * x, 0.07 * y, 0.17])
        knee = hip + 0.05 * away
        ankle = knee + 0.06 * away + [0, 0, -0.06]
        sole = ankle + 0.02 * away + [0, 0, -0.11]
        across = np.cross([0, 0, 1], away)
        for name, at, to, m in (
            ("upper", hip, knee, 0.15),
            ("lower", knee, ankle, 0.13),
            ("foot", ankle, sole, 0.12),
        ):
            body = f"{leg}_{name}"
            out.append(_link(body, at, (to - at) / 2, m * s, (0.04, 0.04, 0.06)))
        out += [
            _joint(f"{leg}_shoulder", "torso", f"{leg}_upper", (0, 0, 1), effort, 1),
            _joint(f"{leg}_knee", f"{leg}_upper", f"{leg}_lower", across, effort, 1.3),
            _joint(f"{leg}_ankle", f"{leg}_lower", f"{leg}_foot", across, effort, 1.3),
        ]
    return _sdf(out)


def upright_sdf(effort: float = 3.13, mass: float = 4.3) -> str:
    """Hip about x and y, knee and ankle about y: feet can stay flat."""
    s = mass / 4.3
    out = [_link("torso", (0, 0, 0.32), (0, 0, 0), 2.3 * s, (0.32, 0.14, 0.1))]
    for leg, (x, y) in LEGS.items():
        roll = np.array([0.14 * x, 0.075 * y, 0.30])
        hip = roll - np.array([0, 0, 0.01])
        knee = hip + np.array([0.03, 0, -0.12])
        ankle = knee - np.array([0.045, 0, 0.11])
        sole = np.array([*ankle[:2], 0.0])
        for name, at, to, m in (
            ("hub", roll, hip, 0.1),
            ("upper", hip, knee, 0.18),
            ("lower", knee, ankle, 0.12),
            ("foot", ankle, sole, 0.1),
        ):
            body = f"{leg}_{name}"
            out.append(_link(body, at, (to - at) / 2, m * s, (0.05, 0.05, 0.06)))
        for name, parent, child, axis in (
            ("roll", "torso", "hub", (1, 0, 0)),
            ("hip", "hub", "upper", (0, 1, 0)),
            ("knee", "upper", "lower", (0, 1, 0)),
            ("ankle", "lower", "foot", (0, 1, 0)),
        ):
            parent = parent if parent == "torso" else f"{leg}_{parent}"
            out.append(
                _joint(f"{leg}_{name}", parent, f"{leg}_{child}", axis, effort, 1.2)
            )
    return _sdf(out)


def _sdf(parts) -> str:
    return (
        '<?xml version="1.0"?><sdf version="1.7"><model name="skeleton">'
        + "".join(parts)
        + "</model></sdf>"
    )


def sprawled(folder: Path, **options) -> Quad:
    """Soles of 5 cm by 4 cm, five patches."""
    shin = 0.02 / np.hypot(0.5, 1)
    feet = {
        leg: np.array([0.5 * x * shin, y * shin, -0.11]) for leg, (x, y) in LEGS.items()
    }
    return _loaded(folder, "sprawled", sprawled_sdf(**options), feet)


def upright(folder: Path, **options) -> Quad:
    """Soles of 5 cm by 4 cm, five patches."""
    feet = {leg: np.array([0, 0, -0.06]) for leg in LEGS}
    return _loaded(folder, "upright", upright_sdf(**options), feet)


def _loaded(folder: Path, name: str, text: str, feet) -> Quad:
    path = Path(folder) / f"{name}.sdf"
    path.write_text(text)
    grid = np.array([[0, 0], [1, 1], [-1, 1], [-1, -1], [1, -1]]) * [0.025, 0.02]
    patches = [
        Patches(leg, f"{leg}_foot", p + np.hstack([grid, np.zeros((5, 1))]))
        for leg, p in feet.items()
    ]
    return load_quad(load(path), patches)


def nearest_links(quad: Quad, positions: np.ndarray, mass: np.ndarray) -> SkinShare:
    """Assigns each vertex to the link whose segments to its joints are nearest."""
    plant = quad.robot.plant
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, quad.rest)
    origin, ends = {}, {}
    for name in quad.tree.bodies:
        body = find_body(plant, name)
        X_WB = plant.EvalBodyPoseInWorld(context, body)
        origin[name] = X_WB.translation()
        inertia = body.default_spatial_inertia()
        ends[name] = [X_WB.multiply(inertia.get_com())]
    for sole, p in zip(quad.soles, quad.rest_feet):
        ends[sole.body].append(p)
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        parent = joint.parent_body().name()
        if parent in ends and joint.child_body().name() in origin:
            ends[parent].append(origin[joint.child_body().name()])
    distance = []
    for name in quad.tree.bodies:
        a = origin[name]
        nearest = np.full(len(positions), np.inf)
        for b in ends[name]:
            ab, ap = b - a, positions - a
            t = np.clip(ap @ ab / max(ab @ ab, 1e-12), 0, 1)
            off = np.linalg.norm(ap - t[:, None] * ab, axis=1)
            nearest = np.minimum(nearest, off)
        distance.append(nearest)
    return SkinShare(quad.tree.bodies, np.argmin(distance, axis=0), mass)


def cloud_of_skin(quad, mass=1.1, seed=0):
    """A cloud of vertices about the robot on its nearest links."""
    rng = np.random.default_rng(seed)
    p = rng.uniform([-0.15, -0.15, 0.05], [0.15, 0.15, 0.22], (300, 3))
    return skin_on_links(quad, p, nearest_links(quad, p, np.full(300, mass / 300)))
