"""See a skinned run in Meshcat: the skeleton through its deforming skin.

    scene = record_skin(result, colour="stress")
    scene.save("run.html")  # one self-contained page

The page plays skin and skeleton by one clock. A served scene has
no such page: there the frames are drawn one after the other.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from pydrake.geometry import Rgba

from drakebots.core.errors import InvalidInput
from drakebots.formats import model_of
from drakebots.model import Model
from drakebots.multibody import Terrain, polygon
from drakebots.results import Result, require
from drakebots.view.marks import LoggedForces
from drakebots.view.motion import (
    LOOKS,
    MAX_FRAMES,
    draw_ground,
    frame_times,
    look_at_motion,
    play,
    positions_in_order,
    record_motion,
)
from drakebots.view.page import at_end, linear_rgb
from drakebots.view.scene import ROOT, Scene, make_scene, set_stage
from drakebots.view.skin.live import (
    BOARD,
    OPACITY,
    SkinView,
    colour_scale,
    draw_scale,
    skin_values,
)

MAX_BYTES = 20_000_000
"""A page is no larger: the skin's frames are thinned until it fits."""

VIEW = (0.35, -0.95, 0.42)
"""Direction of the camera."""

_NEEDED = "skin_position skin_rest skin_triangle position"


class SkinScene(Scene):
    """A skinned run in Meshcat, scaled for skeleton and skin, on the ground.

    Args:
        scene: of the skeleton.
        data: of the run.
        colour, opacity: as of :func:`record_skin`.
        slow, rate: see below.

    Attributes:
        view: draws the skin.
        times: of the run (T,) [s]; `q` of the plant at them (T, nq).
        skin_times: of the skin (S,) [s]; its `positions` (S, N, 3) [m] and
            `values` (S, N) in SI.
        slow: factor by which to play slower than real time.
        rate: frames of the skeleton a second of playing [Hz].
        arrows: forces of the ground at the times of the run.
    """

    def __init__(
        self,
        scene: Scene,
        data: xr.Dataset,
        colour: str | None,
        opacity: float,
        *,
        slow: float,
        rate: float,
    ):
        if colour is None:
            colour = "stress" if "skin_stress" in data else "displacement"
        self.values = skin_values(data, colour)
        scale = colour_scale(colour, self.values)
        places = data.skin_position.transpose("skin_time", "vertex", "axis").values
        if not np.isfinite(places).all():
            raise InvalidInput("the skin's positions must be finite")
        rest, triangles = data.skin_rest.values, data.skin_triangle.values
        self.view = SkinView(scene.meshcat, rest, triangles, scale, opacity=opacity)
        first = places[0, self.view.vertices]
        low = np.minimum(scene.low, first.min(axis=0))
        high = np.maximum(scene.high, first.max(axis=0))
        stage = set_stage(scene.meshcat, low, high, min(0.0, float(low[2])))
        stage.caption.scale = scale
        super().__init__(**vars(scene) | vars(stage))
        self.times, self.q = data.time.values, positions_in_order(scene, data)
        self.skin_times, self.positions = data.skin_time.values, places
        self.arrows, self.slow, self.rate = LoggedForces(self, data), slow, rate

    @property
    def length(self) -> float:
        """Duration of the playback [s]."""
        return self.slow * float(self.times[-1] - self.times[0])

    def begin(self) -> None:
        """Draws the colour scale, which only a served scene has."""
        draw_scale(self, self.view.scale, towards=VIEW)

    def at(self, elapsed: float) -> None:
        """Draws the time `elapsed` [s] after the start of the playback.

        Played again and again, with half a second's rest in between.
        """
        elapsed = min(elapsed % (self.length + 0.5), self.length)
        moment = self.times[0] + elapsed / self.slow
        k = int(np.abs(self.skin_times - moment).argmin())
        # A pose between two frames of the skin would leave it.
        self.show(self._pose(self.skin_times[k]))
        self.arrows.show(int(np.abs(self.times - self.skin_times[k]).argmin()))
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
        page = super().html()
        frames = self._sampled()
        shown, scale = self.view.vertices, self.view.scale
        tones = scale.fraction(self.values[:, shown])
        times = self.slow * (self.skin_times - self.times[0])
        look = scale.palette(), self.view.path
        while True:
            stream = encode(self.positions[np.ix_(frames, shown)], tones[frames])
            whole = with_skin(page, *stream, times[frames], *look)
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
        last = len(self.skin_times) - 1
        most = max(2, round(self.rate * self.length) + 1)
        frames = np.linspace(0, last, min(last + 1, most))
        return np.unique(frames.round().astype(int))


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
        slow: factor by which it plays slower than real time; None for real time.
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
        playback = {"frames_per_second": frames_per_second, "port": port}
        return record_motion(result, model=model, slow=slow, **playback)
    slow = 1.0 if slow is None else slow
    data = result.data
    require(data, _NEEDED, "skinned run to show")
    require(data, "", "motion to show", time=2, skin_time=2)
    rate, moments = frame_times(data.time.values, slow, frames_per_second, MAX_FRAMES)
    scene = make_scene(model or model_of(result), ground_height=0.0, port=port)
    whole = SkinScene(scene, data, colour, opacity, slow=slow, rate=rate)
    terrain = draw_ground(whole, result)
    if "desired_foot" in data:
        draw_requested(whole, data, terrain)

    def show(frame: int, time: float) -> None:
        whole.show(whole._pose(moments[frame]), time)
        whole.arrows.show(int(np.abs(whole.times - moments[frame]).argmin()), time)

    # Published with the page only: a served scene is drawn by `at`, which a
    # playing animation would overrule.
    start = whole.times[0]
    play(whole, rate, len(moments), show, start=start, slow=slow, publish=False)
    skins = whole.positions[:: -(-len(whole.positions) // LOOKS), whole.view.vertices]
    look_at_motion(whole, whole.q, VIEW, skins.reshape(-1, 3))
    return whole


# --- the requested motion -----------------------------------------------------

MARKS = f"{ROOT}/motion"
RED, BLUE = Rgba(0.85, 0.12, 0.1), Rgba(0.1, 0.3, 0.85)
GREEN, CYAN = Rgba(0.1, 0.65, 0.2), Rgba(0.1, 0.65, 0.7)
MOMENTS = 6
"""Number of times at which the support polygon is drawn."""

_ABOVE = 2e-3
"""Height at which what lies on the ground is drawn [m]."""


def draw_requested(scene: Scene, data: xr.Dataset, terrain: Terrain) -> None:
    """Draws what a plan asks of its feet, and of more where the dataset holds it.

    Paths of the feet are red, of the COM blue, of the COP on the ground green; support
    polygons are drawn as outlines at some times, on the terrain.
    """

    def line(name: str, meaning: str, points: np.ndarray, colour: Rgba) -> None:
        on_ground = points.shape[1] == 2
        points = points[np.isfinite(points).all(axis=1)]
        if on_ground:
            points = np.column_stack([points, terrain.heights(*points.T) + _ABOVE])
        if len(points) > 1:
            width = 2.0 if on_ground else 3.0
            scene.meshcat.SetLine(f"{MARKS}/{name}", points.T, width, colour)
            scene.caption.add(colour, meaning)

    for k, foot in enumerate(data.foot.values):
        asked = data.desired_foot.values[:, k]
        line(f"foot/{foot}", "requested paths of the feet", asked, RED)
    if "desired_com" in data:
        asked = data.desired_com.values
        line("com", "requested path of the centre of mass", asked, BLUE)
    # The COP of the space-time program is smooth; that of single steps is not.
    name = next((n for n in ("planned_cop", "cop") if n in data), None)
    if name is not None:
        line("cop", "path of the centre of pressure", data[name].values, GREEN)
    for k, corners in support_polygons(data).items():
        outline = np.vstack([corners, corners[:1]])
        line(f"support/{k}", "support polygons at some times", outline, CYAN)


def support_polygons(data: xr.Dataset) -> dict[int, np.ndarray]:
    """Convex hulls (h, 2) [m] of the patches on the ground, by sample.

    One for each change of the feet on the ground, at most `MOMENTS` of them.
    """
    if "contact" not in data or "patch_position" not in data:
        return {}
    contact = data.contact.values > 0
    stems = [str(p).replace("/", "_").rpartition("_")[0] for p in data.patch.values]
    feet = [str(f) for f in data.foot.values]
    owner = np.array([feet.index(s) if s in feet else -1 for s in stems])
    change = np.flatnonzero((contact[1:] != contact[:-1]).any(axis=1)) + 1
    frames = np.r_[0, change][:: max(1, -(-(len(change) + 1) // MOMENTS))]
    out = {}
    for k in frames.tolist():
        down = (owner >= 0) & contact[k][np.maximum(owner, 0)]
        corners = polygon(data.patch_position.values[k][down][:, :2])
        if corners is not None:
            out[k] = corners
    return out


# --- the page -------------------------------------------------------------------
#
# Meshcat's animations move objects, not vertices. The page gets the skin as a mesh at
# rest, an encoded stream of its vertices and a script that sets them, in between frames
# too, by the clock of the page's own animation: pause, seek and time scale work as for
# the skeleton. Nothing is loaded from elsewhere; browsers since 2023 can inflate.
#
# Positions are whole numbers of a step, 1/65535 of the largest extent of the motion;
# each frame is stored as what changed since the one before, small numbers first
# (zigzag), low bytes apart from high ones, deflated. A mesh for each frame, the only
# other way in Meshcat, takes about ten times as much.

_STEPS = 65535


def encode(positions: np.ndarray, fractions: np.ndarray) -> tuple[dict[str, Any], str]:
    """Encodes a motion; good to half a step and to 1/510 of the scale.

    Args:
        positions: positions of the vertices (T, V, 3) [m], finite.
        fractions: values to colour by (T, V), within 0..1.

    Returns:
        What the page is told: the number of `vertices`, the lowest corner of the motion
        (`origin`) and the `step` between neighbouring positions [m]; and base64 of zlib
        of T 3 V low bytes, as many high ones, T V values.
    """
    low = positions.min(axis=(0, 1)).astype(float)
    extent = float((positions.max(axis=(0, 1)) - low).max())
    step = extent / _STEPS if extent > 0 else 1.0
    # x of all vertices, then y, then z; frame by frame, for memory.
    whole = np.array([np.rint((x - low) / step).T.astype(np.uint16) for x in positions])
    change = np.diff(whole, axis=0, prepend=np.zeros_like(whole[:1])).view(np.int16)
    zigzag = ((change << 1) ^ (change >> 15)).view(np.uint16)
    tone = np.rint(255 * fractions).astype(np.uint8)
    tone = np.diff(tone, axis=0, prepend=np.zeros_like(tone[:1]))
    planes = ((zigzag & 255).astype(np.uint8), (zigzag >> 8).astype(np.uint8), tone)
    pressed = zlib.compress(b"".join(plane.tobytes() for plane in planes), 9)
    about = {"vertices": positions.shape[1], "origin": low.tolist(), "step": step}
    return about, base64.b64encode(pressed).decode()


BRIGHTNESS = 0.30
"""Share of the scene's light the skin throws back: about its scale's colours."""


def with_skin(
    page: str,
    about: Mapping[str, Any],
    stream: str,
    times: Sequence[float],
    palette: np.ndarray,
    path: str,
) -> str:
    """A Meshcat page with the skin's motion in it.

    Args:
        page: page with a triangle mesh at `path`, and a caption with a clock, which is
            that of the skin, too.
        about, stream: the frames, as :func:`encode` gives them.
        times: times of the frames in the page's animation (T,), rising [s].
        palette: sRGB colours of the values from 0 to 1 (256, 3).
        path: path of the mesh in the scene.

    Raises:
        InvalidInput: for times that do not rise, or a page that is none.
    """
    if (np.diff(times) <= 0).any():
        raise InvalidInput("the times of a skin's frames must rise")
    told = {
        **about,
        "path": [part for part in path.split("/") if part],
        "times": [round(float(t), 6) for t in times],
        "palette": np.round(linear_rgb(palette), 4).ravel().tolist(),
        "brightness": BRIGHTNESS * np.pi,
    }
    player = Path(__file__).with_name("player.html").read_text(encoding="utf-8")
    script = player.replace("@ABOUT@", json.dumps(told))
    return at_end(page, script.replace("@STREAM@", stream))
