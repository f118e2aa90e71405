"""Bad YAML is one line naming the file, for every reader of a user's file."""

from __future__ import annotations

import numpy as np
import pytest

from drakebots.core.errors import FileProblem, ModelProblem
from drakebots.core.files import read_yaml
from drakebots.design import read_design
from drakebots.lattice.shape import load_lattice
from drakebots.model import read_sidecar
from drakebots.multibody import read_limbs
from drakebots.robots.quads.motion import read_motion
from drakebots.robots.voxels import read_gait
from drakebots.skin.file import read_skin
from tests.helpers.scripts import load_script

HamrParameters = load_script("hamr_visuals.parameters").HamrParameters

READERS = {
    "document": read_yaml,
    "design": read_design,
    "gait": read_gait,
    "hamr": HamrParameters,
    "lattice": load_lattice,
    "limbs": read_limbs,
    "motion": lambda path: read_motion(path, None),
    "sidecar": read_sidecar,
    "skin": read_skin,
}
BAD = {
    "month": b"a: 2024-99-99\n",
    "deep": b"a: " + 1500 * b"[",
    "long": b"a: " + 5000 * b"9",
    "open": b"a: [",
    "nul": b"a: \x00",
    "latin": b"a: \xe9",
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("bad", BAD)
def test_bad_yaml_is_named(tmp_path, reader, bad):
    path = tmp_path / "file.yaml"
    path.write_bytes(BAD[bad])
    with pytest.raises(FileProblem, match=r"file\.yaml") as caught:
        READERS[reader](path)
    assert "\n" not in str(caught.value)


def test_document_and_kind_of_problem(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("a: [1, 2.5]\n")
    assert np.array_equal(read_yaml(path)["a"], [1, 2.5])
    with pytest.raises(ModelProblem, match="cannot be read"):
        read_yaml(tmp_path / "none.yaml", ModelProblem)
