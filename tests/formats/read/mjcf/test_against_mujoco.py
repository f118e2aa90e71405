"""MJCF as MuJoCo's own compiler reads it: masses, poses, joints, energy of motion."""

import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.model_files import write
from tests.helpers.mujoco_peer import assert_as_mujoco

LEG = """<body name="thigh" pos=".1 .2 1" euler="10 20 30">
  <joint name="yaw" axis="0 0 1"/><joint name="pitch" axis="0 1 .3" pos="0 .01 .02"/>
  <geom type="capsule" fromto="0 0 0 .02 .01 -.2" size=".02"/>
  <body name="shank" pos="0 0 -.2" zaxis=".1 0 1"><joint name="knee" axis="0 1 0"/>
    <geom type="box" size=".01 .02 .1" pos="0 0 -.1" density="500"/></body></body>"""

HABITS = {
    "shapes": """<mujoco><worldbody><body name="a"><freejoint/>
        <geom size=".1"/><geom type="sphere" size=".05" pos=".1 0 0" mass="2"/>
        <geom type="capsule" size=".02 .1" pos="0 .1 0" axisangle="1 1 0 40"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .1 .2 .3"/>
        <geom type="cylinder" size=".02 .1" quat="1 .2 .3 .4" density="300"/>
        <geom type="cylinder" size=".03" fromto="0 .1 0 .3 .2 .3"/>
        <geom type="ellipsoid" size=".02 .1 .05" xyaxes="1 1 0 0 1 0"/>
        <geom type="ellipsoid" size=".02" fromto="0 0 .1 .3 .2 .3"/>
        <geom type="box" size=".02 .1 .05" zaxis="1 2 3"/>
        <geom type="box" size=".02" fromto="0 0 0 0 .2 -.3"/>
        </body></worldbody></mujoco>""",
    "several joints of a body": f"<mujoco><worldbody>{LEG}</worldbody></mujoco>",
    "radians, euler sequence": f"""<mujoco><compiler angle="radian" eulerseq="zYx"/>
        <worldbody>{LEG.replace("10 20 30", ".1 .2 .3")}</worldbody></mujoco>""",
    "classes": """<mujoco><default><geom density="500" size=".02 .1"/>
        <joint axis="0 1 0" range="-30 40"/>
        <default class="big"><geom type="capsule" size=".05 .1"/>
          <default class="long"><geom size=".05 .3"/><joint axis="1 0 0"/></default>
        </default></default>
      <worldbody><body name="a" childclass="big"><joint name="j"/><geom/>
        <body name="b" childclass="long"><joint name="k" limited="false"/>
          <geom/><geom class="big" pos="0 0 1"/><geom class="main" pos="1 0 0"/></body>
        <body name="c"><joint name="l" class="long"/><geom/></body></body>
      </worldbody></mujoco>""",
    "limits only where they are asked for": """<mujoco>
      <compiler autolimits="false"/><worldbody><body name="a">
        <joint name="j" limited="false" range="-30 40"/><joint name="k" axis="1 0 0"
        limited="true" range="-10 20"/><geom size=".1" pos=".1 0 0"/></body>
        </worldbody></mujoco>""",
    "reference positions": """<mujoco><worldbody><body name="a" pos="0 0 1.2">
        <joint name="z" type="slide" axis="0 0 2" ref="1.2" range="1 2"/>
        <joint name="y" axis="0 1 0" ref="15" range="-90 90"/>
        <geom size=".1" pos=".1 0 0"/></body></worldbody></mujoco>""",
    "springs": """<mujoco><default><joint damping=".3"/></default><worldbody>
        <body name="a"><joint name="j" stiffness="3" springref="20" ref="5"/>
        <joint name="k" type="slide" stiffness="30" springref=".2"/>
        <geom size=".1" pos=".1 0 0"/><body name="b" pos="0 .2 0">
        <joint name="l" axis="0 1 0" springdamper=".05 .7" armature=".01"/>
        <geom type="box" size=".1 .2 .3" pos="0 0 -.3"/><body name="c" pos="0 0 -.6">
        <joint name="m" type="slide" springdamper=".1 1"/><geom size=".1"/></body>
        </body></body></worldbody></mujoco>""",
    "explicit inertias": """<mujoco><worldbody><body name="a"><joint name="j"/>
        <geom size="1"/><inertial pos=".1 0 0" quat="1 .2 0 .3" mass="2"
        diaginertia=".1 .2 .25"/><body name="b"><joint name="k" axis="1 0 0"/>
        <inertial pos="0 .1 0" mass="1" fullinertia=".1 .12 .15 .01 -.02 .03"/></body>
        </body></worldbody></mujoco>""",
    "inertia from shapes": """<mujoco><compiler inertiafromgeom="true"
        inertiagrouprange="0 1"/><worldbody><body name="a"><joint name="j"/>
        <geom size=".1" pos=".1 0 0"/><geom size="1" group="2"/>
        <inertial pos=".1 0 0" mass="2" diaginertia=".1 .2 .3"/></body>
        </worldbody></mujoco>""",
    "bounds of mass": """<mujoco><compiler boundmass=".5" boundinertia=".02"
        balanceinertia="true"/><worldbody><body name="a"><joint name="j"/>
        <geom size=".01" pos=".1 0 0"/><body name="b"><joint name="k" axis="1 0 0"/>
        <inertial pos="0 .1 0" mass="1" diaginertia=".1 .1 .5"/></body></body>
        </worldbody></mujoco>""",
    "total mass": f"""<mujoco><compiler settotalmass="14"/>
        <worldbody>{LEG}</worldbody></mujoco>""",
    "frames": """<mujoco><worldbody><frame pos="0 0 1" euler="0 0 90">
        <body name="a" pos="1 0 0"><joint name="j"/><frame euler="90 0 0" pos=".1 0 0">
        <geom type="capsule" size=".02 .1" pos="0 0 .1"/><body name="b" pos="0 .2 0">
        <joint name="k" axis="0 1 0"/><geom type="box" size=".1 .2 .3"/></body></frame>
        </body></frame></worldbody></mujoco>""",
    "a ball joint": """<mujoco><worldbody><body name="a" pos="0 0 1">
        <joint name="j" type="ball" pos="0 0 .1"/><geom size=".1"/>
        <body name="b" pos="0 0 -.2"><joint name="k" axis="0 1 0"/>
        <geom type="capsule" size=".02 .1" pos="0 0 -.1"/></body></body>
        </worldbody></mujoco>""",
    "bodies of the world and two robots": f"""<mujoco><worldbody>
        <geom type="plane" size="1 1 1"/><geom type="box" size="1 1 1" pos="0 0 -5"/>
        {LEG}<body name="table"><geom type="box" size="1 1 .1"/></body>
        <body name="ball" pos="0 0 3"><freejoint/><geom size=".1"/></body>
        </worldbody></mujoco>""",
    "names of joints and bodies apart": """<mujoco><worldbody>
        <body><joint name="j"/><geom size=".1" pos=".1 0 0"/>
        <body name="j2"><joint name="k" axis="1 0 0"/><geom size=".1" pos="0 .1 0"/>
        </body></body></worldbody></mujoco>""",
}


@pytest.mark.parametrize("habit", HABITS)
def test_every_habit(tmp_path, habit):
    assert_as_mujoco(write(tmp_path, HABITS[habit], "robot.xml"))


def test_included_files(tmp_path):
    """Elements of included files stand where <include> does, from any folder."""
    (tmp_path / "parts").mkdir()
    write(tmp_path, '<mujoco><include file="parts/b.xml"/></mujoco>', "a.xml")
    write(tmp_path / "parts", f"<mujoco>{LEG}</mujoco>", "b.xml")
    text = '<mujoco><worldbody><include file="a.xml"/></worldbody></mujoco>'
    assert_as_mujoco(write(tmp_path, text, "robot.xml"))


@pytest.mark.parametrize("solid", ["legacy", "exact", "convex", "shell"])
@pytest.mark.parametrize("ending", ["stl", "obj"])
def test_meshes(tmp_path, ending, solid):
    """Mass and centre of a mesh, scaled and mirrored, by each rule for its inside."""
    shape = trimesh.creation.annulus(0.03, 0.05, 0.2)
    shape.apply_translation([0.01, 0.02, 0.03])
    (tmp_path / "meshes").mkdir()
    shape.export(tmp_path / "meshes" / f"part.{ending}")
    text = f"""<mujoco><compiler meshdir="meshes"/><asset>
      <mesh file="part.{ending}" scale="1 -2 1.5" inertia="{solid}"
      refpos=".1 0 0" refquat="1 .1 .2 .3"/></asset><worldbody><body name="a">
      <joint name="j" axis="1 1 1"/><geom type="mesh" mesh="part" pos=".1 .2 .3"
      euler="10 20 30"/></body></worldbody></mujoco>"""
    # MuJoCo keeps meshes in single precision.
    assert_as_mujoco(write(tmp_path, text, "robot.xml"), tolerance=1e-6)


@settings(max_examples=20, deadline=None)
@given(
    angles=st.lists(st.floats(-180, 180), min_size=3, max_size=3),
    sequence=st.text("xyzXYZ", min_size=3, max_size=3),
    seed=st.integers(0, 1000),
)
def test_any_orientation(tmp_path_factory, angles, sequence, seed):
    euler = " ".join(map(repr, angles))
    text = f"""<mujoco><compiler eulerseq="{sequence}"/><worldbody>
      {LEG.replace("10 20 30", euler)}</worldbody></mujoco>"""
    path = write(tmp_path_factory.mktemp("m"), text, "robot.xml")
    assert_as_mujoco(path, seed=seed)
