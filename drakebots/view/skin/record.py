"""See a skinned run in Meshcat: the skeleton through its deforming skin.

    scene = record_skin(result, colour="stress")
    scene.save("run.html")  # one self-contained page

The page plays skin and skeleton by one clock (`view_skin_page`). A served scene has
no such page: there the frames are drawn one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from drakebots.core.errors import InvalidInput
from drakebots.model import Model, model_of
from drakebots.results import Result
from drakebots.view.motion import (
    LOOKS,
    check_playback,
    draw_ground_lines,
    draw_trail,
    look_at_motion,
    play,
    positions_in_order,
    record_motion,
)
from drakebots.view.scene import Scene, make_scene, set_stage
from drakebots.view.skin.colour import (
    ColourScale,
    check_colour,
    colour_scale,
    skin_values,
)
from drakebots.view.skin.live import BOARD, OPACITY, SkinView, draw_scale
from drakebots.view.skin.page import encode, skin_page
from drakebots.view.skin.plan_marks import draw_motion

MAX_FRAMES = 1500
"""Of the skeleton's recording."""

MAX_BYTES = 20_000_000
"""A page is no larger: the skin's frames are thinned until it fits."""

VIEW = (0.35, -0.95, 0.42)
"""Direction of the camera."""

_NEEDED = ("skin_position", "skin_rest", "skin_triangle", "position")


@dataclass(frozen=True)
class SkinScene(Scene):
    """A skinned run in Meshcat.

    Attributes:
        view: draws the skin.
        scale_shown: of its colours; `scale` is the scene's.
        times: of the run (T,) [s]; `q` of the plant at them (T, nq).
        skin_times: of the skin (S,) [s]; its `positions` (S, N, 3) [m] and
            `values` (S, N) in SI.
        slow: how many times slower than real to play.
        rate: frames of the skeleton a second of playing [Hz].
    """

    view: SkinView
    scale_shown: ColourScale
    times: np.ndarray = field(repr=False)
    q: np.ndarray = field(repr=False)
    skin_times: np.ndarray = field(repr=False)
    positions: np.ndarray = field(repr=False)
    values: np.ndarray = field(repr=False)
    slow: float
    rate: float

    @property
    def length(self) -> float:
        """Duration of the playback [s]."""
        return self.slow * float(self.times[-1] - self.times[0])

    def begin(self) -> None:
        """Draws the colour scale, which only a served scene has."""
        draw_scale(self, self.scale_shown, towards=VIEW)

    def at(self, elapsed: float) -> None:
        """Draws the time `elapsed` [s] after the start of the playback.

        Played again and again, with half a second's rest in between.
        """
        elapsed = min(elapsed % (self.length + 0.5), self.length)
        moment = self.times[0] + elapsed / self.slow
        k = int(np.abs(self.skin_times - moment).argmin())
        # A pose between two frames of the skin would leave it.
        self.show(self._pose(self.skin_times[k]))
        self.view.show(self.positions[k], self.values[k])

    def html(self) -> str:
        """One self-contained page of at most MAX_BYTES that plays the run.

        Raises:
            InvalidInput: when the skin is too large for two frames of it to fit.
        """
        # What a page shows until its animation runs.
        self.show(self._pose(self.times[0]))
        self.view.show(self.positions[0], self.values[0])
        self.meshcat.Delete(BOARD)  # the page has its own scale
        self.meshcat.PublishRecording()
        page = self.meshcat.StaticHtml()
        frames = self._sampled()
        shown = self.view.vertices
        tones = self.scale_shown.fraction(self.values[:, shown])
        while True:
            stream = encode(self.positions[np.ix_(frames, shown)], tones[frames])
            whole = skin_page(
                page,
                stream,
                self.slow * (self.skin_times[frames] - self.times[0]),
                self.scale_shown,
                path=self.view.path,
                caption=self.caption,
            )
            if len(whole) <= MAX_BYTES:
                return whole
            if len(frames) <= 2:
                raise InvalidInput(
                    f"the page takes {len(whole) / 1e6:.0f} MB with two frames of "
                    f"the skin, more than {MAX_BYTES / 1e6:.0f} MB; use a coarser mesh"
                )
            frames = np.unique(np.append(frames[::2], frames[-1]))

    def _pose(self, moment: float) -> np.ndarray:
        return np.array([np.interp(moment, self.times, column) for column in self.q.T])

    def _sampled(self) -> np.ndarray:
        """Frames of the skin, no more than the skeleton has."""
        count = len(self.skin_times)
        most = max(2, round(self.rate * self.length) + 1)
        if count <= most:
            return np.arange(count)
        return np.unique(np.linspace(0, count - 1, most).round().astype(int))


def record_skin(
    result: Result,
    *,
    colour: str | None = None,
    opacity: float = OPACITY,
    model: Model | None = None,
    slow: float | None = None,
    frames_per_second: float = 30.0,
    port: int | None = None,
) -> Scene:
    """Records the motion of a skinned robot in a new Meshcat scene.

    Shown are the skeleton, the skin half-transparent over it in the colours of a
    scale from zero, and the path of a free base on the ground. A result without the
    skin's shapes is shown as its skeleton, by :func:`drakebots.view.record_motion`.

    Args:
        result: with position, and the skin: skin_position, skin_rest,
            skin_triangle and, for its colours, skin_stress.
        colour: "stress" (von Mises) or "displacement" (from the shape at rest);
            None for the stress if the result has it.
        opacity: opacity of the skin within 0..1.
        model: the skeleton; found by the result's name if None.
        slow: how many times slower than real; None for real time.
        frames_per_second: frames per second of the skeleton, and at most of the skin.
        port: port of the server.

    Raises:
        UnknownName: for a colour that is none.
        InvalidInput: for a result without a moving skin, or an option that is
            not > 0.
    """
    if "skin_position" not in result.data:
        if colour is not None:
            raise InvalidInput("the result has no skin to colour; leave the colour out")
        return record_motion(
            result,
            model=model,
            slow=slow,
            frames_per_second=frames_per_second,
            port=port,
        )
    data = check_skin(result)
    if colour is None:
        colour = "stress" if "skin_stress" in data else "displacement"
    check_colour(colour)
    slow = 1.0 if slow is None else slow
    check_playback(slow=slow, frames_per_second=frames_per_second)
    if not 0 <= opacity <= 1:
        raise InvalidInput(f"opacity must be within 0..1, got {opacity}")
    values = skin_values(data, colour)
    scale = colour_scale(colour, values)
    places = data.skin_position.transpose("skin_time", "vertex", "axis").values
    if not np.isfinite(places).all():
        raise InvalidInput("the skin's positions must be finite")
    scene = make_scene(model or model_of(result), ground_height=0.0, port=port)
    q = positions_in_order(scene, data)
    triangles = data.skin_triangle.values
    view = SkinView(
        scene.meshcat, data.skin_rest.values, triangles, scale, opacity=opacity
    )
    stage = _stage_around(scene, places[:, view.vertices])
    times = data.time.values
    length = slow * float(times[-1] - times[0])
    count = int(np.clip(np.ceil(length * frames_per_second) + 1, 2, MAX_FRAMES))
    whole = SkinScene(
        **vars(stage),
        plant=scene.plant,
        diagram=scene.diagram,
        context=scene.context,
        view=view,
        scale_shown=scale,
        times=times,
        q=q,
        skin_times=data.skin_time.values,
        positions=places,
        values=values,
        slow=slow,
        rate=(count - 1) / length,
    )
    if "base_position" in data:
        draw_ground_lines(whole, data)
        draw_trail(whole, data)
    if "desired_foot" in data:
        draw_motion(whole, data)
    _record(whole, count)
    _look(whole)
    return whole


def check_skin(result: Result) -> xr.Dataset:
    """The data of a skinned run.

    Raises:
        InvalidInput: when there is no skin, or no motion of it.
    """
    data = result.data
    for name in _NEEDED:
        if name not in data:
            raise InvalidInput(f"the result has no {name!r}: no skinned run to show")
    for name in ("time", "skin_time"):
        if data.sizes.get(name, 0) < 2:
            raise InvalidInput("the result holds no motion to show")
    return data


def _stage_around(scene: Scene, places: np.ndarray):
    """The scene scaled for skeleton and skin, on the ground."""
    low = np.minimum(scene.low, places[0].min(axis=0))
    high = np.maximum(scene.high, places[0].max(axis=0))
    ground = min(0.0, float(low[2]))
    return set_stage(scene.meshcat, low, high, ground)


def _record(scene: SkinScene, count: int) -> None:
    moments = np.linspace(*scene.times[[0, -1]], count)

    def show(frame: int, time: float) -> None:
        scene.show(scene._pose(moments[frame]), time)

    # Published with the page only: a served scene is drawn by `at`, which a
    # playing animation would overrule.
    start, slow = scene.times[0], scene.slow
    play(scene, scene.rate, count, show, start=start, slow=slow, publish=False)


def _look(scene: SkinScene) -> None:
    skins = scene.positions[:: -(-len(scene.positions) // LOOKS), scene.view.vertices]
    look_at_motion(scene, scene.q, VIEW, skins.reshape(-1, 3))
