"""Puts a skin's motion into a static Meshcat page, with its colour scale.

Meshcat's animations move objects, not vertices. The page gets the skin as a mesh at
rest, an encoded stream of its vertices (`view_skin_stream`) and a script that sets
them, in between frames too, by the clock of the page's own animation: pause, seek
and time scale work as for the skeleton. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drakebots.core.errors import InvalidInput
from drakebots.view.caption import Caption
from drakebots.view.skin.colour import ColourScale, linear_rgb, palette

# A skin's motion in few bytes: what a page plays (`view_skin_page`).
#
# Positions are whole numbers of a step, 1/65535 of the largest extent of the motion;
# each frame is stored as what changed since the one before, small numbers first
# (zigzag), low bytes apart from high ones, deflated. A mesh for each frame, the only
# other way in Meshcat, takes about ten times as much.

_STEPS = 65535


@dataclass(frozen=True)
class SkinStream:
    """Frames of a surface, encoded.

    Attributes:
        frames, vertices: counts T and V.
        origin: lowest corner of the motion (3,) [m].
        step: between neighbouring positions [m].
        text: base64 of zlib of T 3 V low bytes, as many high ones, T V values.
    """

    frames: int
    vertices: int
    origin: tuple[float, float, float]
    step: float
    text: str


def encode(positions: np.ndarray, fractions: np.ndarray) -> SkinStream:
    """Encodes a motion; good to half a step and to 1/510 of the scale.

    Args:
        positions: positions of the vertices (T, V, 3) [m].
        fractions: what to colour by (T, V), within 0..1.

    Raises:
        InvalidInput: for other shapes, no frames, or what is not finite.
    """
    positions, fractions = np.asarray(positions), np.asarray(fractions)
    if positions.ndim != 3 or positions.shape[2] != 3 or not positions.size:
        raise InvalidInput(f"skin frames: shape {positions.shape}, needs (T, V, 3)")
    if fractions.shape != positions.shape[:2]:
        raise InvalidInput(
            f"skin colours: shape {fractions.shape}, needs {positions.shape[:2]}"
        )
    if not (np.isfinite(positions).all() and np.isfinite(fractions).all()):
        raise InvalidInput("skin frames: positions and colours must be finite")
    low = positions.min(axis=(0, 1)).astype(float)
    extent = float((positions.max(axis=(0, 1)) - low).max())
    step = extent / _STEPS if extent > 0 else 1.0
    whole = np.empty(
        (len(positions), 3, positions.shape[1]), np.uint16
    )  # x of all vertices, then y, then z
    for at, frame in zip(whole, positions):
        at[:] = np.rint((frame - low) / step).T
    change = np.diff(whole, axis=0, prepend=np.zeros_like(whole[:1])).view(np.int16)
    zigzag = ((change << 1) ^ (change >> 15)).view(np.uint16)
    tone = np.rint(255 * np.clip(fractions, 0, 1)).astype(np.uint8)
    tone = np.diff(tone, axis=0, prepend=np.zeros_like(tone[:1]))
    pressed = zlib.compressobj(9)
    parts = [
        pressed.compress(np.ascontiguousarray(plane).tobytes())
        for plane in ((zigzag & 255).astype(np.uint8), (zigzag >> 8).astype(np.uint8))
    ]
    parts += [pressed.compress(tone.tobytes()), pressed.flush()]
    return SkinStream(
        frames=len(positions),
        vertices=positions.shape[1],
        origin=tuple(low.tolist()),
        step=step,
        text=base64.b64encode(b"".join(parts)).decode(),
    )


def decode(stream: SkinStream) -> tuple[np.ndarray, np.ndarray]:
    """Positions (T, V, 3) [m] and fractions (T, V), as the page finds them."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(stream.text)), np.uint8)
    t, v = stream.frames, stream.vertices
    low, high, tone = np.split(raw, [3 * t * v, 6 * t * v])
    zigzag = low.astype(np.uint16) | (high.astype(np.uint16) << 8)
    change = (zigzag >> 1) ^ (-(zigzag & 1).astype(np.int16)).view(np.uint16)
    whole = np.cumsum(change.reshape(t, 3, v), axis=0, dtype=np.uint16)
    places = np.array(stream.origin) + stream.step * whole.transpose(0, 2, 1)
    return places, np.cumsum(tone.reshape(t, v), axis=0, dtype=np.uint8) / 255


def drawn_surface(rest: np.ndarray, triangles: np.ndarray) -> tuple:
    """The surface without closed inner walls, which nobody sees.

    A closed piece of an outward surface with negative volume bounds a cavity.

    Args:
        rest: vertices (N, 3) [m].
        triangles: outward (F, 3).

    Returns:
        The numbers (V,) of the vertices drawn, and triangles (f, 3) of those.

    Raises:
        InvalidInput: for no triangles, or a corner that is no vertex.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    triangles, n = np.asarray(triangles), len(rest)
    if triangles.ndim != 2 or triangles.shape[1:] != (3,) or not len(triangles):
        raise InvalidInput(f"skin triangles: shape {triangles.shape}, needs (F, 3)")
    if triangles.min() < 0 or triangles.max() >= n:
        raise InvalidInput(f"skin triangles: a corner is not among the {n} vertices")
    ends = np.vstack([triangles[:, :2], triangles[:, 1:]])
    linked = coo_array((np.ones(len(ends)), ends.T), shape=(n, n))
    piece = connected_components(linked, directed=False)[1][triangles[:, 0]]
    a, b, c = (np.asarray(rest, float)[triangles] - np.mean(rest, axis=0)).swapaxes(
        0, 1
    )
    volume = np.bincount(piece, np.einsum("fk,fk->f", a, np.cross(b, c)))
    seen = triangles[volume[piece] > 0]
    if not len(seen):  # an open sheet may have any sign
        seen = triangles
    used, corners = np.unique(seen, return_inverse=True)
    return used, corners.reshape(-1, 3)


_STYLE = """
<style>
  #skin-scale .bar { width: 240px; height: 14px; margin: 8px 12px 3px 12px; }
  #skin-scale .ticks { display: flex; justify-content: space-between;
    width: 264px; font-size: 13px; }
  #skin-scale .ticks span { width: 24px; text-align: center; }
  #skin-scale { margin-bottom: 6px; }
</style>
"""

_SCRIPT = """
<script id="skin-stream" type="text/plain">@STREAM@</script>
<script>
(function () {
  const about = @ABOUT@;
  const T = about.times.length, V = about.vertices;
  const text = atob(document.getElementById("skin-stream").textContent);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const n = 3 * V, raw = inflate(packed, 2, new Uint8Array(2 * T * n + T * V));
  // Frames of x of all vertices, y, z; each value is the change since the last.
  const whole = new Uint16Array(T * n), tone = new Uint8Array(T * V);
  for (let i = 0; i < T * n; i++) {
    const z = raw[i] | (raw[T * n + i] << 8);
    whole[i] = (i < n ? 0 : whole[i - n]) + ((z >> 1) ^ -(z & 1));
  }
  for (let i = 0; i < T * V; i++)
    tone[i] = (i < V ? 0 : tone[i - V]) + raw[2 * T * n + i];

  // RFC 1951, the whole at once: what browsers have is newer and asynchronous.
  function inflate(from, at, to) {
    let held = 0, count = 0, end = 0;
    const bits = (n) => {
      while (count < n) { held |= from[at++] << count; count += 8; }
      const value = held & ((1 << n) - 1);
      held >>>= n; count -= n;
      return value;
    };
    const tree = (lengths) => {
      const counts = new Uint16Array(16), starts = new Uint16Array(16);
      for (const l of lengths) counts[l]++;
      counts[0] = 0;
      for (let l = 1; l < 15; l++) starts[l + 1] = starts[l] + counts[l];
      const symbols = new Uint16Array(lengths.length);
      lengths.forEach((l, i) => { if (l) symbols[starts[l]++] = i; });
      return { counts, symbols };
    };
    const symbol = (t) => {
      let code = 0, first = 0, index = 0;
      for (let l = 1; l < 16; l++) {
        code |= bits(1);
        const c = t.counts[l];
        if (code - c < first) return t.symbols[index + code - first];
        index += c; first = (first + c) << 1; code <<= 1;
      }
      throw new Error("the skin's stream is damaged");
    };
    const order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    const longs = [], fars = [];  // base and extra bits of lengths and distances
    for (let i = 0, base = 3; i < 28; i++) {
      const extra = i < 8 ? 0 : (i >> 2) - 1;
      longs.push([base, extra]); base += 1 << extra;
    }
    longs.push([258, 0]);
    for (let i = 0, base = 1; i < 30; i++) {
      const extra = i < 4 ? 0 : (i >> 1) - 1;
      fars.push([base, extra]); base += 1 << extra;
    }
    for (let last = 0; !last;) {
      last = bits(1);
      const kind = bits(2);
      if (kind === 0) {
        held = count = 0;
        const size = from[at] | (from[at + 1] << 8);
        to.set(from.subarray(at + 4, at + 4 + size), end);
        at += 4 + size; end += size;
        continue;
      }
      let letters, ways;
      if (kind === 1) {
        letters = tree(Array.from({ length: 288 },
          (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)));
        ways = tree(new Array(30).fill(5));
      } else {
        const a = bits(5) + 257, b = bits(5) + 1, c = bits(4) + 4;
        const small = new Array(19).fill(0), lengths = [];
        for (let i = 0; i < c; i++) small[order[i]] = bits(3);
        const t = tree(small);
        while (lengths.length < a + b) {
          const s = symbol(t);
          if (s < 16) { lengths.push(s); continue; }
          const value = s === 16 ? lengths[lengths.length - 1] : 0;
          let times = s === 16 ? 3 + bits(2) : s === 17 ? 3 + bits(3) : 11 + bits(7);
          while (times--) lengths.push(value);
        }
        letters = tree(lengths.slice(0, a));
        ways = tree(lengths.slice(a));
      }
      for (let s = symbol(letters); s !== 256; s = symbol(letters)) {
        if (s < 256) { to[end++] = s; continue; }
        const l = longs[s - 257], length = l[0] + bits(l[1]);
        const d = fars[symbol(ways)], back = d[0] + bits(d[1]);
        for (let i = 0; i < length; i++, end++) to[end] = to[end - back];
      }
    }
    if (end !== to.length) throw new Error("the skin's stream is damaged");
    return to;
  }

  const place = new MeshCat.THREE.BufferAttribute(new Float32Array(n), 3);
  const colour = new MeshCat.THREE.BufferAttribute(new Float32Array(n), 3);
  // The page's own commands make the mesh, some time after this runs.
  let mesh = null;
  function find() {
    let node = viewer.scene_tree;
    for (const name of about.path.concat(["<object>"]))
      node = node && node.children[name];
    if (node && node.object.geometry) dress(mesh = node.object);
    return mesh;
  }
  function dress(mesh) {
    mesh.geometry.setAttribute("position", place);
    mesh.geometry.setAttribute("color", colour);
    mesh.frustumCulled = false;
    const material = mesh.material;
    material.flatShading = false;
    material.side = MeshCat.THREE.DoubleSide;
    material.forceSinglePass = true;
    material.toneMapped = false;
    material.shininess = 12;
    material.color.setScalar(about.brightness);
    material.needsUpdate = true;
    // Depth first, so that only the nearest layer of the skin veils the skeleton.
    const depth = mesh.clone();
    depth.material = material.clone();
    depth.material.colorWrite = false;
    depth.castShadow = false;
    mesh.renderOrder = 2;
    depth.renderOrder = 1;
    mesh.parent.add(depth);
  }

  let last = null;
  function show(time) {
    if (time === last) return;
    last = time;
    let k = 0, far = T - 1;
    while (far - k > 1) {
      const middle = (k + far) >> 1;
      if (about.times[middle] <= time) k = middle; else far = middle;
    }
    const next = Math.min(k + 1, T - 1), gap = about.times[next] - about.times[k];
    const f = gap > 0 ? Math.min(Math.max((time - about.times[k]) / gap, 0), 1) : 0;
    for (let axis = 0; axis < 3; axis++) {
      const a = (3 * k + axis) * V, b = (3 * next + axis) * V;
      for (let i = 0; i < V; i++)
        place.array[3 * i + axis] = about.origin[axis]
          + about.step * ((1 - f) * whole[a + i] + f * whole[b + i]);
    }
    for (let i = 0; i < V; i++) {
      const c = 3 * Math.round((1 - f) * tone[k * V + i] + f * tone[next * V + i]);
      colour.array[3 * i] = about.palette[c];
      colour.array[3 * i + 1] = about.palette[c + 1];
      colour.array[3 * i + 2] = about.palette[c + 2];
    }
    place.needsUpdate = colour.needsUpdate = true;
    mesh.geometry.computeVertexNormals();
  }
  // Every way to move in time ends in a drawing: play, seek, the page's controls.
  const render = viewer.render;
  viewer.render = function () {
    if (mesh || find()) show(window.drakebots_clock());
    return render.apply(viewer, arguments);
  };
  window.drakebots_skin = { find, show, place, colour };
  viewer.set_dirty();
})();
</script>
"""

BRIGHTNESS = 0.30
"""Share of the scene's light the skin throws back: about its scale's colours."""


def skin_page(
    page: str,
    stream: SkinStream,
    times: Sequence[float],
    scale: ColourScale,
    *,
    path: str,
    caption: Caption,
) -> str:
    """A Meshcat page with the skin's motion and colour scale in it.

    Args:
        page: text of Meshcat.StaticHtml, with a triangle mesh at `path`.
        stream: the frames.
        times: times of the frames in the page's animation (T,), rising [s].
        scale: scale of the colours.
        path: path of the mesh in the scene.
        caption: what else the page says; its clock is that of the skin, too.

    Raises:
        InvalidInput: when times and frames differ, or the page is none.
    """
    if len(times) != stream.frames or (np.diff(times) <= 0).any():
        raise InvalidInput(
            f"the skin's times: need {stream.frames}, rising; got {len(times)}"
        )
    page = caption.on(page, first=_STYLE + legend(scale))
    about = {
        "path": [part for part in path.split("/") if part],
        "times": [round(float(t), 6) for t in times],
        "vertices": stream.vertices,
        "origin": stream.origin,
        "step": stream.step,
        "palette": np.round(linear_rgb(palette()), 4).ravel().tolist(),
        "brightness": BRIGHTNESS * np.pi,
    }
    script = _SCRIPT.replace("@ABOUT@", json.dumps(about)).replace(
        "@STREAM@", stream.text
    )
    rest, _, tail = page.rpartition("</body>")
    return f"{rest}{script}</body>{tail}"


def legend(scale: ColourScale) -> str:
    """The colour scale with its numbers, as HTML."""
    stops = ", ".join(
        f"rgb({r:.0f}, {g:.0f}, {b:.0f})" for r, g, b in 255 * palette(17)
    )
    ticks = "".join(f"<span>{tick:.4g}</span>" for tick in scale.ticks)
    note = f'<div class="more">{html.escape(scale.note)}</div>' if scale.note else ""
    return (
        f'<div id="skin-scale"><div>{html.escape(scale.label)}</div>'
        f'<div class="bar" style="background: linear-gradient(to right, {stops})">'
        f'</div><div class="ticks">{ticks}</div>{note}</div>'
    )
