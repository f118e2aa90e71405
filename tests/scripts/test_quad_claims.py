"""The design of the study of the paper's claims, and what its table says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from drakebots.robots.quads.motion import library_motion
from drakebots.robots.quads.robot import load_quad
from tests.helpers.scripts import is_picture, load_script

FACTORS, design, effects, main, straight_com, table = load_script(
    "quad_claims", "FACTORS", "design", "effects", "main", "straight_com", "table"
)


def test_design_is_orthogonal():
    """Every factor is on in half of the rows, and no two go together."""
    rows = design()
    assert rows.pop("all") == tuple(FACTORS) and rows["today"] == ()
    signs = np.array([[1 if f in on else -1 for f in FACTORS] for on in rows.values()])
    np.testing.assert_array_equal(signs.T @ signs, 8 * np.eye(len(FACTORS)))


def made_up(on, share: float) -> dict:
    played = {"plan": "success", "fell": "", "share": share}
    played |= {"roll_deg": 1.0, "step_back_mm": 0.5}
    margins = {
        k: {"least_margin_mm": v}
        for k, v in (("rigid", 2), ("before", -20), ("after", 1))
    }
    margins["moved_mm"] = 12.0
    fall = played | {"fell": "fell: rolled by 46 degrees off the plan at 0.3 s"}
    fall |= {"plan": "failed"}
    plays = {"ours": played, "mass": fall, "bare": {"refused": "out of reach"}}
    return {"on": list(on), "unbraced_share": 0.35, "cop": margins, **plays}


def test_effects_and_table(tmp_path, capsys):
    """Effects of made-up numbers come back; falls and refusals are said."""
    size = dict(zip(FACTORS, (0.1, -0.2, 0.0, 0.05, 0.0, 0.0)))
    rows = {
        name: made_up(on, 0.9 + sum(size[f] for f in on))
        for name, on in design().items()
    }
    found = effects(rows)
    assert found["share, ours"] == pytest.approx(size)
    assert "share, without skin" not in found
    line = table({"today": rows["today"]})[-1]
    assert line == (
        "| today | 35 % | 0.900 | **falls** 0.3 s (failed) | refused | - "
        "| 2.0, -20.0, 1.0; 12.0 | 1.0, - | 0.5, - |"
    )
    # Rows in the folder are taken as they are.
    for name, row in rows.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "row.json").write_text(json.dumps(row))
    result = main(["-o", str(tmp_path)])
    assert result["effects"] == found
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1]) == result
    assert is_picture(tmp_path / "quad_claims.png")


def test_a_straight_com():
    """It keeps both ends and has no acceleration; feet and footfall stay."""
    motion = library_motion("trot", load_quad("monster"))
    sway = 0.01 * np.sin(np.linspace(0, 2 * np.pi, len(motion)))
    com = motion.com + sway[:, None]
    straight = straight_com(replace(motion, com=com))
    np.testing.assert_allclose(straight.com[[0, -1]], com[[0, -1]], atol=1e-15)
    assert np.abs(np.diff(straight.com, 2, axis=0)).max() < 1e-12
    np.testing.assert_array_equal(straight.feet, motion.feet)
