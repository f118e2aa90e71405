"""Robots to plan for, as URDF text: a planar hopper, a quadruped, a sled.

Their numbers are our own. Angles are zero in a crouch, so that the default
pose stands: a URDF has no other means to say how a robot stands.

A module without a command: `contact_implicit.py`, `scaling.py` and tests plan for them.
"""

from __future__ import annotations

import re
from pathlib import Path

from drakebots import load
from drakebots.model import Model

CROUCH = 0.5
"""Of thighs back from vertical and shanks forward at zero angles [rad]."""

SLED = """<?xml version="1.0"?>
<robot name="sled"><link name="base"/><link name="carriage"/><link name="sled">
<inertial><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="weld" type="fixed"><parent link="world"/><child link="base"/></joint>
<joint name="x" type="prismatic"><parent link="base"/><child link="carriage"/>
<axis xyz="1 0 0"/><limit lower="-99" upper="99" effort="99" velocity="99"/></joint>
<joint name="z" type="prismatic"><parent link="carriage"/><child link="sled"/>
<axis xyz="0 0 1"/><limit lower="-99" upper="99" effort="99" velocity="99"/></joint>
<transmission name="push"><type>transmission_interface/SimpleTransmission</type>
<joint name="x"/><actuator name="push"/></transmission></robot>
"""
"""A sled that cannot turn: slides along x and lifts off along z, on one foot."""

SLED_FEET = "feet: {foot: {body: sled, p: [0, 0, 0]}}"


def _inertia(mass: float, *sizes: float) -> str:
    """A solid box's <inertial> around its middle, sizes (x, y, z) [m]."""
    x, y, z = (s * s for s in sizes)
    moments = (mass / 12 * s for s in (y + z, x + z, x + y))
    entries = " ".join(f'{n}="{v:.6g}"' for n, v in zip(("ixx", "iyy", "izz"), moments))
    return f'<mass value="{mass}"/><inertia {entries} ixy="0" ixz="0" iyz="0"/>'


def _link(name, mass, sizes, *, com="0 0 0", rpy="0 0 0", extra="") -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}" rpy="{rpy}"/>'
        f"{_inertia(mass, *sizes)}</inertial>{extra}</link>"
    )


def _joint(
    name, kind, parent, child, *, xyz="0 0 0", rpy="0 0 0", axis, more=""
) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/>'
        f'<axis xyz="{axis}"/>{more}</joint>'
    )


def _motor(joint: str) -> str:
    return (
        f'<transmission name="{joint}_drive"><type>SimpleTransmission</type>'
        f'<joint name="{joint}"/><actuator name="{joint}"/></transmission>'
    )


def _limit(low, high, effort) -> str:
    return (
        f'<limit lower="{low}" upper="{high}" effort="{effort}" velocity="20"/>'
        '<dynamics damping="0.05"/>'
    )


def _leg(name, base, at, *, thigh, shank, masses, radius, effort) -> str:
    """Hip pitch and knee, a sphere at the end; with zero angles the thigh leans
    back by CROUCH and the shank forward by as much."""
    limits = _limit(-0.9, 0.9, effort), _limit(-1.2, 0.9, effort)
    foot = (
        f'<collision><origin xyz="0 0 {-shank}"/><geometry>'
        f'<sphere radius="{radius}"/></geometry></collision>'
    )
    return "".join(
        (
            _joint(
                f"{name}_hip",
                "revolute",
                base,
                f"{name}_thigh",
                xyz=at,
                rpy=f"0 {CROUCH} 0",
                axis="0 1 0",
                more=limits[0],
            ),
            _link(
                f"{name}_thigh",
                masses[0],
                (0.03, 0.03, thigh),
                com=f"0 0 {-thigh / 2}",
            ),
            _joint(
                f"{name}_knee",
                "revolute",
                f"{name}_thigh",
                f"{name}_shank",
                xyz=f"0 0 {-thigh}",
                rpy=f"0 {-2 * CROUCH} 0",
                axis="0 1 0",
                more=limits[1],
            ),
            _link(
                f"{name}_shank",
                masses[1],
                (0.02, 0.02, shank),
                com=f"0 0 {-shank / 2}",
                extra=foot,
            ),
            _motor(f"{name}_hip"),
            _motor(f"{name}_knee"),
        )
    )


def _sized(text: str, size: float) -> str:
    """A URDF of a robot `size` times as long, of the same density and gravity:
    dynamically similar, so that times grow with sqrt(size)."""
    powers = {
        'radius="': 1,
        'mass value="': 3,
        **{f'{name}="': 5 for name in ("ixx", "iyy", "izz")},
        'effort="': 4,
        'damping="': 4.5,
        'velocity="': -0.5,
    }
    for key, power in powers.items():
        text = re.sub(
            rf"(?<=\b{key})[-0-9.e]+",
            lambda found, power=power: f"{float(found.group()) * size**power!r}",
            text,
        )
    return re.sub(
        r'(?<=<origin xyz=")[^"]+',
        lambda found: " ".join(repr(float(v) * size) for v in found.group().split()),
        text,
    )


def hopper_urdf(*, effort: float = 12.0, size: float = 1.0) -> str:
    """A planar one-legged hopper: x, z, pitch, hip, knee; 3 kg, 0.4 m tall.

    Args:
        effort: of every joint [N m].
        size: a factor of all lengths, of a similar robot.
    """
    parts = ['<robot name="hopper"><link name="world"/>']
    empty = '<link name="slide_{}"/>'
    parts += [empty.format("x"), empty.format("z")]
    parts += [
        _joint("x", "prismatic", "world", "slide_x", axis="1 0 0"),
        _joint("z", "prismatic", "slide_x", "slide_z", axis="0 0 1"),
        _joint("pitch", "continuous", "slide_z", "torso", axis="0 1 0"),
        _link("torso", 2.4, (0.2, 0.1, 0.12), com="0 0 0.05"),
        _leg(
            "leg",
            "torso",
            "0 0 0",
            thigh=0.2,
            shank=0.2,
            masses=(0.4, 0.2),
            radius=0.015,
            effort=effort,
        ),
    ]
    return _sized("".join(parts) + "</robot>", size)


def quadruped_urdf(
    *, effort: float = 20.0, feet: bool = True, hip_roll: bool = False
) -> str:
    """A quadruped of 6 + 8 coordinates: hip pitch and knee a leg; 10 kg.

    Args:
        effort: of every joint [N m].
        feet: whether it has spheres at its ends.
        hip_roll: a third joint a leg: 18 coordinates and 10.8 kg.
    """
    parts = ['<robot name="quadruped">', _link("trunk", 6.0, (0.36, 0.18, 0.1))]
    for name, x, y in (
        ("fl", 0.18, 0.12),
        ("fr", 0.18, -0.12),
        ("rl", -0.18, 0.12),
        ("rr", -0.18, -0.12),
    ):
        base, at = "trunk", f"{x} {y} 0"
        if hip_roll:
            parts += [
                _joint(
                    f"{name}_roll",
                    "revolute",
                    "trunk",
                    f"{name}_hub",
                    xyz=at,
                    axis="1 0 0",
                    more=_limit(-0.6, 0.6, effort),
                ),
                _link(f"{name}_hub", 0.2, (0.05, 0.05, 0.05)),
                _motor(f"{name}_roll"),
            ]
            base, at = f"{name}_hub", "0 0 0"
        parts.append(
            _leg(
                name,
                base,
                at,
                thigh=0.2,
                shank=0.2,
                masses=(0.8, 0.2),
                radius=0.02,
                effort=effort,
            )
        )
    text = "".join(parts) + "</robot>"
    return text if feet else text.replace("collision>", "visual>")


def written(folder: Path, name: str, text: str, **options) -> Model:
    """The model of a URDF text."""
    path = folder / f"{name}.urdf"
    path.write_text(text)
    return load(path, **options)
