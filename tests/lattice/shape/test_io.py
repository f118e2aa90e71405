"""Lattices from files and back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import DrakebotsError, FileProblem
from drakebots.lattice.shape import (
    PRESETS,
    Lattice,
    Strut,
    block,
    load_lattice,
    save_lattice,
)
from drakebots.lattice.shape.lattice import parse_lattice

VXA = """<?xml version="1.0" encoding="ISO-8859-1"?>
<VXA Version="1.0"><VXC Version="0.94">
<Lattice><Lattice_Dim>0.01</Lattice_Dim><X_Dim_Adj>1</X_Dim_Adj></Lattice>
<Structure Compression="ASCII_READABLE">
<X_Voxels>3</X_Voxels><Y_Voxels>2</Y_Voxels><Z_Voxels>2</Z_Voxels>
<Data><Layer><![CDATA[100311]]></Layer><Layer><![CDATA[000002]]></Layer></Data>
</Structure></VXC></VXA>"""
FILLED = [[0, 0, 0], [0, 1, 0], [1, 1, 0], [2, 1, 0], [2, 1, 1]]


@given(
    st.sets(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=20),
    st.floats(1e-4, 1.0),
    st.sampled_from([None, *PRESETS.values()]),
)
@settings(max_examples=25)
def test_saved_is_loaded_as_it_was(tmp_path_factory, voxels, pitch, strut):
    """Voxels in their order, pitch and strut to the last bit."""
    path = tmp_path_factory.mktemp("io") / "lattice.json"
    lattice = Lattice(np.array(list(voxels)), pitch)
    save_lattice(path, lattice, strut)
    spec = load_lattice(path)
    assert (spec.lattice.voxels == lattice.voxels).all()
    assert spec.lattice.pitch == pitch
    assert spec.strut == (strut or Strut())


def test_yaml_with_units_and_array(tmp_path):
    """As in the module's example."""
    path = tmp_path / "slab.yaml"
    path.write_text(
        "pitch: {value: 76.2, unit: mm}\narray: [[[1, 1]], [[0, 1]]]\n"
        "strut: {d1: {value: 2, unit: mm}, d2: 0.003}\n"
    )
    spec = load_lattice(path)
    assert spec.lattice.voxels.tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 1]]
    assert spec.lattice.pitch == pytest.approx(0.0762)
    assert (spec.strut.d1, spec.strut.d2) == (0.002, 0.003)
    path.write_text("voxels: [[0, 0, 0]]\nstrut: nylon_2p0\n")
    assert load_lattice(path).strut == PRESETS["nylon_2p0"]


@pytest.mark.parametrize("ending", [".vxa", ".vxd", ".VXA"])
def test_voxcad(tmp_path, ending):
    """x fastest, then y; layers along z; all materials are voxels."""
    path = tmp_path / f"shape{ending}"
    path.write_text(VXA)
    lattice = load_lattice(path).lattice
    assert sorted(lattice.voxels.tolist()) == FILLED
    assert lattice.pitch == 0.01


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("ASCII_READABLE", "ZLIB", "stored as ZLIB; save it as ASCII_READABLE"),
        ("<X_Voxels>3", "<X_Voxels>4", "layer 0 has 6 voxels, not 4 x 2"),
        ("<Z_Voxels>2", "<Z_Voxels>3", "2 layers, <Z_Voxels> says 3"),
        ("<Y_Voxels>2", "<Y_Voxels>-2", "<Y_Voxels> must be"),
        ("<Y_Voxels>2", "<Y_Voxels>", "<Y_Voxels> must be"),
        ("<X_Dim_Adj>1", "<X_Dim_Adj>2", "must be cubes"),
        ("<Lattice_Dim>0.01", "<Lattice_Dim>wide", "<Lattice_Dim> must be"),
        ("<Lattice_Dim>0.01", "<Lattice_Dim>-1", "pitch must be > 0"),
        ("</VXA>", "", "is not XML"),
        ("Structure", "Estructura", "has no <Structure>"),
        ("<VXA V", '<!DOCTYPE a [<!ENTITY b "c">]><VXA V', "entities"),
        ("ISO-8859-1", "klingon", "is not XML"),
    ],
)
def test_bad_voxcad_is_named(tmp_path, old, new, words):
    """One line with the file and the remedy."""
    path = tmp_path / "shape.vxa"
    path.write_text(VXA.replace(old, new))
    with pytest.raises(FileProblem, match=words) as caught:
        load_lattice(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_empty_voxcad(tmp_path):
    """No voxel at all."""
    path = tmp_path / "shape.vxa"
    path.write_text(VXA.replace("100311", "000000").replace("000002", "000000"))
    with pytest.raises(FileProblem, match="voxels must be"):
        load_lattice(path)


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "is not JSON"),
        ("[" * 100000, "is not JSON"),
        ("[]", "needs `name: value`"),
        ('{"voxel": [[0,0,0]]}', "unknown entry of the file 'voxel'"),
        ("{}", "give either voxels"),
        ('{"voxels": [[0,0,0]], "array": [[[1]]]}', "give either voxels"),
        ('{"voxels": [[0,0,0],[1,1]]}', "whole numbers"),
        ('{"voxels": [[0,0,0.5]]}', "whole numbers"),
        ('{"voxels": "all"}', "whole numbers"),
        ('{"voxels": [[0,0,99999999999999999999]]}', "whole numbers"),
        ('{"voxels": [[0,0,9999999999]]}', r"within 0..999999"),
        ('{"voxels": [[0,0,-1]]}', "voxel"),
        ('{"voxels": []}', "voxels"),
        ('{"array": [[[2]]]}', "zeros or ones"),
        ('{"array": [[[0]]]}', "voxels must be"),
        ('{"voxels": [[0,0,0]], "pitch": "wide"}', "pitch: 'wide' must be"),
        ('{"voxels": [[0,0,0]], "pitch": true}', "pitch: True must be"),
        ('{"voxels": [[0,0,0]], "pitch": 0}', "pitch must be > 0"),
        ('{"voxels": [[0,0,0]], "pitch": {"value": 1, "unit": "inch"}}', "inch"),
        ('{"voxels": [[0,0,0]], "pitch": NaN}', "pitch: nan must be"),
        (
            '{"voxels": [[0,0,0]], "strut": "ultem20gf"}',
            "did you mean 'ultem20gf_1p27'",
        ),
        ('{"voxels": [[0,0,0]], "strut": {"d3": 1}}', "unknown entry of strut"),
        ('{"voxels": [[0,0,0]], "strut": {"d1": -1}}', "d1 must be > 0"),
        ('{"voxels": [[0,0,0]], "strut": 5}', "strut: needs"),
    ],
)
def test_bad_json_is_named(tmp_path, text, words):
    """One line with the file and the entry."""
    path = tmp_path / "lattice.json"
    path.write_text(text)
    with pytest.raises(FileProblem, match=words) as caught:
        load_lattice(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_files_are_named(tmp_path):
    """Missing, of another kind, not text, with anchors, not writable."""
    with pytest.raises(FileProblem, match="cannot be read"):
        load_lattice(tmp_path / "none.json")
    with pytest.raises(FileProblem, match="needs the ending"):
        load_lattice(tmp_path / "shape.stl")
    path = tmp_path / "lattice.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileProblem):
        load_lattice(path)
    path.write_text("voxels: [&a [0, 0, 0], *a]")
    with pytest.raises(FileProblem, match="anchor"):
        load_lattice(path)
    with pytest.raises(FileProblem, match=r"needs the ending \.json"):
        save_lattice(tmp_path / "lattice.yaml", block(1, 1, 1))
    with pytest.raises(FileProblem, match="there is no folder"):
        save_lattice(tmp_path / "none" / "lattice.json", block(1, 1, 1))
    assert [p.name for p in tmp_path.iterdir()] == ["lattice.yaml"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    """Atomic."""
    path = save_lattice(tmp_path / "lattice.json", block(1, 1, 1))
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(FileProblem, match="No space left"):
        save_lattice(path, block(2, 2, 2))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["value", "unit", "d1", "nu"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from(["voxels", "array", "pitch", "strut", "x"]), values)
)
def test_any_document_gives_a_lattice_or_one_line(raw):
    """Never another exception."""
    try:
        parse_lattice(json.loads(json.dumps(raw)))
    except DrakebotsError as error:
        assert "\n" not in str(error)
