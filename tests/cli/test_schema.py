"""`drakebots schema`: a JSON Schema of each YAML format, which our files keep."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from drakebots.cli import look
from drakebots.core.errors import DrakebotsError
from drakebots.core.files import parse_yaml, read_yaml
from drakebots.design.file import parse_design
from drakebots.model.description import parse_sidecar
from drakebots.multibody import read_limbs
from drakebots.skin.file.description import parse_skin
from tests.helpers.scripts import ROOT

COMMITTED = ROOT / "models" / "schemas"
NAMED = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
OURS = ("params.yaml", "gaits.yaml", "scene.dmd.yaml")
"""YAML files in models/ that are Drake's, or data that our code alone reads."""

SHIPPED = [
    path
    for folder in ("examples", "models")
    for path in sorted((ROOT / folder).rglob("*.yaml"))
    if path.name not in OURS
]


@pytest.fixture(scope="module")
def schemas():
    return json.loads(json.dumps(look.schemas()))


@pytest.fixture(scope="module")
def takes(schemas):
    """Whether the schema of a format takes a document."""
    for each in schemas.values():
        jsonschema.Draft202012Validator.check_schema(each)
    judges = {k: jsonschema.Draft202012Validator(v) for k, v in schemas.items()}
    return lambda name, document: judges[name].is_valid(_read_by_editors(document))


def _read_by_editors(document):
    """6e-05 is a number in YAML 1.2, which editors read, and a text in 1.1."""
    if isinstance(document, dict):
        return {key: _read_by_editors(value) for key, value in document.items()}
    if isinstance(document, list):
        return list(map(_read_by_editors, document))
    is_number = re.fullmatch(r"[-+]?\d+e[-+]?\d+", str(document))
    return float(document) if is_number else document


def test_what_we_ship_names_its_schema_and_keeps_it(takes):
    assert len(SHIPPED) > 15
    for path in SHIPPED:
        named = NAMED.match(path.read_text())
        assert named, f"{path} names no schema"
        place = (path.parent / named[1]).resolve()
        assert place.parent == COMMITTED and place.is_file(), path
        assert takes(place.stem, read_yaml(path)), path


@pytest.mark.long
def test_the_schemas_in_models_are_those_of_the_code(tmp_path):
    """In a process of its own: other tests register robots that scenarios name."""
    words = [sys.executable, "-m", "drakebots", "schema", str(tmp_path)]
    subprocess.run(words, check=True, capture_output=True)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    held = {path.name: path.read_text() for path in COMMITTED.iterdir()}
    assert made == held, "run `drakebots schema models/schemas`"


def _read(name: str, text: str, folder: Path) -> None:
    """What reads a format; raises DrakebotsError where it refuses the text."""
    raw = parse_yaml(text)
    if name == "limbs":
        path = folder / "limbs.yaml"
        path.write_text(text)
        read_limbs(path)
    elif name == "design":
        parse_design(raw, folder)
    else:
        {"drakebots": parse_sidecar, "skin": parse_skin}[name](raw)


LIMB = (
    "name: a, parent: b, length: {value: 1, unit: m}, mass: {value: 9, unit: g}, "
    "stiffness: {value: 1, unit: N m/rad}"
)
MM = "{value: 3, unit: mm}"
CASES = [
    ("drakebots", "feet: {a: {body: b, p: [0, 0, 1], radius: 0.1}}", True),
    ("drakebots", "feet: {a: {body: b, p: [0, 1]}}", False),
    ("drakebots", "feet: {a: {body: b, p: [0, 0, 1], r: 0.1}}", False),
    ("drakebots", "loops: {a: {A: b, B: c, p_A: [0, 0, 0], p_B: [0, 0, 0]}}", True),
    ("drakebots", "loops: {a: {A: b, B: c, p_A: [0, 0, 0]}}", False),
    (
        "drakebots",
        "loops: {a: {A: b, B: c, p_A: [0, 0, 0], p_B: [0, 0, 0], rows: slide}}",
        False,
    ),
    ("skin", "{mesh: a.vtu, glue: {b: [1, 2]}, regions: {2: {density: 900}}}", True),
    ("skin", "{mesh: a.vtu, glue: {radius: 0.01, between: nearest}, unit: mm}", True),
    ("skin", "{mesh: a.vtu}", False),
    ("skin", "{mesh: a.vtu, glue: {radius: 0.01}, unit: inch}", False),
    ("skin", "{mesh: a.vtu, glue: {radius: 0.01}, servos: {gain: 1}}", False),
    (
        "skin",
        "{mesh: a.vtu, glue: {radius: 0.01}, patches: {f: {body: b}}}",
        False,
    ),
    ("limbs", f"limbs: [{{{LIMB}, radius: {MM}}}]", True),
    ("limbs", f"limbs: [{{{LIMB}, radius: thick}}]", False),
    ("limbs", f"limbs: [{{{LIMB}}}]", False),
    (
        "limbs",
        f"limbs: [{{{LIMB}, radius: {MM}, segment: 3}}]",
        False,
    ),
    ("design", "{template: cow, skin: {wall: 0.004}}", True),
    ("design", "{template: cow, skins: {wall: 0.004}}", False),
    ("design", "{template: horse}", False),
]


@pytest.mark.parametrize(("name", "text", "taken"), CASES)
def test_schemas_and_readers_agree(takes, tmp_path, name, text, taken):
    assert takes(name, parse_yaml(text)) == taken
    if taken:
        _read(name, text, tmp_path)
    else:
        with pytest.raises(DrakebotsError):
            _read(name, text, tmp_path)


def test_every_reader_knows_the_same_entries(schemas):
    """An entry that one of them has and the other lacks would be underlined wrongly."""
    from drakebots.design.file import _ENTRIES
    from drakebots.model.description import _LOOP, _POINT

    sidecar = schemas["drakebots"]
    loop = sidecar["properties"]["loops"]["additionalProperties"]["properties"]
    point = sidecar["$defs"]["points"]["additionalProperties"]["properties"]
    assert set(loop) == set(_LOOP) and set(point) == set(_POINT)
    assert set(schemas["design"]["properties"]) == set(_ENTRIES)
