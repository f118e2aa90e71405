"""Small legged robots, written for tests on standing."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def quadruped(
    folder: Path,
    *,
    effort: float = 40.0,
    knee: tuple[float, float] = (-2.5, 0.3),
    thick: bool = False,
) -> Path:
    """A quadruped of 10 kg whose legs are straight at q = 0.

    Args:
        folder: to write into.
        effort: of its motors [N m].
        knee: limits of its knees [rad].
        thick: whether the thighs' boxes reach into the trunk.
    """
    legs = "".join(
        _leg(name, x, y, effort, knee, thick)
        for name, x, y in (
            ("FL", 0.2, 0.1),
            ("FR", 0.2, -0.1),
            ("RL", -0.2, 0.1),
            ("RR", -0.2, -0.1),
        )
    )
    text = f"""<robot name="quadruped">
  <link name="trunk">
    {_inertia(6.0, 0.1)}
    <collision><geometry><box size="0.4 0.2 0.1"/></geometry></collision>
  </link>{legs}
</robot>"""
    path = folder / "quadruped.urdf"
    path.write_text(text)
    return path


def nested_quadruped(folder: Path) -> Path:
    """An SDF with a model for each leg: their parts share names. Covers of the shanks
    reach into the thighs."""

    def link(name, mass, z, shape="", at=0.0):
        moment = f"{0.4 * mass * 0.06**2}"
        inertia = "".join(f"<{i}>{moment}</{i}>" for i in ("ixx", "iyy", "izz"))
        touch = f"""<collision name="c"><pose>0 0 {at} 0 0 0</pose>
          <geometry>{shape}</geometry></collision>"""
        return f"""<link name="{name}"><pose>0 0 {z} 0 0 0</pose><inertial>
          <mass>{mass}</mass><inertia>{inertia}</inertia></inertial>
          {touch if shape else ""}</link>"""

    def joint(name, parent, child, axis, low, high):
        return f"""<joint name="{name}" type="revolute"><parent>{parent}</parent>
          <child>{child}</child><axis><xyz>{axis}</xyz><limit><lower>{low}</lower>
          <upper>{high}</upper><effort>60</effort></limit></axis></joint>"""

    rod = "<cylinder><radius>0.02</radius><length>0.2</length></cylinder>"
    ball = "<sphere><radius>0.02</radius></sphere>"
    leg = link("hip", 0.4, 0) + link("thigh", 0.5, 0, rod, -0.13)
    leg += link("shank", 0.2, -0.2, ball, -0.2) + link("cover", 0.05, -0.2, rod, -0.08)
    leg += joint("hip_y", "hip", "thigh", "0 1 0", -1.2, 1.2)
    leg += joint("knee", "thigh", "shank", "0 1 0", -2.5, 0.3)
    leg += """<joint name="worn" type="fixed"><parent>shank</parent>
      <child>cover</child></joint>"""
    box = "<box><size>0.5 0.2 0.1</size></box>"
    text = link("trunk", 8, 0, box)
    for name, x, y in (("FL", 2, 1), ("FR", 2, -1), ("RL", -2, 1), ("RR", -2, -1)):
        text += f"""<model name="{name}"><pose>{0.1 * x} {0.15 * y} 0 0 0 0</pose>
          {leg}</model>"""
        text += joint(f"{name}_abd", "trunk", f"{name}::hip", "1 0 0", -0.6, 0.6)
    path = folder / "nested.sdf"
    path.write_text(f'<sdf version="1.9"><model name="dog">{text}</model></sdf>')
    return path


def hexapod(folder: Path) -> Path:
    """A hexapod of 2.6 kg whose legs, of 0.3 m, are spread level at q = 0."""

    def joint(part, leg, parent, xyz, yaw, axis, low, high):
        return f'''
  <joint name="leg_{leg}_{part}_joint" type="revolute">
    <parent link="{parent}"/><child link="leg_{leg}_{part}"/>
    <origin xyz="{xyz}" rpy="0 0 {yaw}"/><axis xyz="{axis}"/>
    <limit lower="{low}" upper="{high}" effort="6" velocity="6"/>
  </joint>'''

    text = f"""<robot name="hexapod"><link name="trunk">{_inertia(1.2, 0.2)}
    <collision><geometry><box size="0.3 0.2 0.05"/></geometry></collision></link>"""
    corners = ((0.15, -0.1), (0, -0.12), (-0.15, -0.1))
    for leg, (x, y) in enumerate(corners + tuple((x, -y) for x, y in corners), 1):
        yaw = np.arctan2(y, x)
        names = [f"leg_{leg}_{part}" for part in ("coxa", "femur", "tibia")]
        text += joint("coxa", leg, "trunk", f"{x} {y} 0", yaw, "0 0 1", -0.8, 0.8)
        text += joint("femur", leg, names[0], "0.05 0 0", 0, "0 1 0", -1.5, 1.5)
        text += joint("tibia", leg, names[1], "0.1 0 0", 0, "0 1 0", -0.2, 2.6)
        foot = """<collision><origin xyz="0.15 0 0"/>
    <geometry><sphere radius="0.01"/></geometry></collision>"""
        for name, shape in zip(names, ("", "", foot)):
            text += f'''
  <link name="{name}">{_inertia(0.08, 0.05)}{shape}</link>'''
    path = folder / "hexapod.urdf"
    path.write_text(text + "</robot>")
    return path


def biped(folder: Path, *, rolls: bool = False) -> Path:
    """A biped of 18 kg on two flat feet of 0.16 m by 0.08 m, straight at q = 0.

    Args:
        folder: to write into.
        rolls: whether its hips, off the first joint, and its ankles roll, too.
    """
    names = ["hip", "knee", "ankle"]
    names = ["hip_roll", *names, "ankle_roll"] if rolls else names
    down = {"knee": 0.3, "ankle": 0.3}
    limits = {"hip": (-1.5, 1.5), "knee": (0, 2)}

    def side(name, y):
        text, parent = "", "pelvis"
        for part in names:
            child, axis = f"{name}_{part}_link", "1 0 0" if "roll" in part else "0 1 0"
            at = f"0 {y if part == names[0] else 0} {-down.get(part, 0)}"
            at = f"0.05 {y / 2} 0" if rolls and part == "hip" else at
            low, high = limits.get(part, (-1, 1))
            shape = '<origin xyz="0.03 0 -0.04"/><geometry><box size="0.16 0.08 0.02"/>'
            if part != names[-1]:
                width = 0.06 if part == "hip" else 0.05
                shape = (
                    f'<origin xyz="0 0 -0.15"/><geometry><box size="{width} {width} '
                    '0.2"/>'
                )
            shape = f"<collision>{shape}</geometry></collision>"
            shape = "" if part in ("hip_roll", "ankle") and rolls else shape
            text += f'''
  <link name="{child}">{_inertia(1.5, 0.1)}{shape}
  </link>
  <joint name="{name}_{part}" type="revolute">
    <parent link="{parent}"/><child link="{child}"/>
    <origin xyz="{at}"/><axis xyz="{axis}"/>
    <limit lower="{low}" upper="{high}" effort="60" velocity="9"/>
  </joint>'''
            parent = child
        return text

    path = folder / "biped.urdf"
    path.write_text(
        f'<robot name="biped"><link name="pelvis">{_inertia(9.0, 0.2)}</link>'
        + side("L", 0.1)
        + side("R", -0.1)
        + "</robot>"
    )
    return path


def _inertia(mass: float, size: float) -> str:
    moment = mass * size**2 / 6
    return (
        f'<inertial><mass value="{mass}"/><inertia ixx="{moment}" iyy="{moment}" '
        f'izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def _leg(name, x, y, effort, knee, thick) -> str:
    def joint(part, parent, child, xyz, axis, low, high):
        return f'''
  <joint name="{name}_{part}" type="revolute">
    <parent link="{parent}"/><child link="{child}"/>
    <origin xyz="{xyz}"/><axis xyz="{axis}"/>
    <limit lower="{low}" upper="{high}" effort="{effort}" velocity="20"/>
  </joint>'''

    def link(part, shape):
        return f'''
  <link name="{name}_{part}">{_inertia(0.3, 0.1)}{shape}</link>'''

    box = '<collision><geometry><box size="0.08 0.08 0.2"/></geometry></collision>'
    ball = (
        '<collision><origin xyz="0 0 -0.2"/><geometry><sphere radius="0.02"/>'
        "</geometry></collision>"
    )
    return (
        joint("abduction", "trunk", f"{name}_hip", f"{x} {y} 0", "1 0 0", -0.8, 0.8)
        + link("hip", "")
        + joint("flexion", f"{name}_hip", f"{name}_thigh", "0 0 0", "0 1 0", -2, 2)
        + link("thigh", box if thick else "")
        + joint("knee", f"{name}_thigh", f"{name}_shank", "0 0 -0.2", "0 1 0", *knee)
        + link("shank", ball)
    )
