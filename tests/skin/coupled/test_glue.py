"""Glue: from a radius, from lists, and what it refuses."""

import numpy as np
import pytest
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.fem.assembly.elements import build_space
from drakebots.skin.coupled import (
    Glue,
    glue_by_radius,
    glue_midside,
    glue_points,
    glue_vertices,
    glue_wrenches,
)
from tests.helpers.skin_energy import on_vertices
from tests.helpers.skinned_leg import Leg, skin_mesh


@pytest.fixture(scope="module")
def leg():
    return Leg()


VERTICES = skin_mesh().vertices


def test_by_radius_takes_what_lies_near_one_link(leg):
    glue = leg.glue(VERTICES)
    x = VERTICES[glue.vertices]
    assert set(glue.by_body()) == {"thigh", "shin"}
    assert np.hypot(x[:, 0], x[:, 1]).max() <= 0.012 + 1e-12
    assert not np.isclose(x[:, 2], 0.1).any(), "between the links: left free"
    above = x[:, 2] > 0.1
    assert [name == "thigh" for name in glue.bodies] == above.tolist()
    assert np.allclose(glue_points(leg.plant, leg.context, glue)[0], x, atol=1e-14)
    nearest = leg.glue(VERTICES, between="nearest")
    assert len(nearest) > len(glue)


def test_jacobian_is_that_of_the_points(leg):
    glue, plant, context = leg.glue(VERTICES), leg.plant, leg.context
    q, step = np.array([0.3, -0.5]), 1e-6
    plant.SetPositions(context, q)
    J = glue_points(plant, context, glue)[1]
    for k in range(2):
        moved = []
        for sign in (1, -1):
            plant.SetPositions(context, q + sign * step * np.eye(2)[k])
            moved.append(glue_points(plant, context, glue)[0].ravel())
        assert np.allclose(J[:, k], (moved[0] - moved[1]) / (2 * step), atol=1e-9)
    plant.SetPositions(context, [0, 0])


def test_wrenches_do_the_work_of_the_forces(leg):
    glue, plant = leg.glue(VERTICES), leg.plant
    f = np.random.default_rng(0).normal(size=(len(glue), 3))
    J = glue_points(plant, leg.context, glue)[1]
    total = np.zeros(2)
    for name, wrench in glue_wrenches(plant, leg.context, glue, f).items():
        body = plant.GetBodyByName(name).body_frame()
        world = plant.world_frame()
        J_V = plant.CalcJacobianSpatialVelocity(
            leg.context, JacobianWrtVariable.kV, body, np.zeros(3), world, world
        )
        total += J_V.T @ np.concatenate(wrench)
    assert np.allclose(total, J.T @ f.ravel(), rtol=1e-12)


def test_mid_edge_nodes_go_with_their_edge(leg):
    mesh = skin_mesh()
    space = build_space(mesh, quadratic=[0])
    glue = glue_midside(leg.glue(mesh.vertices), space)
    assert set(glue.vertices) <= set(on_vertices(space, glue.vertices[:52]))
    assert len(glue) > 52
    x = glue_points(leg.plant, leg.context, glue)[0]
    assert np.allclose(x, space.nodes[glue.vertices], atol=1e-14)
    plain = leg.glue(mesh.vertices)
    assert len(glue_midside(plain, build_space(mesh))) == len(plain)


def test_the_world_can_be_glued_to(leg):
    glue = glue_vertices(VERTICES, leg.plant, leg.context, {"world": [0, 1]})
    x, J = glue_points(leg.plant, leg.context, glue)
    assert np.allclose(x, VERTICES[:2]) and not J.any()


@pytest.mark.parametrize(
    ("vertices", "bodies", "places", "said"),
    [
        (np.array([], int), [], np.empty((0, 3)), "no vertices"),
        ([1, 1], ["a", "b"], np.zeros((2, 3)), "glued to two links, 'a' and 'b'"),
        ([1, 1], ["a", "a"], np.zeros((2, 3)), "listed twice"),
        ([1, 2], ["a"], np.zeros((2, 3)), "as many bodies"),
        ([1, 2], ["a", "a"], np.zeros((3, 3)), "as many bodies"),
        ([-1], ["a"], np.zeros((1, 3)), "number >= 0"),
        ([0.5], ["a"], np.zeros((1, 3)), "whole numbers"),
        ([4], ["a"], np.full((1, 3), np.nan), "finite numbers"),
    ],
)
def test_tables_refused(vertices, bodies, places, said):
    with pytest.raises(InvalidInput, match=said):
        Glue(np.array(vertices), bodies, places)


@pytest.mark.parametrize(
    ("vertices", "options", "error", "said"),
    [
        (VERTICES, {"between": "refuse"}, InvalidInput, "two links"),
        (VERTICES, {"between": "guess"}, UnknownName, "did you mean|choose one"),
        (VERTICES, {"bodies": ["thihg"]}, UnknownName, "did you mean 'thigh'"),
        (VERTICES, {"bodies": ["world"]}, InvalidInput, "no collision geometry"),
        (
            np.add(VERTICES, [1, 0, 0]),
            {},
            InvalidInput,
            "0.97.* m away; check the rest",
        ),
    ],
)
def test_radius_refused(leg, vertices, options, error, said):
    with pytest.raises(error, match=said) as caught:
        leg.glue(vertices, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan])
def test_radius_must_be_positive(leg, radius):
    with pytest.raises(InvalidInput, match="radius"):
        glue_by_radius(VERTICES, leg.plant, leg.context, radius)


def test_a_plant_alone_has_no_geometry():
    plant = MultibodyPlant(1e-3)
    plant.Finalize()
    with pytest.raises(InvalidInput, match="no SceneGraph"):
        glue_by_radius(VERTICES, plant, plant.CreateDefaultContext(), 0.01)


@pytest.mark.parametrize(
    ("scale", "on", "error", "said"),
    [
        (1.0, {"toe": [1]}, UnknownName, "toe"),
        (1.0, {"shin": [9999]}, InvalidInput, "9999.*325 vertices"),
        (1.0, {"shin": [3], "thigh": [3]}, InvalidInput, "two links"),
        (1.0, {}, InvalidInput, "no vertices"),
        (1.0, {"shin": []}, InvalidInput, "no vertices"),
        (1e-3, {"shin": [3]}, InvalidInput, "unit"),
        (1e3, {"shin": [3], "thigh": [300]}, InvalidInput, "unit"),
    ],
)
def test_lists_refused(leg, scale, on, error, said):
    with pytest.raises(error, match=said):
        glue_vertices(scale * VERTICES, leg.plant, leg.context, on)
