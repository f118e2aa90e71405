"""Whether Drake's cameras can draw on this machine."""

import subprocess
import sys
from functools import cache

import pytest

_PICTURE = """
from pydrake.geometry import *
from pydrake.math import RigidTransform
from pydrake.systems.sensors import CameraInfo

graph = SceneGraph()
graph.AddRenderer("vtk", MakeRenderEngineVtk(RenderEngineVtkParams()))
query = graph.get_query_output_port().Eval(graph.CreateDefaultContext())
lens = CameraInfo(8, 8, 1.0)
core = RenderCameraCore("vtk", lens, ClippingRange(0.01, 1.0), RigidTransform())
camera = ColorRenderCamera(core)
query.RenderColorImage(camera, graph.world_frame_id(), RigidTransform())
"""


@cache
def _draws() -> bool:
    # In a process of its own, as VTK may end one where there is no OpenGL.
    run = subprocess.run([sys.executable, "-c", _PICTURE], capture_output=True)
    return run.returncode == 0


def needs_camera() -> None:
    """Skips a test where there is no OpenGL."""
    if not _draws():
        pytest.skip("Drake's cameras cannot draw here: no OpenGL")
