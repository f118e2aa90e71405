"""Closed loops of joints, cut into trees."""

import numpy as np
import pytest
from pydrake.multibody.plant import MultibodyPlant

from drakebots import load
from drakebots.core.errors import ModelProblem
from drakebots.model import LoopClosure
from tests.helpers.model_files import write
from tests.helpers.stranger_urdf import joint, link, robot


def four_bar(kind="continuous", axis="0 1 0"):
    """A parallelogram of 1 m by 0.5 m, closed by joint `c` onto a post of its base.

    In a URDF a joint is where the frame of its child is; hence the post.
    """
    at = '<origin xyz="{}"/>'.format
    return robot(
        link("base") + link("left") + link("bar") + link("right") + link("post"),
        joint("weld", "base", "post", "fixed", at("1 0 0")),
        joint("a", "base", "left", "continuous", at("0 0 0"), axis),
        joint("b", "left", "bar", "continuous", at("0 0 0.5"), axis),
        joint("d", "bar", "right", "continuous", at("1 0 0"), axis),
        joint("c", "right", "post", kind, at("0 0 -0.5"), axis),
    )


def four_bar_sdf(kind="revolute"):
    """The same with poses in the model frame."""
    body = "<inertial><mass>1</mass></inertial>"
    poses = {"base": "0 0 0", "left": "0 0 0", "bar": "0 0 0.5", "right": "1 0 0.5"}
    links = "".join(
        f'<link name="{name}"><pose>{p} 0 0 0</pose>{body}</link>'
        for name, p in poses.items()
    )
    hinge = "<axis><xyz>0 1 0</xyz></axis>"
    joints = "".join(
        f'<joint name="{name}" type="{k}"><pose>{p} 0 0 0</pose>'
        f"<parent>{a}</parent><child>{b}</child>{hinge if k == 'revolute' else ''}"
        "</joint>"
        for name, a, b, p, k in [
            ("a", "base", "left", "0 0 0", "revolute"),
            ("b", "left", "bar", "0 0 0", "revolute"),
            ("d", "bar", "right", "0 0 0", kind),
            ("c", "base", "right", "0 0 -0.5", "revolute"),
        ]
    )
    return f'<sdf version="1.7"><model name="m">{links}{joints}</model></sdf>'


def closed(model):
    """A plant of the model, its context and its loops."""
    plant = MultibodyPlant(1e-3)
    model.add_to(plant, close_loops=False)
    plant.Finalize()
    return plant, plant.CreateDefaultContext(), LoopClosure(plant, model.loops)


@pytest.mark.parametrize(
    "name, text, cut, rows",
    [
        ("m.urdf", four_bar(), "c", "hinge"),
        ("m.urdf", four_bar("spherical"), "c", "ball"),
        ("m.sdf", four_bar_sdf(), "c", "hinge"),
        ("m.sdf", four_bar_sdf("ball"), "d", "ball"),
    ],
)
def test_a_four_bar_linkage(tmp_path, name, text, cut, rows):
    """It is closed as the file has it, and stays closed as a parallelogram."""
    model = load(write(tmp_path, text, name))
    (loop,) = model.loops
    assert (loop.name, loop.rows) == (cut, rows)
    assert any("closes a loop" in note and cut in note for note in model.notes)
    plant, context, closure = closed(model)
    assert plant.num_velocities() == 6 + 3
    assert closure.gaps(context).max() < 1e-12
    # Of joint c the parent is the base in the SDF, and the right bar in the URDF.
    turned = {"a": 0.3, "b": -0.3, "d": 0.3, "c": 0.3 if "sdf" in name else -0.3}
    for hinge in turned.keys() - {cut}:
        plant.GetJointByName(hinge).set_angle(context, turned[hinge])
    np.testing.assert_allclose(closure.residual(context), 0, atol=1e-12)


def test_a_motor_stays_in_the_tree(tmp_path):
    text = four_bar().replace(
        '<child link="post"/>', '<child link="post"/><limit effort="5"/>'
    )
    model = load(write(tmp_path, text, "m.urdf"))
    assert [loop.name for loop in model.loops] == ["d"]


def test_a_slider_that_closes_a_loop_is_a_problem(tmp_path):
    text = four_bar().replace("continuous", "prismatic")
    with pytest.raises(ModelProblem, match="'prismatic' closes a loop"):
        load(write(tmp_path, text, "m.urdf"))
