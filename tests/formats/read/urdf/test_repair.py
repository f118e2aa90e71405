"""URDFs with the habits of other simulators, read by Drake after all."""

import numpy as np
import pytest
from pydrake.geometry import Role
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.framework import DiagramBuilder

from drakebots import load
from drakebots.core.errors import ModelProblem
from drakebots.model import Coupler
from tests.helpers.model_files import write
from tests.helpers.stranger_urdf import BODY, collision, joint, link, robot, visual


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def read(tmp_path):
    """Loads a URDF into a plant; the model, the plant and its inspector."""

    def _read(text, **options):
        model = load(write(tmp_path, text, "m.urdf"), **options)
        plant, scene_graph = AddMultibodyPlantSceneGraph(DiagramBuilder(), 1e-3)
        model.add_to(plant)
        plant.Finalize()
        return model, plant, scene_graph.model_inspector()

    return _read


def colors(inspector):
    """The colors drawn, in the order of the file."""
    properties = [
        inspector.GetIllustrationProperties(geometry)
        for geometry in inspector.GetAllGeometryIds(Role.kIllustration)
    ]
    rgba = [
        p.GetProperty("phong", "diffuse") if p.HasProperty("phong", "diffuse") else None
        for p in properties
    ]
    return [c and (c.r(), c.g(), c.b(), c.a()) for c in rgba]


def reported(model, *words):
    """Whether one note has all the words."""
    return any(all(word in note for word in words) for note in model.notes)


def test_a_good_file_is_passed_on_as_it_is(read):
    text = robot(link("a", visual() + collision()), link("b"), joint("j", "a", "b"))
    model, plant, _ = read(text)
    assert model.text is None
    assert plant.num_velocities() == 7


# --- names and numbers ---


def test_a_robot_without_a_name_gets_that_of_the_file(read):
    model, plant, _ = read(robot(link("a"), name=""))
    assert plant.HasModelInstanceNamed("m") and model.name == "m"


def test_joints_that_share_a_name_are_renamed(read):
    joints = joint("j", "a", "b") + joint("j", "b", "c")
    model, plant, _ = read(robot(link("a"), link("b"), link("c"), joints))
    assert plant.HasJointNamed("j") and plant.HasJointNamed("j_2")
    assert reported(model, "renamed", "j_2")


@pytest.mark.parametrize(
    "xyz, meant",
    [("0, 1, 2", [0, 1, 2]), ("0 pi/2 -1.", [0, np.pi / 2, -1]), ("0 0 -1.5.", None)],
)
def test_numbers_of_other_readers(read, xyz, meant):
    origin = f'<origin xyz="{xyz}"/>'
    model, plant, _ = read(
        robot(link("a"), link("b"), joint("j", "a", "b", inside=origin))
    )
    X_AB = plant.GetJointByName("j").frame_on_parent().GetFixedPoseInBodyFrame()
    expected = [0, 0, -1.5] if meant is None else meant
    np.testing.assert_allclose(X_AB.translation(), expected, atol=1e-12)
    assert reported(model, "oddly", xyz)


@pytest.mark.parametrize("xyz", ["0,1 0,2 0,3", "${pi/2} 0 0", "1,5 0 0"])
def test_numbers_that_nobody_can_read_are_a_problem(read, xyz):
    """Of decimal commas the first three digits counted, of expressions their digits."""
    origin = f'<origin xyz="{xyz}"/>'
    text = robot(link("a"), link("b"), joint("j", "a", "b", inside=origin))
    with pytest.raises(ModelProblem, match="needs 3 numbers"):
        read(text)


@pytest.mark.parametrize(
    "kind, inside, note",
    [
        ("revolute", '<dynamics damping="1" spring_stiffness="2"/>', "dynamics spring"),
        ("revolute", '<dynamics damping="1"/><dynamics damping="2"/>', "<dynamics> of"),
        ("revolute", '<limit upper="1" effort="1" velocity="1"/>', "ROS takes 0: j"),
        ("continuous", '<limit lower="-1" upper="1" effort="1"/>', "keeps its limits"),
    ],
)
def test_what_a_joint_says_beside_what_counts_is_said(read, kind, inside, note):
    text = robot(link("a"), link("b"), joint("j", "a", "b", kind, inside=inside))
    model, _, _ = read(text)
    assert reported(model, note)


def test_all_problems_are_told_at_once(read):
    bad = '<inertial><mass value="1"/><inertia ixx="-1" iyy="1" izz="1"/></inertial>'
    text = robot(
        link("a", body=bad) + link("b") + link("b"),
        joint("j", "a", "b", axis="0 0 0"),
        joint("k", "a", "nowhere"),
        link("c", body='<inertial><mass value="-2"/></inertial>'),
        joint("l", "a", "b", kind="wobbly", inside='<origin xyz="1 2"/>'),
    )
    with pytest.raises(ModelProblem) as caught:
        read(text)
    message = str(caught.value)
    assert "\n" not in message
    for words in (
        "link 'a' has a negative inertia",
        "link 'c': <mass> is -2 kg",
        "2 links are named 'b'",
        "joint 'j' has the axis 0 0 0",
        "joint 'k' has 'nowhere' as its child",
        "joint 'l' has the type 'wobbly'",
        "joint 'l': <origin xyz='1 2'> needs 3 numbers",
    ):
        assert words in message


def test_strict_refuses_what_would_be_changed(read):
    text = robot(link("a"), "<gazebo/>", "<gazebo/>")
    model, *_ = read(text)
    assert "Drake ignores: <gazebo> (2 times)" in model.notes
    with pytest.raises(ModelProblem, match="<gazebo>"):
        read(text, strict=True)


# --- joints ---


def test_a_spherical_joint_is_three_hinges(read):
    text = robot(link("a"), link("b"), joint("j", "a", "b", kind="spherical"))
    _, plant, _ = read(text)
    kinds = {plant.GetJointByName(f"j_q{a}").type_name() for a in "xyz"}
    assert kinds == {"revolute"}


def test_a_floating_joint_leaves_its_link_free(read):
    text = robot(
        '<link name="world"/>', link("b"), joint("j", "world", "b", kind="floating")
    )
    model, plant, _ = read(text)
    assert plant.num_velocities() == 6
    assert reported(model, "free", "j")


@pytest.mark.parametrize(
    "limit, lower, note",
    [
        ('lower="1" upper="-1"', -np.inf, "above the upper"),
        ('lower="-1" upper="1" effort="-3"', -1, "negative limit of eff"),
        ('lower="-1" upper="1" velocity="-3"', -1, "negative limit of vel"),
    ],
)
def test_limits(read, limit, lower, note):
    inside = f"<limit {limit}/>"
    model, plant, _ = read(
        robot(link("a"), link("b"), joint("j", "a", "b", inside=inside))
    )
    assert plant.GetJointByName("j").position_lower_limits() == [lower]
    assert reported(model, note, "j")


def test_a_mimic_needs_two_joints_that_move(read):
    joints = joint("j", "a", "b", "fixed") + joint(
        "k", "b", "c", inside='<mimic joint="j"/>'
    )
    model, plant, _ = read(robot(link("a"), link("b"), link("c"), joints))
    assert plant.num_velocities() == 7
    assert reported(model, "<mimic>", "k (j)")
    assert not model.couplers


def test_a_mimic_is_told_and_kept(read):
    """A joint that follows another: a coupler in Drake, and a note that says so."""
    inside = '<mimic joint="j" multiplier="-2"/>'
    joints = joint("j", "a", "b") + joint("k", "b", "c", inside=inside)
    model, plant, _ = read(robot(link("a"), link("b"), link("c"), joints))
    assert plant.num_constraints() == 1
    assert model.couplers == (Coupler("k", "j", -2.0, 0.0),)
    assert reported(model, "follow others", "k (j)")
    assert model.report()["couplers"] == ["k.j"]


def test_numbers_of_a_mimic(read):
    """Arithmetic is read as elsewhere; what is no number is a problem."""
    inside = '<mimic joint="j" multiplier="{}" offset="pi/4"/>'
    joints = joint("j", "a", "b") + joint("k", "b", "c", inside=inside)
    text = robot(link("a"), link("b"), link("c"), joints)
    model, _, _ = read(text.format("-1."))
    assert model.couplers[0].gear == -1
    assert model.couplers[0].offset == pytest.approx(np.pi / 4)
    for wrong in ("fast", "nan", "inf"):
        with pytest.raises(ModelProblem, match="multiplier"):
            read(text.format(wrong))
    with pytest.raises(ModelProblem, match=r"joint k: gear .*1e\+300"):
        read(text.format("1e300"))


def test_transmissions(read):
    """Two actuators of one name, and one of a joint that does not exist."""
    text = "".join(
        "<transmission><type>SimpleTransmission</type>"
        f'<joint name="{name}"/><actuator name="motor"/></transmission>'
        for name in ("j", "k", "gone")
    )
    joints = joint("j", "a", "b") + joint("k", "b", "c")
    model, plant, _ = read(robot(link("a"), link("b"), link("c"), joints, text))
    actuators = [
        plant.get_joint_actuator(i).name() for i in plant.GetJointActuatorIndices()
    ]
    assert actuators == ["motor", "motor_2"]
    assert reported(model, "<transmission>") and reported(model, "motor_2")


# --- inertia ---


def test_what_moves_no_mass_is_fixed(read):
    """A finger of two links without mass is a drawing."""
    fingers = link("f", body="") + link("g", visual(), body="")
    joints = joint("j", "a", "f") + joint("k", "f", "g")
    model, plant, _ = read(robot(link("a"), fingers, joints))
    assert plant.num_velocities() == 6
    assert reported(model, "moves no mass", "j", "k")


def test_inertia_about_no_axis_is_a_problem(read):
    """A point on its axis turns without inertia, which no plant can simulate."""
    point = '<inertial><mass value="1"/><inertia ixx="0" iyy="0" izz="0"/></inertial>'
    text = robot(link("a"), link("b", body=point), joint("j", "a", "b"))
    with pytest.raises(ModelProblem, match="link 'b' on joint 'j'"):
        read(text)


def test_a_robot_without_any_mass_is_a_problem(read):
    text = robot(link("a", body=""), link("b", body=""), joint("j", "a", "b"))
    with pytest.raises(ModelProblem, match="give it mass"):
        read(text)


def test_an_impossible_inertia_is_replaced_by_the_nearest(read):
    body = BODY.replace('izz="0.1"', 'izz="0.23"')
    model, plant, _ = read(robot(link("a", body=body)))
    inertia = plant.GetBodyByName("a").default_spatial_inertia().CalcRotationalInertia()
    np.testing.assert_allclose(inertia.get_moments(), [0.11, 0.11, 0.22], rtol=1e-6)
    assert reported(model, "nearest", "a (by 7.5 %)")


def test_mass_of_nothing_but_inertia_adds_none(read):
    """Drake alone would make it a ball of 1 kg."""
    empty = BODY.replace('mass value="1"', 'mass value="0"')
    text = robot(link("a"), link("b", body=empty), joint("j", "a", "b", "fixed"))
    model, *_ = read(text)
    assert model.summary.mass == pytest.approx(1.0)
    assert reported(model, "without a mass", "b")


def test_the_world_has_no_inertia(read):
    model, plant, _ = read(
        robot(link("world"), link("b"), joint("j", "world", "b", "fixed"))
    )
    assert plant.num_bodies() == 2 and reported(model, "inertia of the world")


# --- materials ---

RED, GREEN = '<color rgba="1 0 0 1"/>', '<color rgba="0 1 0 1"/>'


def named(name, inside=""):
    return f'<material name="{name}">{inside}</material>'


@pytest.mark.parametrize(
    "before, materials, expected",
    [
        ("", [named("u", RED), named("u", GREEN)], [(1, 0, 0, 1), (0, 1, 0, 1)]),
        (
            named("u", RED),
            [named("u"), named("u", GREEN)],
            [(1, 0, 0, 1), (0, 1, 0, 1)],
        ),
        (2 * named("u", RED), [named("u")], [(1, 0, 0, 1)]),
        (named("u", RED) + named("u", GREEN), [named("u")], [(1, 0, 0, 1)]),
        ("", [named("u"), named("u", GREEN)], [(0, 1, 0, 1), (0, 1, 0, 1)]),
        ("", [named("u", '<color rgba="1 0 0"/>')], [(1, 0, 0, 1)]),
        ("", [named("u", '<color rgba="1, 0, 0, 1"/>')], [(1, 0, 0, 1)]),
        ("", [named("u", '<color rgba="255 0 51 1"/>')], [(1, 0, 0.2, 1)]),
    ],
)
def test_materials(read, before, materials, expected):
    visuals = "".join(visual(material=material) for material in materials)
    *_, inspector = read(robot(before, link("a", visuals)))
    assert colors(inspector) == expected


def test_a_material_that_is_never_defined(read):
    model, *_ = read(robot(link("a", visual(material=named("mist")))))
    assert reported(model, "never defined", "mist")


def test_a_texture_that_is_missing(read):
    texture = named("u", '<texture filename="package://gone/a.png"/>')
    model, *_ = read(robot(link("a", visual(material=texture))))
    assert reported(model, "texture", "package://gone/a.png")


# --- shapes ---


@pytest.mark.parametrize(
    "inside, note",
    [
        ("<visual/>", "<visual> without a shape"),
        (visual('<plane normal="0 0 1"/>'), "<plane> is no shape"),
        (collision('<box size="0 1 1"/>'), "<box> without a size"),
        (collision('<cylinder radius="0" length="0"/>'), "<cylinder> without a size"),
        (visual('<mesh filename="gone.stl"/>'), "visual mesh is not found"),
        (visual('<mesh filename="package://p/g.stl"/>'), "--package p=FOLDER says"),
        (collision('<mesh filename="package://x/gone.obj"/>'), "left out: gone.obj"),
    ],
)
def test_shapes_that_cannot_be_are_left_out(read, inside, note):
    model, _, inspector = read(robot(link("a", inside + visual())))
    assert inspector.NumGeometriesWithRole(Role.kIllustration) == 1
    assert inspector.NumGeometriesWithRole(Role.kProximity) == 0
    assert reported(model, note)


def test_a_link_without_its_mesh_is_drawn_by_its_collision_shape(read):
    gone = visual('<mesh filename="gone.dae"/>')
    model, _, inspector = read(robot(link("a", gone + collision())))
    assert inspector.NumGeometriesWithRole(Role.kIllustration) == 1
    assert reported(model, "drawn by its collision shape", "a")


@pytest.mark.parametrize("scale, factor", [("2 2 2", 2), ("0 0 0", 1), ("", 1)])
def test_a_mesh_of_another_format(read, tmp_path, scale, factor):
    """A tetrahedron in an .stl file, touched and drawn, is as large as it should be."""
    p = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x} {y} {z}\n" for x, y, z in p[list(corners)])
        + "endloop\nendfacet\n"
        for corners in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    )
    (tmp_path / "t.stl").write_text(f"solid t\n{facets}endsolid t\n")
    mesh = f'<mesh filename="t.stl" scale="{scale}"/>'
    model, _, inspector = read(robot(link("a", visual(mesh) + collision(mesh))))
    for geometry in inspector.GetAllGeometryIds():
        hull = inspector.GetConvexHull(geometry)
        corners = [hull.vertex(i) for i in range(hull.num_vertices())]
        assert len(corners) == 4
        assert np.max(corners) == pytest.approx(factor)
    assert model.ending == "urdf" and str(tmp_path / "cache") in model.text


def test_a_root_without_mass_stands_on_the_world(read):
    """An arm on a stand without mass: one joint, and a base that is not free."""
    text = robot(
        link("stand", body="") + link("plate", body="") + link("arm"),
        joint("weld", "stand", "plate", "fixed") + joint("j", "plate", "arm"),
    )
    model, plant, _ = read(text)
    assert plant.num_velocities() == 1
    assert reported(model, "fixed to the world", "stand")


def test_a_frame_above_the_trunk_does_not_fix_it(read):
    """The usual base_link of a legged robot has no mass, and is free."""
    text = robot(
        link("base_link", body="") + link("trunk"),
        joint("weld", "base_link", "trunk", "fixed"),
    )
    model, plant, _ = read(text)
    assert plant.num_velocities() == 6 and model.text is None
