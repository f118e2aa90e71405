"""Gymnasium environments of the robots (`pip install gymnasium`).

    import gymnasium
    import drakebots.envs            # registers them

    env = gymnasium.make("drakebots/Gecko-v0", render_mode="rgb_array")
    observation, info = env.reset(seed=0)
    action = env.action_space.sample()
    observation, reward, terminated, truncated, info = env.step(action)

Observations are in SI, actions within -1..1 of the range that the environment's
`acted` reports; :mod:`~drakebots.envs.base` has what they share. Their tasks are
examples: derive from them for others.
"""

from typing import TYPE_CHECKING

from drakebots.core.installed import extra, version_of
from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.envs.base import Quantity, RobotEnv
    from drakebots.envs.gecko import GeckoEnv
    from drakebots.envs.hamr import HamrEnv
    from drakebots.envs.skinned_leg import SkinnedLegEnv
    from drakebots.envs.voxel import VoxelEnv

__all__, __getattr__, __dir__ = lazy_face(__name__)

STEPS = {"Hamr": 200, "Gecko": 100, "SkinnedLeg": 100, "Voxel": 64}
"""Steps of an episode before it is cut off."""

if version_of("gymnasium") is not None:  # an environment in use says so
    for _name, _steps in STEPS.items():
        extra("gymnasium").register(
            f"drakebots/{_name}-v0", f"{__name__}:{_name}Env", max_episode_steps=_steps
        )
