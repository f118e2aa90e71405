"""Twelve animal surfaces, written from public proportions of adult animals.

Heights at the withers, lengths of legs, necks and tails are those of encyclopedias,
rounded; nothing in them knows of motors or templates. Chains of round cones are joined
smoothly and cut by the ground. The files are as strangers' files are: some in
centimetres or millimetres, some with y up, none centred, with 2 thousand to 300
thousand triangles.

A module without a command: `scripts/bench/design.py` makes robots of them.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from skimage.measure import marching_cubes

from drakebots.design.geometry import (
    Ellipsoid,
    HalfSpaceCut,
    Implicit,
    RoundCone,
    Surface,
    to_manifold,
    to_surface,
    write_surface,
)

Chain = Sequence[tuple[float, float, float, float]]
"""Points x, y, z and the radius there [m]; x forward, z up, ground at z = 0."""


@dataclass(frozen=True)
class Animal:
    """The proportions of an animal.

    Attributes:
        middle: chains on the plane of symmetry: torso, neck and head, tail.
        left: chains on the left that are mirrored: legs, ears, horns.
        shell: centre and radii of an ellipsoid over the torso [m]; None for none.
        paces: whether the legs of a side swing together, as long ones do; they trot
            otherwise.
        triangles: how many triangles its file has, about.
        blend: distance over which chains join [m].
        unit, up: unit of the file's numbers, and its upward axis ("z" or "y").
        place: where in the file the middle of its feet lies [m].
    """

    middle: Sequence[Chain]
    left: Sequence[Chain]
    shell: tuple[tuple[float, float, float], tuple[float, float, float]] | None = None
    paces: bool = False
    triangles: int = 30_000
    blend: float = 0.02
    unit: str = "m"
    up: str = "z"
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)


ANIMALS = {
    # Labrador: 0.57 m at the withers, hocks bent, tail out.
    "dog": Animal(
        middle=(
            ((-0.24, 0, 0.46, 0.095), (0, 0, 0.44, 0.11), (0.20, 0, 0.43, 0.13)),
            ((0.24, 0, 0.48, 0.09), (0.36, 0, 0.61, 0.07)),
            ((0.38, 0, 0.64, 0.075), (0.48, 0, 0.61, 0.045), (0.55, 0, 0.60, 0.038)),
            ((-0.31, 0, 0.49, 0.03), (-0.45, 0, 0.44, 0.025), (-0.60, 0, 0.48, 0.012)),
        ),
        left=(
            ((0.20, 0.085, 0.42, 0.06), (0.15, 0.09, 0.30, 0.045),
             (0.16, 0.09, 0.11, 0.028), (0.20, 0.09, 0.035, 0.034)),
            ((-0.22, 0.08, 0.45, 0.08), (-0.17, 0.09, 0.29, 0.055),
             (-0.27, 0.09, 0.15, 0.03), (-0.26, 0.09, 0.06, 0.028),
             (-0.22, 0.09, 0.034, 0.033)),
            ((0.36, 0.06, 0.70, 0.02), (0.35, 0.09, 0.61, 0.013)),
        ),
        triangles=40_000,
        place=(0.9, -0.35, 0.2),
    ),
    # House cat: 0.25 m at the shoulder, long tail raised.
    "cat": Animal(
        middle=(
            ((-0.12, 0, 0.19, 0.055), (0, 0, 0.185, 0.058), (0.11, 0, 0.19, 0.055)),
            ((0.13, 0, 0.21, 0.045), (0.18, 0, 0.26, 0.04)),
            ((0.19, 0, 0.275, 0.047), (0.23, 0, 0.265, 0.025)),
            ((-0.16, 0, 0.21, 0.015), (-0.24, 0, 0.24, 0.013),
             (-0.28, 0, 0.32, 0.011), (-0.25, 0, 0.40, 0.008)),
        ),
        left=(
            ((0.11, 0.035, 0.17, 0.032), (0.09, 0.04, 0.12, 0.023),
             (0.10, 0.04, 0.04, 0.015), (0.115, 0.04, 0.015, 0.017)),
            ((-0.12, 0.035, 0.18, 0.04), (-0.09, 0.04, 0.11, 0.026),
             (-0.13, 0.04, 0.055, 0.015), (-0.105, 0.04, 0.015, 0.016)),
            ((0.18, 0.03, 0.31, 0.013), (0.175, 0.036, 0.345, 0.004)),
        ),
        triangles=12_000,
        blend=0.012,
        unit="cm",
    ),
    # Domestic pig: 0.8 m at the shoulder, belly low, short legs, curled tail.
    "pig": Animal(
        middle=(
            ((-0.45, 0, 0.58, 0.20), (0, 0, 0.53, 0.25), (0.38, 0, 0.55, 0.21)),
            ((0.45, 0, 0.58, 0.18), (0.66, 0, 0.58, 0.14), (0.86, 0, 0.50, 0.07)),
            ((-0.64, 0, 0.68, 0.022), (-0.72, 0, 0.66, 0.02), (-0.73, 0, 0.60, 0.015)),
        ),
        left=(
            ((0.36, 0.13, 0.48, 0.11), (0.33, 0.14, 0.28, 0.075),
             (0.34, 0.14, 0.10, 0.05), (0.36, 0.14, 0.04, 0.058)),
            ((-0.44, 0.13, 0.50, 0.15), (-0.40, 0.15, 0.33, 0.09),
             (-0.48, 0.14, 0.18, 0.055), (-0.45, 0.14, 0.05, 0.055)),
            ((0.62, 0.10, 0.70, 0.03), (0.70, 0.13, 0.74, 0.02)),
        ),
        triangles=4_000,
        blend=0.05,
    ),
    # Giraffe: 4.6 m tall, legs of 1.8 m, neck of 2 m, horns, tufted tail.
    "giraffe": Animal(
        middle=(
            ((-0.60, 0, 2.25, 0.38), (0, 0, 2.35, 0.46), (0.50, 0, 2.50, 0.46)),
            ((0.65, 0, 2.75, 0.34), (1.05, 0, 3.60, 0.21), (1.35, 0, 4.25, 0.16)),
            ((1.38, 0, 4.35, 0.17), (1.75, 0, 4.15, 0.09)),
            ((-0.95, 0, 2.30, 0.06), (-1.05, 0, 1.70, 0.04), (-1.05, 0, 1.30, 0.06)),
        ),
        left=(
            ((0.52, 0.24, 2.35, 0.24), (0.50, 0.26, 1.75, 0.16),
             (0.52, 0.26, 1.00, 0.11), (0.52, 0.26, 0.30, 0.075),
             (0.55, 0.26, 0.08, 0.11)),
            ((-0.62, 0.22, 2.15, 0.28), (-0.50, 0.25, 1.60, 0.17),
             (-0.68, 0.25, 0.95, 0.10), (-0.66, 0.25, 0.30, 0.075),
             (-0.62, 0.25, 0.08, 0.11)),
            ((1.34, 0.06, 4.48, 0.035), (1.32, 0.07, 4.66, 0.04)),
            ((1.26, 0.14, 4.40, 0.05), (1.22, 0.26, 4.44, 0.03)),
        ),
        paces=True,
        triangles=60_000,
        blend=0.12,
        place=(0.0, 0.0, 1.0),
    ),
    # African elephant: 3.2 m at the shoulder, trunk near the ground, tusks, big ears.
    "elephant": Animal(
        middle=(
            ((-1.10, 0, 2.10, 0.82), (0, 0, 2.05, 0.92), (0.95, 0, 2.15, 0.82)),
            ((1.45, 0, 2.35, 0.60), (1.90, 0, 2.35, 0.50)),
            ((2.20, 0, 2.10, 0.26), (2.45, 0, 1.40, 0.18), (2.45, 0, 0.75, 0.13),
             (2.60, 0, 0.45, 0.09)),
            ((-1.90, 0, 2.30, 0.08), (-2.00, 0, 1.50, 0.06), (-2.00, 0, 1.00, 0.07)),
        ),
        left=(
            ((0.92, 0.48, 1.75, 0.42), (0.88, 0.50, 1.00, 0.28),
             (0.92, 0.50, 0.15, 0.27)),
            ((-1.05, 0.46, 1.80, 0.48), (-0.95, 0.48, 1.05, 0.31),
             (-1.10, 0.48, 0.45, 0.25), (-1.06, 0.48, 0.15, 0.26)),
            ((1.45, 0.62, 2.50, 0.12), (1.10, 0.95, 2.35, 0.10),
             (1.15, 0.95, 1.85, 0.09)),
            ((2.15, 0.22, 1.80, 0.09), (2.55, 0.26, 1.45, 0.05)),
        ),
        triangles=300_000,
        blend=0.2,
        up="y",
    ),
    # Horse: 1.6 m at the withers, thin cannons, hooves.
    "horse": Animal(
        middle=(
            ((-0.62, 0, 1.22, 0.30), (0, 0, 1.15, 0.31), (0.52, 0, 1.18, 0.31)),
            ((0.62, 0, 1.32, 0.24), (0.95, 0, 1.75, 0.14), (1.05, 0, 1.90, 0.12)),
            ((1.07, 0, 1.92, 0.13), (1.40, 0, 1.62, 0.075), (1.48, 0, 1.54, 0.07)),
            ((-0.90, 0, 1.32, 0.05), (-1.05, 0, 1.00, 0.08), (-1.08, 0, 0.60, 0.05)),
        ),
        left=(
            ((0.50, 0.17, 1.05, 0.17), (0.44, 0.18, 0.85, 0.11),
             (0.48, 0.18, 0.48, 0.065), (0.48, 0.18, 0.18, 0.045),
             (0.53, 0.18, 0.05, 0.07)),
            ((-0.62, 0.16, 1.15, 0.22), (-0.50, 0.18, 0.88, 0.13),
             (-0.74, 0.18, 0.52, 0.065), (-0.70, 0.18, 0.18, 0.045),
             (-0.66, 0.18, 0.05, 0.07)),
            ((0.99, 0.06, 2.00, 0.035), (0.99, 0.08, 2.12, 0.012)),
        ),
        triangles=120_000,
        blend=0.07,
    ),
    # Red fox: 0.4 m at the shoulder, bushy tail hanging, pointed snout.
    "fox": Animal(
        middle=(
            ((-0.18, 0, 0.31, 0.07), (0, 0, 0.30, 0.075), (0.16, 0, 0.30, 0.085)),
            ((0.19, 0, 0.34, 0.065), (0.27, 0, 0.41, 0.055)),
            ((0.29, 0, 0.43, 0.06), (0.35, 0, 0.41, 0.03), (0.41, 0, 0.40, 0.016)),
            ((-0.24, 0, 0.32, 0.03), (-0.36, 0, 0.24, 0.055), (-0.50, 0, 0.16, 0.05),
             (-0.60, 0, 0.12, 0.015)),
        ),
        left=(
            ((0.16, 0.055, 0.28, 0.045), (0.13, 0.06, 0.20, 0.03),
             (0.14, 0.06, 0.07, 0.018), (0.165, 0.06, 0.022, 0.022)),
            ((-0.17, 0.05, 0.30, 0.055), (-0.13, 0.06, 0.19, 0.036),
             (-0.20, 0.06, 0.10, 0.019), (-0.165, 0.06, 0.022, 0.021)),
            ((0.28, 0.04, 0.48, 0.022), (0.275, 0.05, 0.54, 0.005)),
        ),
        triangles=20_000,
        blend=0.015,
        unit="mm",
    ),
    # Brown bear: 1.1 m at the shoulder, hump, plantigrade, stub tail.
    "bear": Animal(
        middle=(
            ((-0.60, 0, 0.80, 0.34), (0, 0, 0.76, 0.37), (0.45, 0, 0.80, 0.36)),
            ((0.62, 0, 0.85, 0.28), (0.92, 0, 0.88, 0.21)),
            ((0.98, 0, 0.90, 0.20), (1.20, 0, 0.82, 0.09)),
            ((-0.92, 0, 0.92, 0.06), (-1.02, 0, 0.84, 0.04)),
        ),
        left=(
            ((0.46, 0.22, 0.70, 0.20), (0.40, 0.25, 0.42, 0.14),
             (0.44, 0.26, 0.12, 0.10),
             (0.52, 0.26, 0.07, 0.09)),
            ((-0.58, 0.22, 0.72, 0.24), (-0.48, 0.25, 0.42, 0.16),
             (-0.60, 0.25, 0.13, 0.09), (-0.46, 0.26, 0.07, 0.085)),
            ((0.90, 0.13, 1.07, 0.06), (0.89, 0.15, 1.11, 0.05)),
        ),
        triangles=80_000,
        blend=0.08,
        place=(-2.0, 3.0, 0.0),
    ),
    # House mouse: 9 cm and a tail as long, large ears, short legs.
    "mouse": Animal(
        middle=(
            ((-0.025, 0, 0.023, 0.016), (0.005, 0, 0.022, 0.015),
             (0.022, 0, 0.021, 0.012)),
            ((0.030, 0, 0.023, 0.010), (0.045, 0, 0.019, 0.004)),
            ((-0.040, 0, 0.020, 0.0025), (-0.075, 0, 0.012, 0.002),
             (-0.120, 0, 0.016, 0.0012)),
        ),
        left=(
            ((0.018, 0.010, 0.017, 0.006), (0.016, 0.012, 0.010, 0.0042),
             (0.020, 0.012, 0.0035, 0.0035), (0.024, 0.012, 0.003, 0.003)),
            ((-0.026, 0.010, 0.019, 0.009), (-0.020, 0.014, 0.010, 0.0055),
             (-0.026, 0.013, 0.004, 0.0038), (-0.017, 0.014, 0.003, 0.0032)),
            ((0.025, 0.008, 0.031, 0.004), (0.022, 0.013, 0.037, 0.005)),
        ),
        triangles=8_000,
        blend=0.004,
        unit="mm",
    ),
    # Monitor lizard: 1.2 m, half of it tail, low, elbows and knees out.
    "lizard": Animal(
        middle=(
            ((-0.17, 0, 0.115, 0.05), (0, 0, 0.11, 0.062), (0.14, 0, 0.115, 0.05)),
            ((0.18, 0, 0.125, 0.038), (0.26, 0, 0.14, 0.036), (0.34, 0, 0.135, 0.018)),
            ((-0.20, 0, 0.11, 0.042), (-0.45, 0, 0.07, 0.024),
             (-0.80, 0, 0.045, 0.008)),
        ),
        left=(
            ((0.13, 0.04, 0.11, 0.03), (0.11, 0.085, 0.085, 0.024),
             (0.125, 0.10, 0.03, 0.018), (0.15, 0.10, 0.015, 0.018)),
            ((-0.16, 0.04, 0.11, 0.036), (-0.13, 0.09, 0.085, 0.028),
             (-0.16, 0.105, 0.03, 0.019), (-0.125, 0.105, 0.015, 0.018)),
        ),
        triangles=25_000,
        blend=0.012,
    ),
    # Hippopotamus: 1.5 m at the shoulder, barrel nearly on the ground, huge head.
    "hippopotamus": Animal(
        middle=(
            ((-0.95, 0, 0.88, 0.50), (0, 0, 0.82, 0.60), (0.75, 0, 0.88, 0.52)),
            ((1.05, 0, 0.95, 0.44), (1.45, 0, 0.90, 0.34), (1.85, 0, 0.78, 0.28)),
            ((-1.45, 0, 0.95, 0.06), (-1.55, 0, 0.70, 0.05)),
        ),
        left=(
            ((0.70, 0.33, 0.70, 0.26), (0.66, 0.35, 0.38, 0.18),
             (0.72, 0.35, 0.12, 0.15)),
            ((-0.88, 0.32, 0.75, 0.32), (-0.80, 0.35, 0.42, 0.20),
             (-0.88, 0.35, 0.13, 0.15)),
            ((1.28, 0.22, 1.22, 0.06), (1.27, 0.24, 1.30, 0.04)),
            ((1.85, 0.16, 0.95, 0.14), (1.90, 0.18, 0.72, 0.14)),
        ),
        triangles=2_000,
        blend=0.1,
        unit="cm",
        up="y",
    ),
    # Giant tortoise: 1.2 m, a domed shell, elephantine legs, neck stretched.
    "tortoise": Animal(
        middle=(
            ((-0.30, 0, 0.30, 0.16), (0.30, 0, 0.30, 0.15)),
            ((0.42, 0, 0.34, 0.09), (0.62, 0, 0.48, 0.075), (0.72, 0, 0.50, 0.075),
             (0.80, 0, 0.47, 0.05)),
            ((-0.50, 0, 0.28, 0.05), (-0.60, 0, 0.20, 0.02)),
        ),
        left=(
            ((0.32, 0.22, 0.30, 0.11), (0.35, 0.25, 0.18, 0.09),
             (0.36, 0.24, 0.06, 0.085)),
            ((-0.32, 0.22, 0.30, 0.11), (-0.36, 0.24, 0.18, 0.09),
             (-0.35, 0.23, 0.06, 0.09)),
        ),
        shell=((-0.02, 0.0, 0.36), (0.54, 0.38, 0.30)),
        triangles=10_000,
        blend=0.04,
        place=(0.3, 0.1, 0.0),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Pose:
    """Turns of an animal's joints from where it stands [rad].

    Attributes:
        stride: of hips, forward and back in a trot, and of the knees that swing.
        spread: of the hips of the left legs, sideways.
        flex: of the knees and the joints below them, back, in the left front and the
            right hind leg, whose feet hang in the air.
    """

    stride: float = 0.0
    spread: float = 0.0
    flex: float = 0.0


STANDING = Pose()


def animal_surface(name: str, pose: Pose = STANDING) -> Surface:
    """The surface of an animal, x forward, z up, on the ground [m].

    Args:
        name: of ANIMALS.
        pose: how its joints are turned.
    """
    animal = ANIMALS[name]
    pairs, lift = _posed(animal, pose)
    parts = [cone for chain in animal.middle for cone in _cones(chain, lift)]
    for left, right in pairs:
        for both in zip(_cones(left, lift), _cones(right, lift), strict=True):
            parts += both
    if animal.shell is not None:
        centre, radii = animal.shell
        parts.append(Ellipsoid(centre + lift, radii))
    cut = HalfSpaceCut([0.0, 0.0, 0.0], [0.0, 0.0, -1.0])
    body = Implicit(tuple(parts), (cut,), animal.blend)
    low, high = body.bounds()
    low[2] = 0.0
    # About 2.3 triangles for each square of the grid; coarse ones are simplified.
    count = min(max(animal.triangles, 40_000), 4 * animal.triangles)
    h = float((high - low).max()) / 60
    for _ in range(2):
        surface = _marched(body, low, high, h)
        h *= np.sqrt(len(surface.triangles) / count)
    surface = _marched(body, low, high, h)
    return (
        _simplified(surface, animal.triangles) if animal.triangles < count else surface
    )


def _posed(animal: Animal, pose: Pose):
    """Left and right chains, and the shift that puts the lowest foot on the ground.

    In the middle of a trot's stride, the left front and the right hind leg (of a pace,
    both left legs) swing forward from the hip, with the knee bent; the others are
    turned back.
    """
    pairs = [(np.array(c), np.array(c) * [1, -1, 1, 1]) for c in animal.left]
    stands = _lowest(pairs)
    for k, forward in enumerate((1, 1 if animal.paces else -1)):
        left, right = pairs[k]
        if pose.stride:
            left = _swung(left, forward * pose.stride)
            right = _swung(right, -forward * pose.stride)
        left = _turned(left, 0, pose.spread, axes=[1, 2])
        flexed = left if k == 0 else right
        for joint in (1, 2):
            flexed = _turned(flexed, joint, -pose.flex)
        pairs[k] = (flexed, right) if k == 0 else (left, flexed)
    return pairs, np.array([0.0, 0.0, stands - _lowest(pairs)])


def _lowest(pairs) -> float:
    return min(float((c[:, 2] - c[:, 3]).min()) for pair in pairs[:2] for c in pair)


def _cones(chain: Chain, lift: np.ndarray) -> list[RoundCone]:
    points = np.array(chain)
    return [
        RoundCone(a[:3] + lift, b[:3] + lift, float(a[3]), float(b[3]))
        for a, b in itertools.pairwise(points)
    ]


def _swung(leg: np.ndarray, angle: float) -> np.ndarray:
    """A leg that is turned forward at the hip [rad]; its knee bends as it swings."""
    leg = _turned(leg, 0, angle)
    return _turned(leg, 1, -angle) if angle > 0 else leg


def _turned(leg: np.ndarray, joint: int, angle: float, axes=(0, 2)) -> np.ndarray:
    """The points below a joint, turned about it [rad], positive forward (or left)."""
    c, s = np.cos(angle), np.sin(angle)
    leg, axes = leg.copy(), list(axes)
    d = leg[joint:, axes] - leg[joint, axes]
    leg[joint:, axes] = leg[joint, axes] + d @ [[c, s], [-s, c]]
    return leg


def _marched(body, low, high, h):
    origin = low - 2.371 * h
    shape = np.ceil((high - origin) / h + 3).astype(int)
    axes = [o + h * np.arange(n) for o, n in zip(origin, shape)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    values = body(points).reshape(shape)
    x, f, _, _ = marching_cubes(values, 0.0, allow_degenerate=False)
    return Surface(h * x.astype(float) + origin, f.astype(np.int64))


def _simplified(surface: Surface, count: int) -> Surface:
    """The surface with about so many triangles, uneven as those of modellers."""
    body = to_manifold(surface)
    size = float(np.ptp(surface.vertices, axis=0).max())
    low, high = 1e-6 * size, 3e-2 * size
    for _ in range(14):
        middle = float(np.sqrt(low * high))
        many = body.simplify(middle).num_tri()
        low, high = (middle, high) if many > count else (low, middle)
    return to_surface(body.simplify(high))


def write_animal(name: str, folder: Path, pose: Pose = STANDING) -> Path:
    """Writes NAME.obj with the animal's unit, axes and place."""
    animal, surface = ANIMALS[name], animal_surface(name, pose)
    x = surface.vertices + animal.place
    if animal.up == "y":  # z forward, y up: what many programs write.
        x = x[:, [1, 2, 0]]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.obj"
    write_surface(path, Surface(x, surface.triangles), animal.unit)
    return path


def add_pose(parser: argparse.ArgumentParser) -> None:
    """Options for the angles of a pose."""
    for name, what in (
        ("stride", "hips, and knees of swinging legs, in a trot"),
        ("spread", "hips of the left legs, sideways"),
        ("flex", "knees and ankles of two feet in the air, back"),
    ):
        parser.add_argument(
            f"--{name}", type=float, default=0.0, help=f"angle of {what} [deg]"
        )


def pose_of(args: argparse.Namespace) -> Pose:
    """The pose that the options give."""
    return Pose(*np.radians([args.stride, args.spread, args.flex]).tolist())
