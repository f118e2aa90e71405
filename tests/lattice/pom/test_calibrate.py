"""Calibration: what was put into synthetic markers comes out again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakebots.core.errors import FileProblem, InvalidInput, UnknownName
from drakebots.lattice.pom import (
    Control,
    Gains,
    PlanesOfMotion,
    body_frame,
    calibrate,
)
from drakebots.lattice.pom.calibrate import _projected
from drakebots.lattice.shape import block
from drakebots.robots.voxels import paper_gait
from drakebots.robots.voxels.model import ACTUATORS, MARKERS

MODEL = PlanesOfMotion(block(2, 2, 2), ACTUATORS, list(MARKERS.values()))
REST = MODEL.lattice.positions[MODEL.effector_nodes]


def controls(frames=160, seed=0):
    """The gait with a little noise, so that all four gains can be told apart."""
    poses = paper_gait().poses
    rng = np.random.default_rng(seed)
    u = np.repeat(poses, frames // len(poses), axis=0)
    return u + rng.normal(size=u.shape) * 4e-4


def walked(body, turn=2.0, travel=0.1):
    """Positions in the body (T, n, D) as the lab sees a robot that walks and turns."""
    angle = np.linspace(0.3, 0.3 + turn, len(body))
    lab = body.copy()
    lab[..., 0] = np.cos(angle)[:, None] * body[..., 0]
    lab[..., 0] -= np.sin(angle)[:, None] * body[..., 1]
    lab[..., 1] = np.sin(angle)[:, None] * body[..., 0]
    lab[..., 1] += np.cos(angle)[:, None] * body[..., 1]
    return lab + np.linspace(0, travel, len(body))[:, None, None], angle


@settings(max_examples=20, deadline=None)
@given(
    st.tuples(*[st.floats(0.3, 1.5)] * 4),
    st.sampled_from([2, 3]),
    st.floats(-6.0, 6.0),
    st.integers(0, 99),
)
def test_gains_come_back_exactly(gains, size, turn, seed):
    u = controls(seed=seed)
    lab, _ = walked(MODEL.positions(u * gains)[..., :size], turn)
    fit = calibrate(MODEL, u, lab)
    assert np.allclose(fit.gains, gains, atol=1e-7)
    assert fit.residual < 1e-9
    assert np.allclose(fit.predict(u), fit.body.displacement, atol=1e-9)
    assert min(gains) - 0.02 <= fit.ideality <= max(gains) + 0.02


def test_offsets_and_noise():
    u, rng = controls(), np.random.default_rng(3)
    gains = np.array([0.9, 0.8, 0.7, 1.0])
    off = _projected(rng.normal(size=(4, 2)) * 5e-4, REST[:, :2])
    lab, _ = walked(MODEL.positions(u * gains)[..., :2] + off)
    noise = 1e-4
    fit = calibrate(MODEL, u, lab + rng.normal(size=lab.shape) * noise)
    assert (np.abs(fit.gains - gains) < 4 * fit.deviation + 5e-3).all()
    assert (fit.deviation < 5e-3).all()
    assert np.allclose(fit.offsets, off, atol=1e-4)
    assert fit.residual < 1.2 * noise < fit.uncalibrated
    assert "ideality 0.8" in fit.report() and "blue: gain" in fit.report()


@pytest.mark.parametrize("size", [2, 3])
def test_deviations_are_those_of_repeated_recordings(size):
    """With two markers, of which place and turn of the body take most."""
    planes = Control((2, 1, 1), "z"), Control((1, 2, 1), "z")
    model = PlanesOfMotion(block(2, 2, 2), planes, [(1, 3, 4), (3, 1, 4)])
    rng, true = np.random.default_rng(0), np.array([0.9, 0.7])
    u, off = 5e-3 * rng.uniform(-1, 1, (40, 2)), []
    clean = model.positions(u * true)[..., :size]
    for _ in range(60):
        fit = calibrate(model, u, clean + rng.normal(size=clean.shape) * 1e-4)
        off.append((fit.gains - true) / fit.deviation)
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(1.0, abs=0.2)


def test_body_frame_takes_travel_and_turns_out():
    u = np.zeros((50, 4))
    lab, angle = walked(MODEL.positions(u)[..., :2], turn=20.0)
    body = body_frame(lab, REST[:, :2])
    assert np.abs(body.displacement).max() < 1e-12
    assert np.allclose(np.diff(body.turn), np.diff(angle))
    assert np.allclose(body.centre, lab.mean(axis=1))


def test_raw_and_rescaled_amplitudes():
    """The authors' rule, here in complex numbers; we report it only."""
    u = controls()
    lab, _ = walked(MODEL.positions(u * 0.5)[..., :2], turn=0.1)
    body = body_frame(lab, REST[:, :2])
    x = lab[..., 0] + 1j * lab[..., 1]
    x -= x.mean(axis=1, keepdims=True)
    angle = np.unwrap(np.angle(x), axis=0)
    y = abs(x) * np.exp(1j * (angle - angle.mean(axis=1, keepdims=True)))
    y -= y.mean(axis=0)
    wanted = abs(x).var(axis=0).mean() / abs(y).var(axis=0).mean()
    assert body.rescale == pytest.approx(wanted, rel=1e-9) and wanted > 1
    # The raw fit tells the true amplitude, whatever the rescaling.
    assert calibrate(MODEL, u, lab).ideality == pytest.approx(0.5, abs=1e-3)


def test_a_plane_the_markers_do_not_show_has_no_gain():
    controls_ = [*ACTUATORS, Control((2, 1, 1), 1, "hidden")]
    model = PlanesOfMotion(block(2, 2, 2), controls_, list(MARKERS.values()))
    u = np.column_stack([controls(), np.ones(160)])
    lab, _ = walked(model.positions(u)[..., :2])
    fit = calibrate(model, u, lab)
    assert np.isnan(fit.gains[4]) and np.allclose(fit.gains[:4], 1)


def test_gains_are_read_back_by_name_and_place(tmp_path):
    """Of the robot's actuators by their names, and of a recording's by their places."""
    gains, u = np.array([0.5, 0.45, 0.55, 0.4]), controls()
    lab, _ = walked(MODEL.positions(u * gains)[..., :2])
    bare = [Control(c.node, c.axis) for c in ACTUATORS]
    for of in (ACTUATORS, bare):
        model = PlanesOfMotion(block(2, 2, 2), of, list(MARKERS.values()))
        path = calibrate(model, u, lab).save(tmp_path / "gains.json")
        found = Gains.from_file(str(path)).of(ACTUATORS)
        assert found == pytest.approx(gains, abs=1e-6)
    with pytest.raises(UnknownName, match="of the calibration"):
        Gains.from_file(path).of([Control((1, 2, 3), "z")])
    with pytest.raises(InvalidInput, match="no marker shows it"):
        Gains({"(2, 1, 1) z": None}).of(ACTUATORS[:1])
    for text in ("{}", "[1]", "no: [json"):
        path.write_text(text)
        with pytest.raises(FileProblem):
            Gains.from_file(str(path))


def test_two_markers_do_not_tell_four_planes_apart():
    """Of two markers only their distance is left, and the bare gait has rank two."""
    u = np.repeat(paper_gait().poses, 5, axis=0)
    model = PlanesOfMotion(block(2, 2, 2), ACTUATORS, [(1, 1, 4), (3, 3, 4)])
    lab, _ = walked(model.positions(u)[..., :2])
    with pytest.raises(InvalidInput, match="cannot be told apart"):
        calibrate(model, u, lab)


def test_refused():
    u = controls()
    lab, _ = walked(MODEL.positions(u)[..., :2])
    with pytest.raises(InvalidInput, match="160 rows of controls, 159 frames"):
        calibrate(MODEL, u, lab[1:])
    lost = lab.copy()
    lost[7, 2, 0] = np.nan
    with pytest.raises(InvalidInput, match="marker 2 is lost in frame 7"):
        calibrate(MODEL, u, lost)
    with pytest.raises(InvalidInput, match="one column per marker"):
        calibrate(MODEL, u, lab[:, :3])
    with pytest.raises(InvalidInput, match="no control moves any marker"):
        calibrate(MODEL, 0 * u, lab)
    with pytest.raises(InvalidInput, match="n >= 2"):
        body_frame(lab[:, :1], REST[:1, :2])
    middle = np.vstack([REST[:, :2], REST[:, :2].mean(axis=0)])
    with pytest.raises(InvalidInput, match="marker 4 lies in the middle"):
        body_frame(np.repeat(middle[None], 3, axis=0), middle)
