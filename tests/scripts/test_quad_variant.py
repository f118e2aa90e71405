"""A changed robot is a model of its own: it loads without the one it came from."""

from quad_variant import variant

from drakebots import load
from drakebots.model import package_root


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
