"""Signed distances of terrains: closed forms, nearest points, derivatives."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import InvalidInput
from drakebots.multibody import (
    Flat,
    HeightField,
    Plateau,
    SignedDistance,
    Slope,
    Step,
)

X, Y = np.linspace(-0.5, 0.7, 13), np.linspace(-0.3, 0.3, 7)


def field(h, x=X, y=Y):
    return HeightField(x, y, h(*np.meshgrid(x, y, indexing="ij")))


def waves(x, y):
    return 0.05 * np.sin(7 * x) * np.cos(5 * y) + 0.1 * x


def sphere(p):
    return ca.norm_2(p - ca.DM([0.1, 0, -0.5])) - 0.5


TERRAINS = {
    "flat": Flat(0.02),
    "slope": Slope(0.3),
    "step": Step(0.1, 0.4, 0.15),
    "round step": Step(0.1, 0.4, 0.15, rounding=0.05),
    "plateau": Plateau(0.1, 0.4, 0.15, width=0.6),
    "field": field(waves),
    "sphere": SignedDistance(sphere),
}
EXACT = [name for name in TERRAINS if name != "field"]


def points(n=200, seed=0, spread=0.45):
    return np.random.default_rng(seed).uniform(-spread, spread, (n, 3))


def number(expression_of, p):
    """The value of an expression of p at a point."""
    symbol = ca.SX.sym("p", 3)
    value = expression_of(symbol)
    values = value if isinstance(value, tuple) else (value,)
    found = ca.Function("f", [symbol], [ca.SX(v) for v in values])(p)
    return np.array(ca.horzcat(*found) if isinstance(value, tuple) else found)


# ------------------------------------------------------------------ distances
def test_closed_forms():
    p = points()
    np.testing.assert_allclose(Flat(0.02).evaluate(p)[0], p[:, 2] - 0.02)
    n = np.array([np.sin(0.3), 0, np.cos(0.3)])
    np.testing.assert_allclose(Slope(0.3).evaluate(p)[0], p @ n)
    radius = np.linalg.norm(p - [0.1, 0, -0.5], axis=1)
    np.testing.assert_allclose(SignedDistance(sphere).evaluate(p)[0], radius - 0.5)


@pytest.mark.parametrize(
    "p, phi",
    [
        ((0, 5, 0.02), 0.02),  # floor before the box
        ((0.09, 0, 0.1), 0.01),  # wall
        ((0.2, 0, 0.2), 0.05),  # top
        ((0.1 - 0.03, 0, 0.15 + 0.04), 0.05),  # edges
        ((0.4 + 0.03, 0, 0.15 + 0.04), 0.05),
        ((0.6, 0, 0.1), 0.1),  # floor behind
        ((0.2, 0, 0.14), -0.01),  # inside, below the top
        ((0.11, 0, 0.1), -0.01),  # inside, behind the wall
        ((0, 0, -0.01), -0.01),
    ],
)
def test_step_by_hand(p, phi):
    assert Step(0.1, 0.4, 0.15).evaluate(p)[0][0] == pytest.approx(phi, abs=1e-14)


@pytest.mark.parametrize(
    "p, phi",
    [
        ((0.1, 0, 0.2), 0.05),  # the edge belongs to the plateau
        ((0.0999, 0, 0.1), 0.1),  # no wall before it
        ((0.1001, 0, 0.1), -0.05),
        ((0.4, -0.3, 0.15), 0.0),
        ((0.4001, 0, 0.15), 0.15),
        ((0.2, 0.3001, 0.15), 0.15),  # beside it
    ],
)
def test_plateau_by_hand(p, phi):
    """A height with a jump; its normal points up everywhere."""
    plateau = TERRAINS["plateau"]
    found, gradient = plateau.evaluate(p)
    assert found[0] == pytest.approx(phi, abs=1e-14)
    np.testing.assert_array_equal(gradient[0], [0, 0, 1])
    np.testing.assert_array_equal(number(plateau.frame, p).T, np.eye(3)[[2, 0, 1]])
    endless = Plateau(0.1, 0.4, 0.15)
    assert endless.evaluate((0.2, 9, 0.2))[0][0] == pytest.approx(0.05)


def outline(step):
    """Points (x, z) of the surface, by arcs and straight pieces, for x in -1..2."""
    a, b, h, r = step.start, step.end, step.height, step.rounding
    line = [
        (-1.0, 0.0),
        (a - r, 0.0),
        *_arc((a - r, r), r, -90, 0),
        *_arc((a + r, h - r), r, 180, 90),
        *_arc((b - r, h - r), r, 90, 0),
        *_arc((b + r, r), r, 180, 270),
        (2.0, 0.0),
    ]
    return np.array(line)


def _arc(centre, r, start, end):
    t = np.radians(np.linspace(start, end, 400))
    return [(centre[0] + r * np.cos(a), centre[1] + r * np.sin(a)) for a in t]


def nearest(line, p):
    """The distance to a polyline."""
    a, d = line[:-1], np.diff(line, axis=0)
    length = np.maximum((d**2).sum(axis=1), 1e-300)
    t = np.clip(((p - a) * d).sum(axis=1) / length, 0, 1)
    return np.linalg.norm(a + t[:, None] * d - p, axis=1).min()


@settings(max_examples=200)
@given(
    start=st.floats(-0.3, 0.3),
    width=st.floats(0.05, 0.5),
    height=st.floats(0.05, 0.5),
    part=st.floats(0, 0.49),
    x=st.floats(-0.6, 1.1),
    y=st.floats(-1, 1),
    z=st.floats(-0.2, 0.8),
)
def test_step_is_the_nearest_point(start, width, height, part, x, y, z):
    """Outside, phi is the distance to the outline; negative is below it."""
    step = Step(start, start + width, height, part * min(width, height))
    phi = step.evaluate((x, y, z))[0][0]
    distance = nearest(outline(step), np.array([x, z]))
    if phi > 1e-6:
        assert phi == pytest.approx(distance, abs=1e-6)  # of the arcs' polygons
    elif phi < -1e-6:
        # Below the outline, whose walls np.interp takes for steep slopes.
        line = outline(step)
        assert z < np.interp(x, line[:, 0], line[:, 1]) or distance < 1e-6
    else:
        assert distance < 1e-5


# ----------------------------------------------------------------- derivatives
@pytest.mark.parametrize("name", EXACT)
def test_slope_is_one(name):
    """|grad phi| = 1, inside too, but below the floor near a fillet."""
    phi, gradient = TERRAINS[name].evaluate(points())
    if name == "round step":
        gradient = gradient[phi > 0]
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("name", TERRAINS)
def test_gradient_is_a_difference(name):
    terrain, p, step = TERRAINS[name], points(seed=1), 1e-6
    gradient = terrain.evaluate(p)[1]
    differences = np.array(
        [
            (terrain.evaluate(p + e)[0] - terrain.evaluate(p - e)[0]) / (2 * step)
            for e in step * np.eye(3)
        ]
    ).T
    np.testing.assert_allclose(gradient, differences, atol=1e-8)


@pytest.mark.parametrize("name", ["round step", "field", "sphere"])
def test_hessian_is_a_difference(name):
    terrain, step = TERRAINS[name], 1e-6
    for p in points(20, seed=2):
        ours = number(terrain.hessian, p)
        differences = [
            (terrain.evaluate(p + e)[1][0] - terrain.evaluate(p - e)[1][0]) / (2 * step)
            for e in step * np.eye(3)
        ]
        np.testing.assert_allclose(ours, differences, atol=1e-6)


@pytest.mark.parametrize("name", TERRAINS)
def test_frame(name):
    """n along the gradient at the surface, and a right-handed frame."""
    terrain = TERRAINS[name]
    for p in points(40, seed=3):
        for _ in range(30):  # walk onto the surface
            phi, gradient = terrain.evaluate(p)
            p = p - phi[0] * gradient[0] / (gradient[0] @ gradient[0])
        frame = number(terrain.frame, p)
        np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(np.cross(*frame[:, 1:].T), frame[:, 0], atol=1e-12)
        if abs(terrain.evaluate(p)[0][0]) < 1e-12:
            n = terrain.evaluate(p)[1][0]
            np.testing.assert_allclose(frame[:, 0], n, atol=1e-10)


@pytest.mark.parametrize("terrain", [Flat(), Slope(0.2)], ids=["flat", "slope"])
def test_flat_frames_are_constants(terrain):
    p = ca.SX.sym("p", 3)
    assert not any(ca.depends_on(axis, p) for axis in terrain.frame(p))
    if terrain == Flat():
        assert [axis.elements() for axis in terrain.frame(p)] == [
            [0, 0, 1],
            [1, 0, 0],
            [0, 1, 0],
        ]


def test_walls_and_ceilings_have_frames():
    """Also where n is horizontal or points down."""
    ball = SignedDistance(lambda p: ca.norm_2(p) - 1)
    for n in np.vstack([np.eye(3), -np.eye(3)]):
        frame = number(ball.frame, 1.1 * n)
        np.testing.assert_allclose(frame[:, 0], n)
        np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-12)
    wall = number(Step(0, 1, 1).frame, [-0.1, 0, 0.5])
    np.testing.assert_array_equal(wall, [[-1, 0, 0], [0, 0, 1], [0, 1, 0]])


def test_derivatives_are_finite_at_corners():
    """At edges, inner corners and rounding's ends, where branches meet."""
    for step in (Step(0, 1, 0.5), Step(0, 1, 0.5, 0.1)):
        grid = [-0.1, 0, 0.1, 0.4, 0.5, 0.6, 0.9, 1, 1.1]
        for p in [(x, 0, z) for x in grid for z in grid]:
            gradient = number(step.gradient, p)
            assert np.isfinite(gradient).all()
            if not step.rounding or step.evaluate(p)[0] >= 0:
                assert np.linalg.norm(gradient) == pytest.approx(1)
            assert np.isfinite(number(step.hessian, p)).all()


def test_rounding_makes_the_gradient_continuous():
    """Along a path over floor, fillet, wall, edge and top."""
    step = Step(0, 1, 0.5, rounding=0.1)
    path = outline(step)
    path = path[(path[:, 0] > -0.3) & (path[:, 0] < 0.6)]
    lift = step.evaluate(np.insert(path, 1, 0, axis=1))
    np.testing.assert_allclose(lift[0], 0, atol=1e-12)
    turns = np.linalg.norm(np.diff(lift[1], axis=0), axis=1)
    assert turns.max() < 0.01


# --------------------------------------------------------------- height fields
@pytest.mark.parametrize("size", [(2, 2), (2, 5), (3, 4), (13, 7)])
def test_field_is_a_plane(size):
    """Exact, also far outside the grid."""
    x, y = np.linspace(-1, 2, size[0]), np.linspace(0, 1, size[1])
    plane = field(lambda x, y: 0.3 * x - 0.2 * y + 0.1, x, y)
    p = points(spread=4.0)
    exact = (p @ [-0.3, 0.2, 1] - 0.1) / np.sqrt(1 + 0.3**2 + 0.2**2)
    phi, gradient = plane.evaluate(p)
    np.testing.assert_allclose(phi, exact, atol=1e-12)
    n = np.array([-0.3, 0.2, 1]) / np.sqrt(1.13)
    np.testing.assert_allclose(gradient, np.tile(n, (len(p), 1)), atol=1e-12)
    level = field(lambda x, y: 0.1 + 0 * x)
    np.testing.assert_allclose(
        number(level.frame, [0, 0, 1]), [[0, 1, 0], [0, 0, 1], [1, 0, 0]], atol=1e-12
    )


def test_field_is_exact_for_cubics():
    def h(x, y):
        return 0.2 * x**2 - 0.3 * x * y + 0.1 * y**3 + x**3 * y**2

    ours = field(h)
    for p in points(50, seed=4) * [1, 0.6, 1]:
        assert ours.heights(*p[:2]).item() == pytest.approx(h(*p[:2]), abs=1e-13)


def test_field_converges_in_fourth_order():
    errors = []
    for n in (11, 21, 41):
        ours = field(waves, np.linspace(-0.5, 0.5, n), np.linspace(-0.5, 0.5, n))
        p = points(100, seed=5)
        p[:, 2] = waves(p[:, 0], p[:, 1])
        errors.append(np.abs(ours.evaluate(p)[0]).max())
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (rates > 3.3).all(), errors


def test_field_hessian_on_grid_lines():
    """h'' is continuous: right on a line, and next to it."""
    ours = field(waves)
    p = ca.SX.sym("p", 3)
    H = ca.Function("H", [p], [ca.hessian(ours._height_and_slopes(p)[0], p)[0]])
    for x, y in [(X[3], Y[2]), (X[6], 0.05), (0.13, Y[4])]:
        beside = [np.array(H([x + d, y + d, 0])) for d in (-1e-9, 0, 1e-9)]
        assert np.abs(beside[1]).max() > 0.1
        np.testing.assert_allclose(beside[0], beside[1], atol=1e-6)
        np.testing.assert_allclose(beside[2], beside[1], atol=1e-6)


# ----------------------------------------------------------------------- units
@pytest.mark.parametrize("name", TERRAINS)
def test_units(name):
    """Millimetres in, millimetres out."""
    metres = TERRAINS[name].evaluate(points())
    mm = TERRAINS[name].scaled(1e-3).evaluate(1e3 * points())
    np.testing.assert_allclose(1e-3 * mm[0], metres[0], atol=1e-13)
    np.testing.assert_allclose(mm[1], metres[1], atol=1e-10)


def test_matrix_symbols_too():
    """Expressions in MX agree with those in SX."""
    for terrain in TERRAINS.values():
        p = ca.MX.sym("p", 3)
        outputs = [terrain.distance(p), terrain.gradient(p)]
        phi, gradient = ca.Function("f", [p], outputs)([0.2, 0.1, 0.3])
        exact = terrain.evaluate([0.2, 0.1, 0.3])
        np.testing.assert_allclose(float(phi), exact[0][0], rtol=1e-12)
        np.testing.assert_allclose(np.array(gradient).ravel(), exact[1][0], rtol=1e-12)


# ---------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Flat(np.nan), "height must be a finite number"),
        (lambda: Flat("high"), "height must be a finite number"),
        (lambda: Slope(np.pi / 2), "is it in degrees"),
        (lambda: Slope(-20), "between -pi/2 and pi/2"),
        (lambda: Step(1, 1, 0.1), "end must be beyond start"),
        (lambda: Step(0, np.inf, 0.1), "end must be a finite number"),
        (lambda: Plateau(1, 1, 0.1), "end must be beyond start"),
        (lambda: Plateau(0, 1, 0.1, 0), "width must be > 0"),
        (lambda: Step(0, 1, 0), "height must be > 0"),
        (lambda: Step(0, 1, 0.1, 0.06), "rounding must be within 0..0.05 m"),
        (lambda: Step(0, 1, 0.1, -0.01), "rounding must be within"),
        (lambda: HeightField([], [], [[]]), "x needs two or more"),
        (lambda: HeightField([0], [0, 1], [[1, 2]]), "x needs two or more"),
        (lambda: HeightField([0, 1], [0, 1], [1, 2]), "z must be nxn finite"),
        (lambda: HeightField([0, 1], [0, 1], [[1, 2], [3]]), "z must be nxn finite"),
        (lambda: HeightField([0, 1], [0, 1], [[1, 2]]), "z must be 2x2 finite"),
        (lambda: HeightField([0, 1], [1, 0], np.ones((2, 2))), "y must be increasing"),
        (lambda: HeightField([0, 1, 3], [0, 1], np.ones((3, 2))), "evenly spaced"),
        (lambda: SignedDistance(lambda p: p), "must give one number"),
        (lambda: SignedDistance(lambda p: ca.SX(1)), "does not depend"),
        (lambda: SignedDistance(lambda p: p[7]), "fails on SX"),
        (lambda: SignedDistance(3), "fails on SX"),
        (lambda: Flat().scaled(0), "length unit must be > 0"),
    ],
)
def test_errors_are_one_line(make, message):
    with pytest.raises(InvalidInput, match=message) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["flat", "slope", "step", "plateau", "field"])
def test_heights_are_where_the_distance_vanishes(name):
    """phi = 0 on the ground, for the box also between its ends."""
    terrain = TERRAINS[name]
    x, y = np.meshgrid(np.linspace(-0.4, 0.6, 13), np.linspace(-0.2, 0.2, 5))
    points = np.stack([x, y, terrain.heights(x, y)], axis=-1)
    assert points.shape == (5, 13, 3)
    assert np.abs(terrain.evaluate(points.reshape(-1, 3))[0]).max() < 1e-12


def test_terrains_without_heights_say_so():
    with pytest.raises(InvalidInput, match="SignedDistance has no heights"):
        SignedDistance(sphere).heights(np.zeros(1), np.zeros(1))
