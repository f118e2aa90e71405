"""`.skin.yaml` files: read back equal, and one-line errors for bad ones."""

import copy

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import DrakebotsError, InvalidInput, ModelProblem
from drakebots.fem.material import Material
from drakebots.model import package_root, skin_path
from drakebots.skin.file import (
    GlueRadius,
    ServoGains,
    SkinDescription,
    read_skin,
    write_skin,
)
from drakebots.skin.file.description import Patches, parse_skin

FULL = {
    "mesh": "skin.vtu",
    "material": {"kind": "mooney-rivlin", "youngs_modulus": "8e5", "density": 1000},
    "regions": {2: {"youngs_modulus": 1.2e5}},
    "second_order": [1],
    "joints": {"knee": 0.2},
    "glue": {"thigh": [12, 13, 40], "shin": [1]},
    "servos": {"stiffness": 40, "damping": 1},
    "cavities": {"lung": 7, "bag": [[0, 1, 2], [0, 2, 3]]},
    "patches": {"toe": {"body": "shin", "points": [[0, 0, -0.05], [0.02, 0, -0.05]]}},
}


def same(a, b):
    for name in ("mesh", "material", "second_order", "servos"):
        assert getattr(a, name) == getattr(b, name), name
    assert dict(a.regions) == dict(b.regions)
    assert dict(a.joints) == dict(b.joints)
    assert dict(a.cavities) == dict(b.cavities)
    glue = [x.glue if isinstance(x.glue, GlueRadius) else dict(x.glue) for x in (a, b)]
    assert glue[0] == glue[1]
    assert [(p.foot, p.body) for p in a.patches] == [
        (p.foot, p.body) for p in b.patches
    ]
    assert all(np.array_equal(p.p_BC, q.p_BC) for p, q in zip(a.patches, b.patches))


def test_a_full_file():
    skin = parse_skin(FULL)
    assert skin.material.youngs_modulus == 8e5  # YAML's text is a number
    assert skin.regions[2].kind == "mooney-rivlin"  # as the rest but for what differs
    assert skin.regions[2].youngs_modulus == 1.2e5
    assert skin.glue == {"thigh": (12, 13, 40), "shin": (1,)}
    assert skin.cavities == {"lung": 7, "bag": ((0, 1, 2), (0, 2, 3))}
    assert skin.patches[0].p_BC.shape == (2, 3)


@pytest.mark.parametrize("glue", [FULL["glue"], {"radius": 0.005, "between": "leave"}])
def test_reads_back_what_was_written(glue, tmp_path):
    skin = parse_skin(FULL | {"glue": glue})
    path = tmp_path / "x.skin.yaml"
    write_skin(path, skin)
    same(skin, read_skin(path))


def test_defaults_and_ogden_read_back(tmp_path):
    plain = SkinDescription("a.vtk", GlueRadius(0.01))
    ogden = SkinDescription(
        "a.vtk",
        {"shin": (3,)},
        Material("ogden", ogden_terms=((2.0, 0.75), (-2.0, 0.25))),
        servos=ServoGains(0.0, 0.0),
    )
    for skin in (plain, ogden):
        write_skin(tmp_path / "x.skin.yaml", skin)
        same(skin, read_skin(tmp_path / "x.skin.yaml"))
    assert plain.regions == {} and plain.joints == {}


def test_the_path_beside_a_model(tmp_path):
    for name in ("robot.sdf", "robot.urdf", "robot.dmd.yaml"):
        assert skin_path(tmp_path / name).name == "robot.skin.yaml"


def changed(path, value):
    raw = copy.deepcopy(FULL)
    at = raw
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return raw


BAD = [
    (("mesh",), None, "mesh"),
    (("mesh",), 3, "mesh"),
    (("glue",), None, "glue"),
    (("glue",), {}, "no vertices"),
    (("glue",), {"radius": -1}, "radius"),
    (("glue",), {"radius": "wide"}, "radius"),
    (("glue",), {"radius": 0.01, "between": "cut"}, "between"),
    (("glue", "thigh"), 3, "must be a list"),
    (("glue", "thigh"), [1.5], "a whole number"),
    (("material", "poisson_ratio"), 0.5, "poisson_ratio"),
    (("material", "poisson_ratio"), 0.7, "poisson_ratio"),
    (("material", "youngs_modulus"), -1.0, "youngs_modulus"),
    (("material", "youngs_modulus"), float("nan"), "youngs_modulus"),
    (("material", "kind"), "jelly", "jelly"),
    (("material", "kind"), [1], "kind"),
    (("material", "modulus"), 1.0, "modulus"),
    (("regions",), {"knee": {}}, "region"),
    (("regions",), [1], "regions"),
    (("second_order",), 1, "second_order"),
    (("second_order",), [0.5], "second_order"),
    (("joints", "knee"), "bent", "knee"),
    (("joints", "knee"), True, "knee"),
    (("servos", "stiffness"), -2, "stiffness"),
    (("patches", "toe", "points"), [[1, 2]], "toe"),
    (("patches", "toe", "points"), [[1, 2, float("inf")]], "toe"),
    (("patches", "toe", "body"), None, "toe"),
    (("sleeve",), 1, "sleeve"),
]


@pytest.mark.parametrize("path, value, said", BAD)
def test_bad_entries_are_named(path, value, said, tmp_path):
    file = tmp_path / "x.skin.yaml"
    file.write_text(yaml.safe_dump(changed(path, value)))
    with pytest.raises(ModelProblem) as caught:
        read_skin(file)
    message = str(caught.value)
    assert said in message and "x.skin.yaml" in message and "\n" not in message


def test_files_that_are_none(tmp_path):
    file = tmp_path / "x.skin.yaml"
    with pytest.raises(ModelProblem, match="drakebots attach"):
        read_skin(file)
    for text in ("", "- 1", "a: [", "\tb", "{a: b: c}", "!!python/object:os.system {}"):
        file.write_text(text)
        with pytest.raises(ModelProblem) as caught:
            read_skin(file)
        assert "\n" not in str(caught.value)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelProblem):
        read_skin(file)
    with pytest.raises(ModelProblem):
        read_skin(tmp_path)


def test_dataclasses_refuse():
    for call in (
        lambda: GlueRadius(np.nan),
        lambda: GlueRadius("x"),
        lambda: ServoGains(damping=np.inf),
        lambda: ServoGains("a"),
        lambda: Patches("f", "b", "here"),
        lambda: Patches("f", "b", []),
    ):
        with pytest.raises(InvalidInput):
            call()


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.text(max_size=4), st.integers()), inner, max_size=3
        ),
    ),
    max_leaves=6,
)


def paths(tree, prefix=()):
    for key, value in tree.items():
        yield (*prefix, key)
        if isinstance(value, dict):
            yield from paths(value, (*prefix, key))


@settings(max_examples=300)
@given(st.sampled_from(list(paths(FULL))), TREES)
def test_mutations_give_one_line_or_a_description(path, value):
    raw = copy.deepcopy(FULL)
    at = raw
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    try:
        assert isinstance(parse_skin(raw), SkinDescription)
    except DrakebotsError as error:
        assert "\n" not in str(error) and str(error)


@settings(max_examples=100)
@given(data=st.data())
def test_mutated_text_gives_one_line(data, tmp_path_factory):
    text = (package_root() / "skinned_leg" / "skinned_leg.skin.yaml").read_text()
    at = data.draw(st.integers(0, len(text) - 1))
    put = data.draw(st.text(max_size=3))
    cut = data.draw(st.integers(0, 5))
    file = tmp_path_factory.mktemp("m") / "x.skin.yaml"
    file.write_bytes((text[:at] + put + text[at + cut :]).encode("utf-8", "replace"))
    try:
        read_skin(file)
    except ModelProblem as error:
        assert "\n" not in str(error)
