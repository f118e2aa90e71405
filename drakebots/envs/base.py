"""Base of all environments: quantities with units, seeds, pictures, bad endings.

An environment says what it observes and what acts on it as quantities,

    observed = (Quantity("speed", 3, "m/s", -1.0, 1.0), ...)
    acted = (Quantity("voltage", 8, "V", 0.0, 225.0), ...)

and answers :meth:`RobotEnv.start`, :meth:`RobotEnv.act` and :meth:`RobotEnv.observe`.
Observations are in SI and clipped to the bounds of their quantities, so that
`(observation - low) / (high - low)` scales them for a network. Actions are within
-1..1, which stands for the bounds of theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydrake.geometry import (
    ClippingRange,
    ColorRenderCamera,
    MakeRenderEngineVtk,
    RenderCameraCore,
    RenderEngineVtkParams,
    SceneGraph,
)
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.systems.framework import Context
from pydrake.systems.sensors import CameraInfo

from drakebots.core.checks import check_value, one_of, optional
from drakebots.core.errors import InvalidInput, NoSolution, one_line
from drakebots.core.installed import extra
from drakebots.core.lazy import late
from drakebots.view import axes_of_view

if TYPE_CHECKING:
    import gymnasium
    from matplotlib.figure import Figure
else:
    gymnasium = extra("gymnasium")

agg = late("matplotlib.backends.backend_agg")

WIDTH, HEIGHT = 480, 360
"""Size of pictures [pixels]."""


@dataclass(frozen=True)
class Quantity:
    """A part of an observation or of an action.

    Attributes:
        name: its name.
        size: number of its components.
        unit: of its components, SI.
        low, high: bounds of each component.
    """

    name: str
    size: int
    unit: str
    low: float
    high: float


class RobotEnv(gymnasium.Env, ABC):
    """An environment of quantities in SI. Equal seeds and actions give equal episodes.

    Args:
        render_mode: "rgb_array" for pictures by `render()`, or None.

    Attributes:
        observed, acted: quantities of observations and actions, in their order.
        period: time from one step to the next [s].
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}
    observed: ClassVar[tuple[Quantity, ...]]
    acted: ClassVar[tuple[Quantity, ...]]
    period: float

    def __init__(self, render_mode: str | None = None):
        mode = optional(one_of("render mode", self.metadata["render_modes"]))
        self.render_mode = check_value("render_mode", render_mode, mode)
        self.metadata = {**self.metadata, "render_fps": max(1, round(1 / self.period))}
        low, high = _bounds(self.observed)
        # Observations are clipped as float32 too, so none is beyond the space.
        self._low, self._high = low.astype(np.float32), high.astype(np.float32)
        self.observation_space = gymnasium.spaces.Box(self._low, self._high)
        size = sum(quantity.size for quantity in self.acted)
        self.action_space = gymnasium.spaces.Box(-1, 1, (size,), np.float32)
        self._least, self._most = _bounds(self.acted)
        self._observed: np.ndarray | None = None

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        """Starts an episode; see :meth:`gymnasium.Env.reset`. There are no options."""
        super().reset(seed=seed)
        if options:
            raise InvalidInput(f"{type(self).__name__}.reset has no options")
        info = self.start(self.np_random)
        self._observed = self._clipped()
        return self._observed.copy(), dict(info)

    def step(self, action):
        """One period; see :meth:`gymnasium.Env.step`.

        A simulation that fails ends the episode: terminated, with `info["failed"]`, the
        observation before it, and no reward.

        Raises:
            InvalidInput: for an action of another shape or with NaN, or before the
                first reset.
        """
        action = np.asarray(action, float)
        if self._observed is None:
            raise InvalidInput("reset the environment before its first step")
        if action.shape != self.action_space.shape or np.isnan(action).any():
            raise InvalidInput(
                f"an action needs {self.action_space.shape[0]} numbers within -1..1, "
                f"got {action.tolist()}"
            )
        share = 0.5 * (np.clip(action, -1, 1) + 1)
        values = self._least + share * (self._most - self._least)
        try:
            reward, terminated, info = self.act(values)
            self._observed = self._clipped()
        except (NoSolution, RuntimeError, SystemExit) as error:  # the last two: Drake's
            return self._observed.copy(), 0.0, True, False, {"failed": one_line(error)}
        observed = self._observed.copy()
        return observed, float(reward), bool(terminated), False, dict(info)

    def render(self) -> np.ndarray | None:
        """A picture (HEIGHT, WIDTH, 3) of bytes; None without a render mode."""
        return None if self.render_mode is None else self.picture()

    def named(self, observation) -> dict[str, np.ndarray]:
        """The parts of an observation by name."""
        ends = np.cumsum([quantity.size for quantity in self.observed])[:-1]
        names = [quantity.name for quantity in self.observed]
        return dict(zip(names, np.split(np.asarray(observation), ends)))

    def _clipped(self) -> np.ndarray:
        observed = np.concatenate([np.atleast_1d(part) for part in self.observe()])
        if not np.isfinite(observed).all():
            raise NoSolution("the state is not finite")
        return np.clip(observed.astype(np.float32), self._low, self._high)

    # What each environment does.

    @abstractmethod
    def start(self, random: np.random.Generator) -> Mapping[str, Any]:
        """Places the robot and draws the task; returns `info`."""

    @abstractmethod
    def act(self, values: np.ndarray) -> tuple[float, bool, Mapping[str, Any]]:
        """Simulates one period with values of `acted`, in their units.

        Returns:
            The reward of the step; whether the task has ended, well or badly; and
            further facts, in SI, for `info`.

        Raises:
            NoSolution: when the simulation fails.
        """

    @abstractmethod
    def observe(self) -> list[np.ndarray | float]:
        """The parts of the observation, as `observed` lists them."""

    @abstractmethod
    def picture(self) -> np.ndarray:
        """A picture of the present state (HEIGHT, WIDTH, 3) of bytes."""


def _bounds(quantities) -> tuple[np.ndarray, np.ndarray]:
    bounds = [(quantity.low, quantity.high) for quantity in quantities]
    return np.repeat(bounds, [quantity.size for quantity in quantities], axis=0).T


def figure_picture(figure: Figure) -> np.ndarray:
    """A figure of matplotlib, of any size in inches, as a picture."""
    figure.set_dpi(100)
    figure.set_size_inches(WIDTH / 100, HEIGHT / 100)
    canvas = agg.FigureCanvasAgg(figure)
    canvas.draw()
    return np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])


class Camera:
    """Pictures of a scene by Drake's VTK renderer.

    Args:
        scene_graph: of a diagram that is not built yet.
    """

    def __init__(self, scene_graph: SceneGraph):
        self._scene = scene_graph
        scene_graph.AddRenderer("camera", MakeRenderEngineVtk(RenderEngineVtkParams()))

    def picture(self, root: Context, eye, at) -> np.ndarray:
        """A picture (HEIGHT, WIDTH, 3) of bytes.

        Args:
            root: context of the diagram.
            eye, at: places of the camera and of its target (3,), in the unit of
                length of the plant.
        """
        eye, at = np.asarray(eye, float), np.asarray(at, float)
        distance = np.linalg.norm(at - eye)
        right, up, back = axes_of_view(eye - at)
        R_WC = RotationMatrix(np.column_stack([right, -up, -back]))
        size = CameraInfo(WIDTH, HEIGHT, 0.7)
        seen = ClippingRange(0.01 * distance, 100 * distance)
        core = RenderCameraCore("camera", size, seen, RigidTransform())
        context = self._scene.GetMyContextFromRoot(root)
        query = self._scene.get_query_output_port().Eval(context)
        camera, world = ColorRenderCamera(core, False), self._scene.world_frame_id()
        image = query.RenderColorImage(camera, world, RigidTransform(R_WC, eye))
        return np.ascontiguousarray(np.asarray(image.data)[..., :3])
