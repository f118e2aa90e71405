"""The example of a skinned robot among other bodies runs, and its camera sees them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.image import imread

from tests.helpers.rendering import needs_camera
from tests.helpers.scripts import ROOT


@pytest.mark.long
def test_example(tmp_path):
    needs_camera()
    picture = tmp_path / "scene.png"
    command = [sys.executable, str(ROOT / "examples" / "skin_in_a_scene.py"), picture]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    height, force = float(last.split()[4]), float(last.split()[8])
    assert 330 < height < 400 and force > 0  # the ball lies on the back
    red, green, blue = np.moveaxis(imread(picture)[:, :, :3], 2, 0)
    assert ((red > 0.5) & (green < 0.3)).sum() > 300  # ball
    assert ((red > blue + 0.1) & (green > 0.3)).sum() > 10_000  # skin
