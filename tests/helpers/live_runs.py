"""Scripts of live runs, and a pendulum with a motor to drive."""

from __future__ import annotations

from pathlib import Path

PENDULUM = """<robot name="pendulum"><link name="world"/><link name="rod">
<inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><origin xyz="0 0 -0.5"/><geometry><box size="0.1 0.1 1"/></geometry></visual>
</link><joint name="pivot" type="continuous"><parent link="world"/><child link="rod"/>
<axis xyz="0 1 0"/></joint><transmission name="drive">
<type>transmission_interface/SimpleTransmission</type>
<joint name="pivot"/><actuator name="motor"/></transmission></robot>"""


def scripted(folder: Path, text: str) -> Path:
    """A script of commands "time control value; ..."; controls may have spaces."""
    rows = [
        ",".join(line.rsplit(" ", 1)).replace(" ", ",", 1) for line in text.split("; ")
    ]
    path = folder / "commands.csv"
    path.write_text("\n".join(["time,control,value", *rows]))
    return path
