"""A robot whose names are markup for a page, a console or a picture."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

HOSTILE = (
    "<script>document.title = 'evil'</script>",
    "<b id=evil>foot</b>",
    *("[red]foot[/]", ":smile:", "$x^$", "a/../b"),
)
"""Names of its feet."""

_INERTIAL = """<inertial><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>"""


def hostile_robot(folder: Path) -> Path:
    """Writes a body with a leg of each name; its file is called like one, too."""
    legs = "".join(
        f"""<link name={quoteattr(name)}>{_INERTIAL}<collision>
          <origin xyz="0 0 -0.1"/><geometry><sphere radius="0.02"/></geometry>
        </collision></link>
        <joint name={quoteattr("hip " + name)} type="revolute">
          <parent link="[bold]trunk"/><child link={quoteattr(name)}/>
          <origin xyz="{0.2 * k} {0.1 * (-1) ** k} 0"/><axis xyz="0 1 0"/>
          <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>"""
        for k, name in enumerate(HOSTILE)
    )
    path = folder / "[red]robot.urdf"
    path.write_text(
        f'<robot name="robot"><link name="[bold]trunk">{_INERTIAL}</link>{legs}</robot>'
    )
    return path
