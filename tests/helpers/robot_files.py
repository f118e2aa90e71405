"""Small robots of our own as files, one for each habit of the files in the world.

`HABITS` has one entry a habit: it writes its files into a folder and says how many
legs the robot has. The quadruped is 0.3 m long with two joints a leg; the biped
has three joints a leg and flat feet. Both are 3 to 4 kg, in SI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import trimesh

CORNERS = {"FL": (1, 1), "FR": (1, -1), "RL": (-1, 1), "RR": (-1, -1)}
SIDES = {"left": 1, "right": -1}

BALL = '<collision><geometry><sphere radius="0.015"/></geometry></collision>'
"""A foot of the quadruped, at the end of its lower leg."""


@dataclass(frozen=True)
class Habit:
    """A way in which robot files are written.

    Attributes:
        write: writes the robot into a folder; its path.
        legs: number of bodies with feet.
        notes: words that the model's notes must contain, in lower case.
        loops: number of closed loops.
    """

    write: Callable[[Path], Path]
    legs: int
    notes: tuple[str, ...] = ()
    loops: int = 0


HABITS: dict[str, Habit] = {}


def habit(legs: int, *notes: str, loops: int = 0):
    """Lists the function under its name."""

    def add(write: Callable[[Path], Path]) -> Callable[[Path], Path]:
        HABITS[write.__name__] = Habit(write, legs, notes, loops)
        return write

    return add


# --- pieces of URDF ---


def link(name: str, mass: float, size, inside: str = "", at: str = "0 0 0") -> str:
    """A link with the inertia of a box (3,) [m] at a point of its frame."""
    x, y, z = (s**2 * mass / 12 for s in size)
    return (
        f'<link name="{name}"><inertial><origin xyz="{at}"/><mass value="{mass}"/>'
        f'<inertia ixx="{y + z:.4g}" iyy="{x + z:.4g}" izz="{x + y:.4g}" '
        f'ixy="0" ixz="0" iyz="0"/></inertial>{inside}</link>\n'
    )


def joint(
    name: str,
    parent: str,
    child: str,
    at: str,
    limits: str = 'lower="-1.5" upper="1.5"',
    kind: str = "revolute",
) -> str:
    """A joint about y; without limits where they are ""."""
    effort = f'<limit {limits} effort="20" velocity="15"/>' if limits else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/><origin xyz="{at}"/><axis xyz="0 1 0"/>'
        f"{effort}</joint>\n"
    )


def box(size: str, at: str = "0 0 0", role: str = "collision", inside: str = "") -> str:
    """A box as geometry of a role."""
    return (
        f'<{role}><origin xyz="{at}"/><geometry><box size="{size}"/></geometry>'
        f"{inside}</{role}>"
    )


def mesh(uri: str, role: str = "collision", at: str = "0 0 0") -> str:
    """A mesh as geometry of a role."""
    return (
        f'<{role}><origin xyz="{at}"/><geometry><mesh filename="{uri}"/></geometry>'
        f"</{role}>"
    )


def quadruped(
    foot: str = BALL,
    *,
    torso: str = "",
    rest: str = "",
    limits: str = 'lower="-1.5" upper="1.5"',
    knee: str | None = None,
    kind: str = "revolute",
) -> str:
    """A URDF.

    Args:
        foot: inside a link at the end of each lower leg, which a fixed joint holds.
        torso: inside the torso besides its box.
        rest: after the links and joints.
        limits: of the joints, as attributes; of the knees by `knee` if given.
        kind: of the joints.
    """
    shape = box("0.3 0.16 0.06", role="visual") + box("0.3 0.16 0.06")
    text = link("torso", 2.0, (0.3, 0.16, 0.06), shape + torso)
    for leg, (x, y) in CORNERS.items():
        text += link(f"{leg}_thigh", 0.2, (0.02, 0.02, 0.12), at="0 0 -0.06")
        text += link(f"{leg}_shank", 0.1, (0.02, 0.02, 0.12), at="0 0 -0.06")
        text += link(f"{leg}_foot", 0.02, (0.02, 0.02, 0.02), foot)
        at = f"{0.13 * x} {0.09 * y} 0"
        text += joint(f"{leg}_hip", "torso", f"{leg}_thigh", at, limits, kind)
        text += joint(
            f"{leg}_knee",
            f"{leg}_thigh",
            f"{leg}_shank",
            "0 0 -0.12",
            limits if knee is None else knee,
            kind,
        )
        text += joint(
            f"{leg}_end", f"{leg}_shank", f"{leg}_foot", "0 0 -0.12", "", "fixed"
        )
    return f'<?xml version="1.0"?>\n<robot name="quadruped">\n{text}{rest}</robot>\n'


def biped(foot: str, *, rest: str = "", torso: str = "") -> str:
    """A URDF; `foot` is inside the last link of each leg, whose frame is the ankle."""
    shape = box("0.1 0.2 0.2", "0 0 0.1", "visual")
    text = link("pelvis", 2.0, (0.1, 0.2, 0.2), shape + torso, at="0 0 0.1")
    for side, y in SIDES.items():
        text += link(f"{side}_thigh", 0.4, (0.03, 0.03, 0.15), at="0 0 -0.07")
        text += link(f"{side}_shank", 0.3, (0.03, 0.03, 0.15), at="0 0 -0.07")
        text += link(f"{side}_foot", 0.2, (0.14, 0.07, 0.02), foot)
        hip = f"0 {0.07 * y} 0"
        text += joint(f"{side}_hip", "pelvis", f"{side}_thigh", hip)
        text += joint(f"{side}_knee", f"{side}_thigh", f"{side}_shank", "0 0 -0.15")
        text += joint(f"{side}_ankle", f"{side}_shank", f"{side}_foot", "0 0 -0.15")
    return f'<?xml version="1.0"?>\n<robot name="biped">\n{text}{rest}</robot>\n'


def write(folder: Path, text: str, name: str = "robot.urdf") -> Path:
    """Writes a file; its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_mesh(folder: Path, name: str, size=(0.04, 0.03, 0.02)) -> None:
    """Writes a box [m] as a mesh; the ending of the name decides the format."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    trimesh.creation.box(size).export(path)


# --- URDF: what stands in the file ---


@habit(4)
def plain(folder: Path) -> Path:
    """Spheres for feet, limits with efforts."""
    return write(folder, quadruped())


@habit(4, "contact", "plugin")
def unknown_tags(folder: Path) -> Path:
    """Robot with the elements that Bullet, Gazebo and ROS add."""
    foot = BALL + (
        '<contact><lateral_friction value="1"/></contact><self_collide>0</self_collide>'
    )
    rest = (
        '<gazebo reference="torso"><mu1>0.8</mu1><mu2>0.8</mu2><self_filter/></gazebo>'
        '<gazebo><plugin name="control" filename="libcontrol.so">'
        "<update_rate>100</update_rate></plugin></gazebo>"
        '<joint_properties damping="0.1"/><plugin name="another"/>'
    )
    return write(folder, quadruped(foot, rest=rest))


@habit(4)
def materials(folder: Path) -> Path:
    """One material defined twice, another never."""
    grey = '<material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>'
    other = '<material name="grey"><color rgba="0.6 0.5 0.5 1"/></material>'
    torso = box("0.1 0.1 0.1", role="visual", inside=other)
    foot = BALL + box("0.1 0.1 0.1", role="visual", inside='<material name="none"/>')
    return write(folder, quadruped(foot, torso=torso, rest=grey))


@habit(4)
def transmissions(folder: Path) -> Path:
    """Motors as transmissions of ROS, on the hips alone."""
    rest = "".join(
        f'<transmission name="t_{leg}"><type>transmission_interface/'
        f'SimpleTransmission</type><joint name="{leg}_hip"><hardwareInterface>'
        "hardware_interface/EffortJointInterface</hardwareInterface></joint>"
        f'<actuator name="{leg}_motor"><mechanicalReduction>1</mechanicalReduction>'
        "</actuator></transmission>\n"
        for leg in CORNERS
    )
    return write(folder, quadruped(rest=rest))


@habit(4)
def late_declaration(folder: Path) -> Path:
    """A blank line before the XML declaration."""
    return write(folder, "\n\n" + quadruped())


@habit(4)
def odd_names(folder: Path) -> Path:
    """Names with spaces, brackets and signs of markup."""
    text = quadruped().replace("torso", "main [red] body").replace("FL_", "&lt;b&gt;")
    return write(folder, text)


@habit(4)
def knees_bent(folder: Path) -> Path:
    """Zero is outside the knees' limits."""
    return write(folder, quadruped(knee='lower="-2.6" upper="-0.8"'))


@habit(4)
def continuous_with_limits(folder: Path) -> Path:
    """Continuous joints that have limits nevertheless."""
    return write(folder, quadruped(kind="continuous"))


@habit(4)
def impossible_inertia(folder: Path) -> Path:
    """A torso whose inertia no body has; Drake takes one in its place."""
    text = quadruped().replace('name="torso"><inertial>', 'name="torso"><inertial> ')
    first = text.index('ixx="')
    return write(folder, text[:first] + 'ixx="9' + text[first + 5 :])


# --- URDF: feet ---


@habit(2)
def flat_feet(folder: Path) -> Path:
    """Boxes, four points each."""
    return write(folder, biped(box("0.14 0.07 0.02", "0.02 0 -0.03")))


@habit(4)
def cylinder_feet(folder: Path) -> Path:
    """Upright cylinders."""
    foot = '<collision><geometry><cylinder radius="0.02" length="0.03"/></geometry>'
    return write(folder, quadruped(foot + "</collision>"))


@habit(4)
def named_feet(folder: Path) -> Path:
    """No collision shape at all: links named *_foot."""
    return write(folder, quadruped(""))


@habit(2)
def mesh_feet(folder: Path) -> Path:
    """Flat feet as .stl, found beside the file."""
    write_mesh(folder, "meshes/sole.stl", (0.14, 0.07, 0.02))
    return write(folder, biped(mesh("meshes/sole.stl", at="0.02 0 -0.03")))


@habit(2)
def hands(folder: Path) -> Path:
    """A biped with spheres for hands, which are not feet."""
    arms = ""
    for side, y in SIDES.items():
        arms += link(f"{side}_hand", 0.2, (0.03, 0.03, 0.15), BALL, at="0 0 -0.07")
        at = f"0 {0.13 * y} 0.2"
        arms += joint(f"{side}_shoulder", "pelvis", f"{side}_hand", at)
    return write(folder, biped(box("0.14 0.07 0.02", "0.02 0 -0.03"), rest=arms))


# --- URDF: packages and meshes ---


@habit(4)
def package_beside(folder: Path) -> Path:
    """A package whose package.xml stands above the file; meshes of two formats."""
    package = folder / "small_description"
    write(package, "<package><name>small_description</name></package>", "package.xml")
    write_mesh(package, "meshes/foot.obj")
    write_mesh(package, "meshes/torso.stl")
    foot = mesh("package://small_description/meshes/foot.obj")
    torso = mesh("package://small_description/meshes/torso.stl", "visual")
    return write(package / "urdf", quadruped(foot, torso=torso))


@habit(4, "nowhere")
def missing_package(folder: Path) -> Path:
    """Visual meshes in a package that is nowhere."""
    torso = mesh("package://nowhere/meshes/torso.dae", "visual")
    return write(folder, quadruped(torso=torso))


@habit(4, "torn.obj")
def unreadable_mesh(folder: Path) -> Path:
    """A visual mesh that is no mesh."""
    write(folder, "no mesh at all\n", "torn.obj")
    return write(folder, quadruped(torso=mesh("torn.obj", "visual")))


# --- closed loops ---


def parallel_legs() -> str:
    """A quadruped whose knees are moved by a crank and a rod beside each thigh.

    Crank and lever are 0.03 m long and point back; rod and thigh are parallel. The
    links `<leg>_rod_end` and `<leg>_lever_end` are to be joined.
    """
    text = quadruped()
    rest = ""
    small = (0.01, 0.01, 0.01)
    for leg, (x, y) in CORNERS.items():
        at = f"{0.13 * x} {0.09 * y} 0"
        rest += link(f"{leg}_crank", 0.05, (0.03, 0.01, 0.01), at="-0.015 0 0")
        rest += link(f"{leg}_rod", 0.05, (0.01, 0.01, 0.12), at="0 0 -0.06")
        rest += link(f"{leg}_rod_end", 1e-3, small) + link(
            f"{leg}_lever_end", 1e-3, small
        )
        rest += joint(f"{leg}_drive", "torso", f"{leg}_crank", at)
        rest += joint(f"{leg}_pin", f"{leg}_crank", f"{leg}_rod", "-0.03 0 0")
        for end, parent, place in (
            ("rod_end", "rod", "0 0 -0.12"),
            ("lever_end", "shank", "-0.03 0 0"),
        ):
            names = f"{leg}_{end}_frame", f"{leg}_{parent}", f"{leg}_{end}"
            rest += joint(*names, place, "", "fixed")
    return text.replace("</robot>", rest + "</robot>")


@habit(4, loops=4)
def loops_3d(folder: Path) -> Path:
    """Loops in a YAML beside the file: two points coincide; motors are named."""
    return _joined(folder, "3d")


@habit(4, loops=4)
def loops_6d(folder: Path) -> Path:
    """Loops in a YAML beside the file: two frames coincide, with redundant rows."""
    return _joined(folder, "6d")


def _joined(folder: Path, kind: str) -> Path:
    pairs = ", ".join(f"['{leg}_rod_end', '{leg}_lever_end']" for leg in CORNERS)
    motors = ", ".join(f"'{leg}_hip', '{leg}_drive'" for leg in CORNERS)
    write(
        folder,
        f"closed_loop: [{pairs}]\ntype: {[kind] * 4}\nname_mot: [{motors}]\n",
        "robot.yaml",
    )
    return write(folder, parallel_legs())


# --- MJCF and SDF ---

_MJCF_LEG = """
<body name="{leg}_thigh" pos="{x} {y} 0"><joint name="{leg}_hip"/>
  <geom fromto="0 0 0 0 0 -.12"/>
  <body name="{leg}_shank" pos="0 0 -.12"><joint name="{leg}_knee" class="knee"/>
    <geom fromto="0 0 0 0 0 -.12"/>
  </body></body>"""

_MJCF_ROD = """
<body name="{leg}_crank" pos="{x} {y} 0"><joint name="{leg}_drive"/>
  <geom fromto="0 0 0 -.03 0 0" size=".005" contype="0" conaffinity="0"/>
  <body name="{leg}_rod" pos="-.03 0 0"><joint name="{leg}_pin"/>
    <geom fromto="0 0 0 0 0 -.12" size=".005" contype="0" conaffinity="0"/>
  </body></body>"""


def mjcf(
    *,
    actuators: str = "",
    bodies: str = "",
    rest: str = "",
    free: str = "<freejoint/>",
) -> str:
    """The quadruped as MJCF: capsules, default classes, angles in degrees.

    Args:
        actuators: in place of a motor at each joint of the legs.
        bodies: of each leg, besides thigh and shank.
        rest: after the actuators.
        free: the torso's joint.
    """
    legs = "".join(
        (_MJCF_LEG + bodies).format(leg=leg, x=0.13 * x, y=0.09 * y)
        for leg, (x, y) in CORNERS.items()
    )
    actuators = actuators or "".join(
        f'<motor joint="{leg}_{part}" gear="20"/>'
        for leg in CORNERS
        for part in ("hip", "knee")
    )
    return f"""<mujoco model="small"><compiler angle="degree"/>
<default><joint axis="0 1 0" range="-80 80" limited="true" damping=".1"/>
<geom type="capsule" size=".015" density="900"/><motor ctrlrange="-1 1"/>
<default class="knee"><joint range="-140 10"/></default></default>
<worldbody><light pos="0 0 3"/><geom name="floor" type="plane" size="9 9 1"/>
<body name="torso" pos="0 0 .27">{free}<geom type="box" size=".15 .08 .03"/>
{legs}</body></worldbody>
<actuator>{actuators}</actuator>{rest}</mujoco>
"""


@habit(4)
def mjcf_defaults(folder: Path) -> Path:
    """Default classes, capsules, a floor of its own."""
    return write(folder, mjcf(), "robot.xml")


@habit(4)
def mjcf_root_joint(folder: Path) -> Path:
    """A free joint as `joint type="free"`, as older files have it."""
    free = '<joint name="root" type="free" limited="false" damping="0"/>'
    return write(folder, mjcf(free=free), "robot.xml")


@habit(4)
def mjcf_home(folder: Path) -> Path:
    """Position servos and a keyframe to stand in."""
    servos = "".join(
        f'<position joint="{leg}_{part}" kp="60" forcerange="-20 20"/>'
        for leg in CORNERS
        for part in ("hip", "knee")
    )
    legs = "0.5 -1 " * 4
    key = f'<keyframe><key name="home" qpos="0 0 .23 1 0 0 0 {legs}"/></keyframe>'
    return write(folder, mjcf(actuators=servos, rest=key), "robot.xml")


@habit(4)
def mjcf_include(folder: Path) -> Path:
    """The actuators in a file of their own."""
    text = mjcf()
    first, last = text.index("<actuator>"), text.index("</mujoco>")
    write(folder, f"<mujoco>{text[first:last]}</mujoco>", "motors.xml")
    text = text[:first] + '<include file="motors.xml"/>' + text[last:]
    return write(folder, text, "robot.xml")


@habit(4, loops=4)
def mjcf_connect(folder: Path) -> Path:
    """Legs of two parallel chains, joined by `connect` at a point of the shank."""
    text = mjcf(
        bodies=_MJCF_ROD,
        rest="<equality>{}</equality>".format(
            "".join(
                f'<connect body1="{leg}_shank" body2="{leg}_rod" anchor="-.03 0 0"/>'
                for leg in CORNERS
            )
        ),
    )
    return write(folder, text, "robot.xml")


@habit(4)
def sdf(folder: Path) -> Path:
    """The quadruped as SDF, with a plugin and a model that it nests nowhere."""
    text = ""
    for leg, (x, y) in CORNERS.items():
        for part, z in (("thigh", 0.0), ("shank", -0.12)):
            parent = "torso" if part == "thigh" else f"{leg}_thigh"
            ball = (
                '<collision name="c"><pose>0 0 -0.12 0 0 0</pose><geometry><sphere>'
                "<radius>0.015</radius></sphere></geometry></collision>"
            )
            text += (
                f'<link name="{leg}_{part}"><pose relative_to="torso">{0.13 * x} '
                f"{0.09 * y} {z} 0 0 0</pose><inertial><pose>0 0 -0.06 0 0 0</pose>"
                "<mass>0.15</mass><inertia><ixx>2e-4</ixx><iyy>2e-4</iyy>"
                f"<izz>1e-5</izz></inertia></inertial>{ball if z else ''}</link>"
                f'<joint name="{leg}_{part}_joint" type="revolute"><parent>{parent}'
                f"</parent><child>{leg}_{part}</child><axis><xyz>0 1 0</xyz><limit>"
                "<lower>-1.5</lower><upper>1.5</upper><effort>20</effort></limit>"
                "</axis></joint>\n"
            )
    return write(
        folder,
        f"""<?xml version="1.0"?><sdf version="1.7"><model name="small">
<link name="torso"><pose>0 0 0.26 0 0 0</pose><inertial><mass>2</mass><inertia>
<ixx>5e-3</ixx><iyy>2e-2</iyy><izz>2e-2</izz></inertia></inertial></link>
{text}<plugin name="control" filename="libcontrol.so"/></model></sdf>
""",
        "robot.sdf",
    )
