"""The velocity space by the pose step, and its polynomial."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.results import load_result
from drakebots.robots.gecko import Problem, Simulation, motion_of, simulate


def test_the_velocity_space_has_the_check_values(space):
    motion = space.data.motion
    at = motion.sel(q1=np.radians(50), q2=-0.5, method="nearest").values
    assert np.degrees(at[0]) == pytest.approx(22.94, abs=0.005)
    assert 100 * at[1] == pytest.approx(6.77, abs=0.005)


def test_the_velocity_space_is_mirror_symmetric_in_rotation(space):
    rotation = space.data.motion.sel(component="rotation").values
    assert np.allclose(rotation, -rotation[:, ::-1], atol=1e-4)


def test_rotation_grows_with_steering_as_the_paper_says(space):
    """Positive steering turns right, more of it more so."""
    rotation = space.data.motion.sel(component="rotation").values
    assert (np.diff(rotation, axis=1) < 0).all()


def test_the_fit_is_that_of_numpy(space):
    """The same least squares by another way."""
    q1, q2 = np.meshgrid(space.data.q1, space.data.q2, indexing="ij")
    q1, q2 = np.degrees(q1).ravel(), q2.ravel()
    basis = np.stack([q1**0, q1, q2, q1**2, q2**2, q1 * q2], axis=1)
    motion = np.degrees(space.data.motion.values[..., 0]).ravel()
    expected = np.linalg.lstsq(basis, motion, rcond=None)[0]
    found = space.metrics["coefficients"]["rotation"]
    names = ("1", "q1", "q2", "q1^2", "q2^2", "q1 q2")
    assert np.allclose([found[n] for n in names], expected, atol=1e-6)
    rms = np.sqrt(np.mean((motion - basis @ expected) ** 2))
    assert space.metrics["residual_rms_rotation_deg"] == pytest.approx(rms, rel=1e-9)


def test_a_stored_velocity_space_gives_its_polynomial_back(space, tmp_path):
    result = load_result(space.save(tmp_path / "space.nc"))
    one, other = motion_of(space), motion_of(result)
    assert np.allclose(one.motion(1.2, 0.3), other.motion(1.2, 0.3), atol=1e-15)
    assert motion_of(result, 3).coefficients.shape == (3, 4, 4)
    with pytest.raises(InvalidInput, match="velocity"):
        motion_of(simulate(Simulation(half_cycles=1)))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"q1": (1.0, 0.9)}, "increase"),
        ({"q2": ()}, "increase"),
        ({"q1": (0.0, 1.0)}, "0..180"),
        ({"order": 5}, "6 values"),
        ({"settle": -1}, "settle"),
        ({"settle": 1000}, "<= 100"),
    ],
)
def test_bad_velocity_spaces_are_named(options, words):
    with pytest.raises(InvalidInput, match=words):
        Problem(**options)
