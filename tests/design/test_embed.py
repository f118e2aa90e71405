"""Fitting a template into a surface."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, NoSolution, UnknownName
from drakebots.design import table1_template
from drakebots.design.embed import CLEARANCE, TOLERANCE, embed, scaled_template
from drakebots.design.skeleton import edit
from tests.helpers.robot_fields import capsule_field


@pytest.fixture(scope="module")
def fitted():
    truth = table1_template("beetle")
    field = capsule_field(truth.skeleton())
    start = edit(
        scaled_template(truth, 0.9),
        {
            "front.upper_pitch": truth.front.upper_pitch + 0.15,
            "hind.lower_pitch": truth.hind.lower_pitch - 0.15,
            "front.x": truth.front.x + 0.02,
        },
    )
    return truth, field, embed(start, field)


@pytest.mark.long
def test_everything_lies_inside_the_skin(fitted):
    """All but bracing rings, which are cut to the skin's inside."""
    _, field, found = fitted
    build = found.build
    for link in found.skeleton().links:
        corners = [s.corners() for s in link.solids if s.kind != "rib"]
        depth = -field(link.origin + np.concatenate(corners)).max()
        foot = link.name.endswith("_foot")
        assert depth >= (build.sole_skin if foot else build.skin + CLEARANCE) - (
            TOLERANCE
        )


@pytest.mark.long
def test_hardware_keeps_its_size(fitted):
    truth, _, found = fitted
    assert found.build == truth.build
    assert found.torso.battery == truth.torso.battery


@pytest.mark.long
def test_thin_limbs_are_named_with_the_scale_that_fits():
    template = table1_template("beetle")
    thin = capsule_field(template.skeleton(), radius=0.031)
    with pytest.raises(NoSolution) as failure:
        embed(template, thin)
    text = str(failure.value)
    assert "front limbs do not fit" in text and "sticks out" in text
    k = float(text.split("scale the surface by ")[1])
    assert 1.0 < k < 1.5

    def larger(points):
        return k * thin(points / k)

    # The scale is of the surface; the torso is not asked here.
    try:
        embed(template, larger)
    except NoSolution as error:
        assert "limbs do not fit" not in str(error)


def test_limits_hold_and_are_named():
    template = table1_template("cow")
    field = capsule_field(template.skeleton(), radius=0.06, torso_margin=0.03)
    limits = {"front.upper": (0.11, 0.112), "hind.splay": (0.0, 0.0), "scale": (1, 1)}
    found = embed(template, field, limits=limits)
    assert 0.11 <= found.front.upper <= 0.112
    assert found.hind.splay == 0
    # Of what is scaled, the hip is not fitted.
    assert found.front.hip == template.front.hip
    with pytest.raises(UnknownName, match=r"front\.uper"):
        embed(template, field, limits={"front.uper": (0, 1)})
    with pytest.raises(InvalidInput, match="leave nothing"):
        embed(template, field, limits={"front.upper": (0.2, 0.1)})


def test_bad_fields():
    template = table1_template("beetle")
    with pytest.raises(InvalidInput, match="field"):
        embed(template, lambda p: np.zeros(3))
    with pytest.raises(InvalidInput, match="field"):
        embed(template, lambda p: np.full(len(p), np.nan))


@pytest.mark.parametrize("scale", [0.8, 1.3])
def test_scaling_keeps_motors_working(scale):
    template = table1_template("monster")
    scaled = scaled_template(template, scale)
    build = scaled.build
    assert build == template.build
    assert scaled.front.upper == max(scale * template.front.upper, build.shortest)
    assert edit(scaled, {"torso.size[1]": 0.1}).torso.size[1] == 0.1
