"""Closed loops: what a loop may be, and c(q) against its Jacobian C(q)."""

import numpy as np
import pytest
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

import drakebots
from drakebots import build_robot
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.units import MM_G_MS
from drakebots.model import ROWS, Loop, LoopClosure, find_body
from drakebots.model.loops import ball_points

LINK = """
  <link name="{name}"><pose relative_to="{joint}">0 0 0 0 0 0</pose>
   <inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz>
   </inertia></inertial></link>
  <joint name="{joint}" type="revolute"><parent>{parent}</parent><child>{name}</child>
   <pose relative_to="{parent}">{pose}</pose><axis><xyz>0 1 0</xyz></axis></joint>"""

# A parallelogram of 1 m and 2 m: crank and rocker hang on the base, the rod on
# the crank; rod and rocker are cut apart at the rocker's tip.
FOUR_BAR = f"""<sdf version="1.9"><model name="four_bar"><link name="base"><inertial>
  <mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>
  </link>
  {LINK.format(name="crank", joint="j1", parent="base", pose="0 0 0 0 0 0")}
  {LINK.format(name="rod", joint="j2", parent="crank", pose="0 0 1 0 0 0")}
  {LINK.format(name="rocker", joint="j3", parent="base", pose="2 0 0 0 0 0")}
</model></sdf>"""


def closing(rows, **changes):
    values = {
        "name": "cut",
        "body_A": "rod",
        "p_AP": [2, 0, 0],
        "body_B": "rocker",
        "p_BQ": [0, 0, 1],
        "axis_A": [0, 1, 0],
        "axis_B": [0, 1, 0],
        "rows": rows,
    }
    return Loop(**(values | changes))


def four_bar_plant():
    """The four bars on the world, and a context."""
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(FOUR_BAR, "sdf")
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
    plant.Finalize()
    return plant, plant.CreateDefaultContext()


@pytest.fixture(scope="module")
def four_bar():
    return four_bar_plant()


@pytest.fixture(scope="module")
def hamr():
    model = drakebots.load("hamr")
    robot = build_robot(model, scaling=MM_G_MS, base="euler", time_step=0)
    return robot, robot.plant.CreateDefaultContext()


def assert_jacobian(plant, context, closure, q, step, tolerance):
    """C against central differences of c; here velocities are rates of q."""
    plant.SetPositions(context, q)
    c, C = closure.evaluate(context)
    np.testing.assert_array_equal(c, closure.residual(context))
    np.testing.assert_array_equal(C, closure.jacobian(context))
    numeric = np.zeros_like(C)
    for i in range(len(q)):
        ends = []
        for sign in (-1, 1):
            plant.SetPositions(context, q + sign * step * np.eye(len(q))[i])
            ends.append(closure.residual(context))
        numeric[:, i] = (ends[1] - ends[0]) / (2 * step)
    plant.SetPositions(context, q)
    np.testing.assert_allclose(C, numeric, atol=tolerance)


@pytest.mark.parametrize("rows", ROWS)
def test_four_bar_jacobian(four_bar, rows):
    """C(q) is the derivative of c(q), also with skew axes and an open loop."""
    plant, context = four_bar
    rng = np.random.default_rng(1)
    for axes in ([[0, 1, 0], [0, 1, 0]], rng.normal(size=(2, 3))):
        loop = closing(rows, axis_A=axes[0], axis_B=axes[1], p_AP=[2, 0.1, -0.3])
        closure = LoopClosure(plant, [loop])
        assert closure.num_rows == loop.num_rows == ROWS[rows]
        for _ in range(3):
            q = rng.uniform(-1, 1, 3)
            assert_jacobian(plant, context, closure, q, 1e-5, 1e-8)


@pytest.mark.parametrize("rows", ["ball", "planar", "hinge"])
@pytest.mark.parametrize("angle", [0.0, 0.4, -1.1])
def test_parallelogram_is_closed(four_bar, rows, angle):
    """A parallelogram closes with its rod parallel to the base: c = 0 and one
    freedom is left, along which crank and rocker turn alike."""
    plant, context = four_bar
    closure = LoopClosure(plant, [closing(rows)])
    plant.SetPositions(context, [angle, -angle, angle])
    c, C = closure.evaluate(context)
    np.testing.assert_allclose(c, 0, atol=1e-14)
    np.testing.assert_allclose(C @ [1, -1, 1], 0, atol=1e-14)
    assert np.linalg.matrix_rank(C, tol=1e-9) == 2
    np.testing.assert_allclose(closure.gaps(context), 0, atol=1e-14)


def test_open_four_bar_has_the_gap_of_its_geometry(four_bar):
    """With only the rod turned by a, the gap is the chord 2 l sin(a/2)."""
    plant, context = four_bar
    closure = LoopClosure(plant, [closing("ball")])
    plant.SetPositions(context, [0, 0.3, 0])
    gap = closure.gaps(context)[0]
    assert gap == pytest.approx(4 * np.sin(0.15), rel=1e-12)
    assert np.linalg.norm(closure.residual(context)) == pytest.approx(gap, rel=1e-12)


def test_length_unit_scales_lengths_not_directions(four_bar):
    """Points given in m sit at p/unit in a plant of another unit of length."""
    plant, context = four_bar
    metres = LoopClosure(plant, [closing("hinge")])
    scaled = closing("hinge", p_AP=[2e-3, 0, 0], p_BQ=[0, 0, 1e-3])
    millimetres = LoopClosure(plant, [scaled], length_unit=1e-3)
    plant.SetPositions(context, [0.2, 0.1, -0.3])
    np.testing.assert_allclose(
        metres.residual(context), millimetres.residual(context), atol=1e-14
    )


def test_across_is_orthonormal():
    """The two directions across a hinge and its axis are an orthonormal frame."""
    rng = np.random.default_rng(2)
    for axis in [*np.eye(3), *rng.normal(size=(20, 3))]:
        loop = closing("hinge", axis_B=axis)
        frame = np.vstack([loop.across(), loop.axis_B])
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(
        closing("hinge", axis_B=[0, 1, 0]).across(), np.eye(3)[[0, 2]]
    )


@pytest.mark.parametrize(
    "changes, error, word",
    [
        ({"rows": "hing"}, UnknownName, "hinge"),
        ({"p_AP": [0, 0]}, InvalidInput, "p_AP"),
        ({"p_BQ": [0, np.nan, 0]}, InvalidInput, "p_BQ"),
        ({"axis_A": [0, 0, 0]}, InvalidInput, "axis_A"),
        ({"axis_B": [0, 0, np.inf]}, InvalidInput, "axis_B"),
    ],
)
def test_bad_loops_are_refused(changes, error, word):
    """A point or an axis that is none cannot be part of a loop."""
    with pytest.raises(error, match=word) as caught:
        closing(**({"rows": "hinge"} | changes))
    assert "cut" in str(caught.value) and "\n" not in str(caught.value)


def test_loops_are_frozen_with_unit_axes():
    """An axis is a direction: its length does not matter."""
    loop = closing("hinge", axis_A=[0, 5, 0])
    np.testing.assert_array_equal(loop.axis_A, [0, 1, 0])
    with pytest.raises(ValueError):
        loop.p_AP[0] = 1.0


def test_ball_constraints_counted():
    """SAP holds a ball by one ball constraint, a hinge by two and a weld by three."""
    for rows, count in {"ball": 1, "planar": 2, "hinge": 2, "weld": 3}.items():
        assert len(list(ball_points(closing(rows), half_length=0.1))) == count


def test_find_body_lists_names(four_bar):
    """An unknown body or model is answered with the ones that exist."""
    plant, _ = four_bar
    assert find_body(plant, "four_bar::rod").name() == "rod"
    with pytest.raises(UnknownName, match=r"crank.*rocker.*rod") as caught:
        find_body(plant, "rocke")
    assert "did you mean 'rocker'" in str(caught.value)
    with pytest.raises(UnknownName, match="four_bar"):
        find_body(plant, "five_bar::rod")
    with pytest.raises(UnknownName, match="crank"):
        LoopClosure(plant, [closing("ball", body_A="no_such")])


def test_find_body_in_several_models():
    """A name that two models share needs the model's name before it."""
    from pydrake.multibody.parsing import Parser

    plant = MultibodyPlant(0.0)
    parser = Parser(plant)
    parser.SetAutoRenaming(True)
    for _ in range(2):
        instance = parser.AddModelsFromString(FOUR_BAR, "sdf")[0]
    with pytest.raises(InvalidInput, match="one of four_bar::rod, four_bar_1::rod"):
        find_body(plant, "rod")
    assert find_body(plant, "four_bar_1::rod").model_instance() == instance


def test_hamr_rows_and_rank(hamr):
    """HAMR's loops leave 32 - 24 = 8 freedoms, one for each actuator; singular
    values as those of the authors' model."""
    robot, context = hamr
    robot.plant.SetPositions(context, np.zeros(38))
    C = robot.closure.jacobian(context)
    values = np.linalg.svd(C, compute_uv=False)
    assert robot.closure.num_rows == len(robot.closure.row_names) == 24
    assert np.linalg.matrix_rank(C) == 24
    assert values[0] == pytest.approx(17.34, abs=1e-2)
    assert values[-1] == pytest.approx(1.06, abs=1e-2)
    assert robot.closure.gaps(context).max() < 2.1e-7  # mm


def test_hamr_jacobian(hamr):
    """C(q) = dc/dq at poses far from closed; the base has no part in it."""
    robot, context = hamr
    rng = np.random.default_rng(3)
    for _ in range(2):
        q = rng.uniform(-0.3, 0.3, 38)
        assert_jacobian(robot.plant, context, robot.closure, q, 1e-5, 1e-7)
        C = robot.closure.jacobian(context)
        base = [
            robot.plant.GetJointByName(f"Chassis_{k}").velocity_start()
            for k in ("x", "y", "z", "roll", "pitch", "yaw")
        ]
        assert np.abs(C[:, base]).max() < 1e-12


def test_a_weld_keeps_the_angle(four_bar):
    """Rod and rocker welded where they are square: no freedom is left."""
    plant, context = four_bar
    closure = LoopClosure(plant, [closing("weld")])
    plant.SetPositions(context, [0, 0, 0])
    c, C = closure.evaluate(context)
    np.testing.assert_allclose(c, 0, atol=1e-14)
    assert np.linalg.matrix_rank(C, tol=1e-9) == 3
    plant.SetPositions(context, [0.3, -0.3, 0.3])  # the parallelogram, turned
    np.testing.assert_allclose(closure.gaps(context), 0, atol=1e-14)
    np.testing.assert_allclose(np.abs(closure.residual(context)[3:]).max(), np.sin(0.3))


def test_frames_of_a_weld_coincide_where_it_is_closed():
    loop = closing("weld", axis_A=[0, 0, 1], side_A=[0, 1, 0.3], side_B=[1, 0, 0])
    X_AP, X_BQ = loop.frames()
    np.testing.assert_allclose(X_AP.rotation().matrix()[:, 0], [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(X_BQ.rotation().matrix()[:, 2], [0, 1, 0], atol=1e-12)
    np.testing.assert_array_equal(X_AP.translation(), loop.p_AP)
    with pytest.raises(InvalidInput, match="along its axis"):
        closing("weld", side_A=[0, 2, 0]).frames()


@pytest.mark.parametrize("kept", [(0,), (1, 3), (0, 2, 4)])
def test_only_the_kept_rows_count(four_bar, kept):
    plant, context = four_bar
    plant.SetPositions(context, [0.1, 0.3, -0.2])
    every = LoopClosure(plant, [closing("hinge")])
    some = LoopClosure(plant, [closing("hinge", kept=kept)])
    assert some.num_rows == len(kept)
    assert some.row_names == tuple(f"cut.{k}" for k in kept)
    for name in ("residual", "jacobian"):
        whole, part = (getattr(x, name)(context) for x in (every, some))
        np.testing.assert_array_equal(part, whole[list(kept)])


@pytest.mark.parametrize("kept", [(0, 0), (1, 0), (5,), (-1,)])
def test_kept_rows_exist_and_rise(kept):
    with pytest.raises(InvalidInput, match=r"row numbers that rise, within 0\.\.4"):
        closing("hinge", kept=kept)
