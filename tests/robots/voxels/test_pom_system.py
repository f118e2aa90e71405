"""Planes of motion as systems of a Drake diagram."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.geometry import SceneGraph
from pydrake.systems.framework import DiagramBuilder

from drakebots import InvalidInput
from drakebots.lattice.pom.pom import Control, PlanesOfMotion
from drakebots.lattice.shape.lattice import block
from drakebots.robots.voxels.model.octahedra import node_positions
from drakebots.robots.voxels.model.robot import ACTUATORS, MARKERS
from drakebots.robots.voxels.pom_system import PomSystem, add_pom, voxel_turns

U = np.array([5e-3, -5e-3, 2e-3, 1e-3])


def core_pom() -> PlanesOfMotion:
    return PlanesOfMotion(block(2, 2, 2), ACTUATORS)


def test_ports_are_the_model():
    pom = core_pom()
    system = PomSystem(pom, list(MARKERS.values()))
    context = system.CreateDefaultContext()
    system.get_input_port().FixValue(context, U)
    moved = system.GetOutputPort("displacement").Eval(context).reshape(-1, 3)
    assert moved == pytest.approx(pom.displacements(U), abs=1e-15)
    placed = system.GetOutputPort("position").Eval(context).reshape(-1, 3)
    assert placed == pytest.approx(pom.positions(U), abs=1e-15)
    markers = system.GetOutputPort("effector").Eval(context).reshape(-1, 3)
    rows = [pom.lattice.node(place) for place in MARKERS.values()]
    assert markers == pytest.approx(placed[rows], abs=1e-15)
    assert system.num_continuous_states() == 0


def test_a_plane_at_a_time_moves_as_in_the_authors_tests():
    pom = PlanesOfMotion(block(2, 2, 2), ACTUATORS, list(MARKERS.values()))
    system = PomSystem(pom)
    context = system.CreateDefaultContext()
    system.get_input_port().FixValue(context, 1e-3 * np.array([5, -5, 0, 0]))
    yr, yb, gb, gr = 1e3 * system.GetOutputPort("displacement").Eval(context).reshape(
        -1, 3
    )
    assert yr == pytest.approx([0, 5, 0])
    assert yb == pytest.approx([5, -5, 0])
    assert gb == pytest.approx([-5, 0, 0])
    assert gr == pytest.approx([0, 0, 0])


def test_voxels_turn_so_that_their_nodes_move():
    pom = core_pom()
    u = 1e-4 * U / 5e-3
    turns = voxel_turns(pom) @ u
    assert abs(turns).max() > 1e-3
    lattice = pom.lattice
    arms = lattice.positions[lattice.voxel_nodes] - (
        lattice.centres[:, None] * lattice.pitch / 2
    )
    moved = np.cross(turns[:, None], arms)
    expected = pom.displacements(u)[lattice.voxel_nodes]
    assert moved == pytest.approx(expected, abs=1e-15)


def test_drawing_follows():
    builder = DiagramBuilder()
    scene_graph = builder.AddSystem(SceneGraph())
    pom = core_pom()
    add_pom(builder, pom, scene_graph=scene_graph)
    diagram = builder.Build()
    context = diagram.CreateDefaultContext()
    diagram.GetInputPort("actuators").FixValue(context, U)
    query = scene_graph.get_query_output_port().Eval(
        scene_graph.GetMyContextFromRoot(context)
    )
    inspector = query.inspector()
    assert inspector.num_frames() == 1 + 8
    assert inspector.num_geometries() == 8 * 18
    frames = [f for f in inspector.GetAllFrameIds() if inspector.GetName(f) != "world"]
    by_name = {inspector.GetName(f).split("::")[-1]: f for f in frames}
    poses = [
        query.GetPoseInWorld(by_name["voxel_" + "_".join(map(str, v))]).GetAsMatrix4()
        for v in pom.lattice.voxels.tolist()
    ]
    poses = np.array(poses)

    class Cut:
        lattice = pom.lattice
        centres = pom.lattice.centres * pom.lattice.pitch / 2

    nodes = node_positions(Cut, poses[:, :3, 3], poses[:, :3, :3])
    # Voxels that are shown stay stiff: second order in the angle of 0.13 rad.
    assert nodes == pytest.approx(pom.positions(U), abs=8e-4)


def test_refuses_what_the_model_refuses():
    with pytest.raises(InvalidInput, match="no node"):
        PomSystem(core_pom(), [(9, 9, 9)])
    with pytest.raises(InvalidInput, match="both drive"):
        PlanesOfMotion(
            block(2, 2, 2), [Control((2, 1, 1), "z"), Control((2, 1, 3), "z")]
        )
