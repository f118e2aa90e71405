"""A model without control: it falls onto the ground and rests on its feet."""

import numpy as np
import pytest

from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.model import load
from drakebots.results import load_result
from drakebots.robots.passive import PassiveSimulation, simulate_passive


def test_a_brick_falls_and_rests(tmp_path):
    heard = []
    problem = PassiveSimulation("brick", duration=0.4, friction=0.3)
    result = simulate_passive(problem, progress=lambda *news: heard.append(news))
    assert result.ok and result.kind == "passive.simulation"
    assert heard[-1] == ("simulate", 0.4, 0.4)
    feet = result.data.foot_position.values[..., 2]
    assert feet[0].min() == pytest.approx(1e-3) and abs(feet[-1].min()) < 1e-3
    assert result.provenance["options"]["friction"] == 0.3
    assert result.provenance["options"]["model"].endswith("brick.sdf")
    assert load_result(result.save(tmp_path / "fall.nc")) == result


def test_a_loaded_model_at_a_height():
    problem = PassiveSimulation(load("brick"), duration=0.05, height=2.0)
    base = simulate_passive(problem).data.base_position.values
    assert np.allclose(base[0], [0, 0, 2.0])
    t = 0.05
    assert base[-1, 2] == pytest.approx(2.0 - 0.5 * 9.81 * t**2, abs=1e-3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"duration": 0},
        {"duration": np.nan},
        {"time_step": -1},
        {"log_period": np.inf},
        {"friction": -0.1},
        {"height": np.nan},
        {"time_limit": 0},
    ],
)
def test_refused(wrong):
    (name,) = wrong
    with pytest.raises(InvalidInput, match=f"^{name} must be"):
        PassiveSimulation("brick", **wrong)


def test_unknown_model():
    with pytest.raises(UnknownName, match="brick"):
        simulate_passive(PassiveSimulation("brik"))
