"""Files from before kinds were unique find theirs."""

from __future__ import annotations

import pytest

from drakebots.results import load_result
from drakebots.results.kinds import unique_kind
from tests.helpers.result_samples import make

OLD = [
    ("hamr.simulation", "simulation", "hamr", {"gait": "trot"}, ["position"]),
    ("legged.simulation", "simulation", "brick", {}, ["position"]),
    ("legged.simulation", "simulation", "hamr", {}, ["position"]),
    ("gecko.simulation", "simulation", "gecko", {}, ["alpha"]),
    ("voxels.simulation", "simulation", "voxel", {}, ["position"]),
    (
        "skin.simulation",
        "simulation",
        "skinned_leg",
        {"system": "skinned", "tracking_error_rad": 0.1},
        ["skin_position"],
    ),
    (
        "quads.track",
        "simulation",
        "beetle",
        {"system": "skinned", "frames_refined": 0, "tracking_error_rad": 0.1},
        ["skin_position"],
    ),
    ("quads.sap_track", "simulation", "cow", {"system": "skinned"}, ["position"]),
    ("hamr.plan", "plan", "hamr", {"rows": 3}, ["voltage"]),
    ("locomotion.plan", "plan", "walker", {"rows": 3}, ["position"]),
    ("voxels.plan", "plan", "voxel", {}, ["node_position"]),
    ("quads.plan", "plan", "cow", {"stages": [], "system": "skinned"}, []),
    ("quads.space_time", "plan", "cow", {"peak_torque": 1.0}, []),
    ("quads.frames", "frame plan", "cow", {}, []),
    ("hamr.track", "tracking", "hamr", {}, []),
    ("gecko.velocity_space", "velocity space", "gecko", {}, []),
    ("voxels.gait_search", "gait search", "voxel", {}, []),
    ("my.kind", "my.kind", "mine", {}, []),
    ("mine", "mine", "mine", {}, []),
]


@pytest.mark.parametrize(("kind", "old", "model", "metrics", "names"), OLD)
def test_old_kinds(kind, old, model, metrics, names):
    assert unique_kind(old, model, metrics, names) == kind


def test_an_old_file_loads(tmp_path):
    """Through the reader: stored as "tracking", read as "hamr.track"."""
    path = make(kind="tracking").save(tmp_path / "old.nc")
    assert load_result(path).kind == "hamr.track"
