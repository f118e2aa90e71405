"""A base that a URDF or SDF fixes to the world moves freely on request."""

import pytest

from drakebots.formats import load
from tests.helpers.model_files import write

INERTIAL = """<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"
  ixz="0" iyz="0"/></inertial>"""
URDF = f"""<robot name="m"><link name="world"/><link name="base">{INERTIAL}</link>
  <link name="tip">{INERTIAL}</link>
  <joint name="hold" type="fixed"><parent link="world"/><child link="base"/></joint>
  <joint name="end" type="fixed"><parent link="base"/><child link="tip"/></joint>
  </robot>"""
SDF = """<sdf version="1.9"><model name="m"><link name="base"/><link name="tip"/>
  <joint name="hold" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="end" type="fixed"><parent>base</parent><child>tip</child></joint>
  </model></sdf>"""


@pytest.mark.parametrize("name, text", [("m.urdf", URDF), ("m.sdf", SDF)])
def test_a_free_base(tmp_path, name, text):
    path = write(tmp_path, text, name)
    assert load(path).summary.velocities == ()
    assert len(load(path, free_base=True).summary.velocities) == 6
