"""A changed robot is a model of its own: it loads without the one it came from."""

import numpy as np
import pytest

from drakebots import load
from drakebots.core.errors import InvalidInput
from drakebots.fem.mesh import read_mesh
from drakebots.model import package_root
from drakebots.skin.file import load_skinned, read_skin
from tests.helpers.scripts import load_script

FLESH, unbraced_share, variant = load_script(
    "quad_variant", "FLESH", "unbraced_share", "variant"
)


def test_meshes_come_along(tmp_path):
    """Plates of the skeleton are files that the SDF names relative to itself."""
    path = variant("beetle", tmp_path / "soft", modulus=0.5)
    there = package_root() / "beetle" / "meshes"
    names = {file.name for file in there.iterdir()}
    assert names
    assert {file.name for file in (path.parent / "meshes").iterdir()} == names
    # Into its own folder nothing is copied over itself.
    again = variant(path, path.parent, modulus=0.5)
    assert load(again).path == path


@pytest.mark.long
def test_unbraced_skin(tmp_path):
    """The trunk's skin is free above a height, and soft where it is far from glue."""
    own = load("monster").path.parent
    mesh, skin = read_mesh(own / "skin.vtu"), read_skin(own / "monster.skin.yaml")
    path = variant("monster", tmp_path / "soft", unbraced=0.34, soles=0.5, servo=13.0)
    robot = load_skinned(path)
    assert 0.30 < unbraced_share(robot) < 0.40
    assert robot.skin_mass == pytest.approx(1070 * mesh.volumes.sum())
    rest, tets = robot.mesh.vertices, robot.mesh.tets
    torso = [v for v, b in zip(robot.glue.vertices, robot.glue.bodies) if b == "torso"]
    assert rest[torso, 2].max() <= 0.34
    soft = robot.mesh.region == FLESH
    assert robot.skin.regions[FLESH].youngs_modulus == 1e5
    # Nothing soft is near glue, and the folds are as they were.
    held = rest[robot.glue.vertices]
    middle = rest[tets[soft]].mean(axis=1)
    assert np.linalg.norm(middle[:, None] - held, axis=2).min() > 0.05
    folds = np.isin(mesh.region, range(1, 13))
    assert (robot.mesh.region[folds] == mesh.region[folds]).all()
    assert robot.skin.servos.stiffness == 13.0
    for old, new in zip(skin.patches, robot.skin.patches):
        np.testing.assert_allclose(np.ptp(new.p_BC, axis=0), [0.05, 0.03, 0])
        np.testing.assert_allclose(new.p_BC.mean(axis=0), old.p_BC.mean(axis=0))


def test_no_glue_left(tmp_path):
    with pytest.raises(InvalidInput, match="all glue of torso is above 0 m"):
        variant("beetle", tmp_path / "loose", unbraced=0.0)
