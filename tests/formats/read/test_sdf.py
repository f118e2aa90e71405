"""SDF with the habits of other simulators, read by Drake after all."""

import pytest
from pydrake.geometry import SceneGraph
from pydrake.multibody.plant import MultibodyPlant

from drakebots import load
from drakebots.core.errors import ModelProblem
from drakebots.model import Coupler
from tests.helpers.model_files import write


def sdf(*inside, version="1.6"):
    return f'<sdf version="{version}"><model name="m">{"".join(inside)}</model></sdf>'


def link(name, inside="", mass=1):
    return (
        f'<link name="{name}"><inertial><mass>{mass}</mass></inertial>{inside}</link>'
    )


def joint(name, parent, child, kind="revolute"):
    axis = "<axis><xyz>0 0 1</xyz></axis>" if kind != "fixed" else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent>{parent}</parent>'
        f"<child>{child}</child>{axis}</joint>"
    )


def collision(name="c", shape="<box><size>1 1 1</size></box>", inside=""):
    return f'<collision name="{name}"><geometry>{shape}</geometry>{inside}</collision>'


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Loads an SDF into a plant; the model and the plant."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def _read(text, name="m.sdf"):
        model = load(write(tmp_path, text, name))
        plant = MultibodyPlant(1e-3)
        model.add_to(plant, close_loops=False)
        plant.Finalize()
        return model, plant

    return _read


def reported(model, *words):
    return any(all(word in note for word in words) for note in model.notes)


def test_a_good_file_is_passed_on_as_it_is(read):
    model, _ = read(sdf(link("a", collision()), link("b"), joint("j", "a", "b")))
    assert model.text is None


def test_elements_that_libsdformat_refuses(read):
    odd = "<contact><lateral_friction>1</lateral_friction></contact>"
    model, plant = read(sdf(link("a", odd)))
    assert plant.num_bodies() == 2
    assert reported(model, "Drake ignores", "<contact>")


def test_attributes_that_libsdformat_refuses(read):
    shape = collision().replace("<collision", '<collision concave="yes"')
    world = f'<world name="w"><model name="m">{link("a", shape)}</model></world>'
    _, plant = read(f'<sdf version="1.6">{world}</sdf>')
    assert plant.num_bodies() == 2


def test_what_drake_passes_over_in_silence_is_said(read):
    """Dry friction of joints, restitution, added mass; no numbers of a plugin."""
    shape = collision(
        inside="""<surface><bounce><restitution_coefficient>.5</restitution_coefficient>
        </bounce></surface>"""
    )
    dynamics = "<dynamics><friction>.4</friction></dynamics></axis>"
    hinge = joint("j", "a", "b").replace("</axis>", dynamics)
    plugin = '<plugin name="p" filename="p.so"><kp>3</kp></plugin>'
    model, _ = read(sdf(link("a", shape), link("b"), hinge, plugin))
    assert model.text is None
    assert reported(model, "joint friction", "j")
    assert reported(model, "Drake ignores: <bounce>")
    assert not reported(model, "<kp>")


def test_a_mesh_of_another_format_that_is_missing(read):
    shape = "<mesh><uri>model://gone/leg.stl</uri></mesh>"
    model, _ = read(sdf(link("a", collision(shape=shape))))
    assert reported(model, "--package gone=FOLDER", ": leg.stl")


def test_gearboxes_are_left_out(read):
    gears = joint("g", "b", "a", "gearbox").replace(
        "</joint>", "<gearbox_ratio>2</gearbox_ratio></joint>"
    )
    model, plant = read(sdf(link("a"), link("b"), joint("j", "a", "b"), gears))
    assert plant.num_velocities() == 7
    assert reported(model, "gearbox", "g")


def test_a_root_of_mass_zero_stands_on_the_world(read):
    model, plant = read(sdf(link("a", mass=0), link("b"), joint("j", "a", "b")))
    assert plant.num_velocities() == 1
    assert reported(model, "fixed to the world", "a")


def test_shapes_that_share_a_name_are_renamed(read):
    model, _ = read(sdf(link("a", 2 * collision())))
    assert reported(model, "renamed", "c_2")


def test_an_impossible_inertia_is_replaced_by_the_nearest(read):
    tensor = "<inertia><ixx>1</ixx><iyy>1</iyy><izz>2.3</izz></inertia></inertial>"
    body = link("a").replace("</inertial>", tensor)
    model, plant = read(sdf(body))
    inertia = plant.GetBodyByName("a").default_spatial_inertia()
    moments = inertia.CalcRotationalInertia().get_moments()
    assert moments == pytest.approx([1.1, 1.1, 2.2], rel=1e-6)
    assert reported(model, "nearest", "a")


def test_included_files_are_found_without_their_package(read, tmp_path):
    write(tmp_path, sdf(link("leg"), version="1.7"), "leg.sdf")
    include = "<include><uri>model://gone/leg.sdf</uri></include>"
    _, plant = read(f'<sdf version="1.7"><world name="w">{include}</world></sdf>')
    assert plant.num_bodies() == 2
    missing = include.replace("leg.sdf", "arm.sdf")
    with pytest.raises(ModelProblem, match="--package NAME=FOLDER"):
        read(f'<sdf version="1.7"><world name="w">{missing}</world></sdf>')


def test_directives_name_a_package_above_their_folder(read, tmp_path):
    """A dmd.yaml is passed on as it is, with the folders of its packages."""
    folder = tmp_path / "my_robot"
    folder.mkdir()
    write(folder, sdf(link("leg")), "leg.sdf")
    text = "directives:\n- add_model: {name: leg, file: package://my_robot/leg.sdf}\n"
    model, plant = read(text, "my_robot/scene.dmd.yaml")
    assert plant.num_bodies() == 2
    assert model.packages == {"my_robot": folder}


@pytest.mark.parametrize(
    "axis, motors",
    [
        ("<xyz>0 0 1</xyz>", ()),
        ("<xyz>0 0 1</xyz><limit><lower>0</lower><upper>0.2</upper></limit>", ()),
        ("<xyz>0 0 1</xyz><limit><effort>50</effort></limit>", ("lift",)),
        ("<xyz>1 0 0</xyz>", ("lift",)),  # as a cart's
    ],
)
def test_a_lift_without_an_effort_has_no_motor(tmp_path, axis, motors):
    text = f"""<sdf version="1.9"><model name="m"><link name="base"/>
      <joint name="lift" type="prismatic"><parent>world</parent><child>base</child>
      <axis>{axis}</axis></joint></model></sdf>"""
    model = load(write(tmp_path, text, "m.sdf"))
    assert model.summary.actuators == motors
    assert any("slide up" in note for note in model.notes) == (not motors)


# --- joints that follow others ---


def following(inside, *, in_axis=True, more=""):
    """Three links; joint k follows j."""
    hinges = joint("j", "a", "b") + joint("k", "b", "c")
    head, tail = hinges.rsplit("</axis>", 1)
    ends = (inside, "</axis>") if in_axis else ("</axis>", inside)
    return sdf(link("a"), link("b"), link("c"), head, *ends, tail, more, version="1.11")


def test_a_mimic_of_an_axis_acts_in_drake(read):
    """SDF's own tag, which Drake passes over without a word: it is written in
    Drake's. q = 3 (q_leader - 0.2) + 0.1."""
    inside = (
        "<mimic joint='j'><multiplier>3</multiplier><offset>0.1</offset>"
        "<reference>0.2</reference></mimic>"
    )
    model, plant = read(following(inside))
    assert plant.num_constraints() == 1
    (coupler,) = model.couplers
    assert (coupler.follower, coupler.leader, coupler.gear) == ("k", "j", 3)
    assert coupler.offset == pytest.approx(-0.5)
    assert reported(model, "follow others", "k (j)")
    # An SDF that states no effort has motors at its joints; a follower has none.
    assert model.summary.actuators == ("j",)


def test_drakes_own_mimic_is_known(read):
    inside = '<drake:mimic joint="j" multiplier="-1" offset="0.3"/>'
    model, plant = read(following(inside, in_axis=False))
    assert plant.num_constraints() == 1
    assert model.couplers == (Coupler("k", "j", -1.0, 0.3),)


@pytest.mark.parametrize("leader", ["k", "gone", "weld"])
def test_a_mimic_needs_two_joints_that_move(read, leader):
    inside = f"<mimic joint='{leader}'><multiplier>3</multiplier></mimic>"
    more = link("d") + joint("weld", "c", "d", "fixed")
    model, plant = read(following(inside, more=more))
    assert plant.num_constraints() == 0 and not model.couplers
    assert reported(model, "<mimic> of joints", f"k ({leader})")


def test_a_mimic_without_numbers_is_a_problem(read):
    with pytest.raises(ModelProblem, match=r"'k'.*'fast'.*write numbers"):
        read(following("<mimic joint='j'><multiplier>fast</multiplier></mimic>"))
    inside = '<drake:mimic joint="j" multiplier="fast" offset="0"/>'
    with pytest.raises(ModelProblem, match=r"'k': the multiplier 'fast'"):
        read(following(inside, in_axis=False))


def test_models_that_share_names_of_joints(read):
    """Two of one kind in a world: each follows its own."""
    one = following("<mimic joint='j'><multiplier>3</multiplier></mimic>")
    inner = one[one.index("<model") : one.index("</sdf>")]
    worlds = inner.replace('name="m"', 'name="n"')
    text = f'<sdf version="1.11"><world name="w">{inner}{worlds}</world></sdf>'
    model, plant = read(text)
    assert plant.num_constraints() == 2
    assert [x.name for x in model.couplers] == ["m::k.m::j", "n::k.n::j"]
    assert model.summary.independent_rows == 2


@pytest.mark.parametrize(
    ("ode", "static", "dynamic", "noted"),
    [
        ("<mu>0.9</mu>", 0.9, 0.9, True),
        ("<mu>0.4</mu><mu2>0.6</mu2>", 0.4, 0.4, True),
        ("<mu>0.8</mu><mu2>0.5</mu2>", 0.8, 0.5, False),
        ("<mu>1.2</mu>", 1.2, 1.0, False),
    ],
)
def test_friction_of_a_second_direction(tmp_path, ode, static, dynamic, noted):
    """As authors write it for ODE, whose <mu2> is that of another direction."""
    surface = f"<surface><friction><ode>{ode}</ode></friction></surface>"
    text = sdf(link("a", collision(inside=surface)))
    model = load(write(tmp_path, text, "m.sdf"))
    plant = MultibodyPlant(1e-3)
    scene_graph = SceneGraph()
    plant.RegisterAsSourceForSceneGraph(scene_graph)
    model.add_to(plant)
    (shape,) = plant.GetCollisionGeometriesForBody(plant.GetBodyByName("a"))
    inspector = scene_graph.model_inspector()
    friction = inspector.GetProximityProperties(shape).GetProperty(
        "material", "coulomb_friction"
    )
    assert friction.static_friction() == static
    assert friction.dynamic_friction() == dynamic
    assert reported(model, "becomes <mu>: a") == noted


def test_a_mass_of_zero_alone_adds_none(read):
    """Its inertia is 1 by default, of which Drake made a ball of 1 kg."""
    model, plant = read(
        sdf(link("a"), link("b", mass=0), joint("j", "a", "b", "fixed"))
    )
    assert model.summary.mass == plant.GetBodyByName("a").default_mass() == 1
    assert reported(model, "an inertia without a mass is not used", "b")
