"""The reference has every public name, and the site's parts do what they say."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from tests.helpers.scripts import ROOT

pytest.importorskip("sphinx")
pytest.importorskip("furo")


@pytest.fixture(scope="module")
def extension():
    spec = importlib.util.spec_from_file_location(
        "site_extension", ROOT / "docs" / "extension.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_of_every_face_is_on_a_page(extension):
    shown: dict = {}
    pages = {
        face: extension.face_page(face, names, shown)
        for face, names in extension.faces().items()
    }
    faces = [
        ".".join(path.relative_to(ROOT).parent.parts)
        for path in ROOT.glob("drakebots/**/__init__.py")
        if "lazy_face(__name__)" in path.read_text()
    ]
    assert len(faces) > 50 and set(faces) <= set(pages)
    text = "\n".join(pages.values())
    for face in faces:
        for name in importlib.import_module(face).__all__:
            full = f"{face}.{name}"
            module = f".. py:data:: {name}\n   :module: {face}"
            assert f":: {full}\n" in text or f":: {full} " in text or module in text, (
                full
            )


def test_code_in_docstrings_is_literal_and_sections_are_not(extension):
    plain = extension.plain(
        [
            "A |norm|.",
            "",
            "    x = y*z",
            "",
            "Args:",
            "    a: of *it*.",
            "",
            "      more",
        ]
    )
    assert plain[0] == r"A \|norm\|."
    assert plain[2:5] == ["::", "", "    x = y*z"]
    assert plain[-4:] == ["Args:", r"    a: of \*it\*.", "", "      more"]
    assert extension.plain(["Sum.", "", "x = f(1)"])[2:] == ["::", "", "    x = f(1)"]
