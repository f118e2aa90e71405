"""Robots whose joints follow others: a chain of four links, and two quadrupeds.

Three joints of the chain follow its first:

    k = -2 j + 0.1 rad,   s = 0.05 m/rad j + 0.02 m (it slides),   t = 7 rad/m s

The quadrupeds are examples/my_robot.urdf with knees that follow their hips, so that a
leg has two motors, and with shanks in two parts whose ankles follow their knees.
"""

from __future__ import annotations

import re
from pathlib import Path

from drakebots import load
from drakebots.model import Model

NAMES = ("j", "k", "s", "t")
GEARS = {"k": ("j", -2.0, 0.1), "s": ("j", 0.05, 0.02), "t": ("s", 7.0, 0.0)}


def linkage_urdf() -> str:
    """The chain as URDF; only its first joint has a motor."""
    parts, parent = ["<link name='world'/>"], "world"
    kinds = ("revolute", "revolute", "prismatic", "revolute")
    axes = ("0 1 0", "0 1 0", "0 0 1", "1 0 0")
    for name, kind, axis in zip(NAMES, kinds, axes):
        mimic = ""
        if name in GEARS:
            leader, gear, offset = GEARS[name]
            mimic = f'<mimic joint="{leader}" multiplier="{gear}" offset="{offset}"/>'
        parts.append(
            f'<link name="link_{name}"><inertial><origin xyz="0.03 0.02 -0.05"/>'
            '<mass value="0.4"/><inertia ixx="2e-3" iyy="1.5e-3" izz="1e-3" ixy="0" '
            'ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="link_{name}"/><origin xyz="0 0 -0.1" rpy="0.1 0.2 0"/>'
            f'<axis xyz="{axis}"/><limit effort="5" velocity="9" lower="-9" '
            f'upper="9"/>{mimic}</joint>'
        )
        parent = f"link_{name}"
    return f'<robot name="linkage">{"".join(parts)}</robot>'


def linkage(folder: Path) -> Model:
    """The chain, loaded."""
    path = folder / "linkage.urdf"
    path.write_text(linkage_urdf())
    return load(path)


def my_robot_urdf() -> str:
    """The text of examples/my_robot.urdf."""
    root = Path(__file__).resolve().parents[2]
    return (root / "examples" / "my_robot.urdf").read_text()


def knees_follow(folder: Path, gear: float) -> Path:
    """The quadruped of the examples, whose knees are its hips times a gear."""

    def coupled(match: re.Match) -> str:
        tag = f'<mimic joint="{match.group(1)}_hip" multiplier="{gear}"/></joint>'
        return match.group().replace("</joint>", tag)

    knee = re.compile(r'<joint name="(\w+)_knee".*?</joint>', re.DOTALL)
    path = folder / "knees.urdf"
    path.write_text(knee.sub(coupled, my_robot_urdf()))
    return path


def ankles_follow(folder: Path) -> Path:
    """The quadruped with shanks of 0.1 m and feet of 0.14 m, which stay parallel to
    the thighs: ankle = -knee, as by a parallelogram beside the shank."""

    def parted(match: re.Match) -> str:
        leg = match.group(1)
        shank = f"""<link name="{leg}_shank"><inertial><origin xyz="0 0 -0.05"/>
<mass value="0.12"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-5" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="{leg}_ankle" type="revolute">
<parent link="{leg}_shank"/><child link="{leg}_foot"/><origin xyz="0 0 -0.1"/>
<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="25" velocity="20"/>
<mimic joint="{leg}_knee" multiplier="-1"/></joint>"""
        foot = match.group().replace(f"{leg}_shank", f"{leg}_foot")
        foot = foot.replace('xyz="0 0 -0.10"', 'xyz="0 0 -0.07"')
        foot = foot.replace('length="0.2"', 'length="0.14"')
        return shank + foot.replace('xyz="0 0 -0.21"', 'xyz="0 0 -0.14"')

    shank = re.compile(r'<link name="(\w+)_shank">.*?</link>', re.DOTALL)
    path = folder / "ankles.urdf"
    path.write_text(shank.sub(parted, my_robot_urdf()))
    return path
