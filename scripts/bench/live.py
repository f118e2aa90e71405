"""A quadruped in the browser: its real-time factor, and how soon a key acts.

    python scripts/bench/live.py
    python scripts/bench/live.py --robot a1.urdf      # any legged robot with motors
    python scripts/bench/live.py --quick

The quadruped trots ahead with a browser connected, 1 kHz of its plant and up to 120
solves a second. `start_s` is from the command to the robot in the page, or to the
page's address where there is no browser; `real_time_factor` simulated over wall time,
once it moves;
`key_to_motion_ms` from a key pressed in Chromium to the velocity that the controller is
told, the median; `pictures_per_s` the poses that come to the page. The last two need a
browser. Chromium draws by the processor here, and takes more of it than a page on a
screen would.

`robots` has the real-time factors of HAMR's trot, the gecko's walk, the voxel robot
and the skinned leg, which swings, without a browser; the leg's skin is drawn on a page
all the same, and `skinned_pictures_per_s` are those that the page is sent.

JSON: browser, start_s, real_time_factor, solves_per_s, robots, skinned_pictures_per_s.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from measurement import Measurement, figure

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from robot_zoo.person import Person, find_browser

from drakebots.core.threads import calm_threads
from drakebots.live import run_live
from drakebots.multibody import base_body
from drakebots.robots import gecko, hamr, quads, voxels
from drakebots.robots.legged import Drive, Driven

ROBOT = "mini_cheetah"
SIZE = (320, 240)
BEGINS = 0.5
"""Simulated time from which on a run is timed [s]."""

_STANDS = """viewer.scene_tree.find(["drake", "visualizer", "{}", "{}"])
  .object.matrix.elements[14] > 0.1"""
_COUNT = """
viewer.pictures = 0;
const handle = viewer.handle_command.bind(viewer);
viewer.handle_command = c => {
  if (c.type == 'set_transform' && c.path.endsWith('/BASE')) viewer.pictures++;
  handle(c);
}; true"""


def base_of(run: Driven) -> tuple[str, str]:
    """The names of the robot and its base in the scene."""
    plant = run.own.plant
    base = base_body(plant)
    return plant.GetModelInstanceName(base.model_instance()), base.name()


def start_seconds(robot: str, base: tuple[str, str], port: int) -> float:
    """From the command to the robot in its page, or to the page's address [s]."""
    words = [sys.executable, "-m", "drakebots", "live", robot, "--port", str(port)]
    person = Person("about:blank", SIZE) if find_browser() else None
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().split()[0]
        if person is not None:
            person.open(url)
            person.wait(_STANDS.format(*base))
        return time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
        if person is not None:
            person.close()


def watch(run: Driven, url: str, seconds: float, found: dict) -> None:
    """Presses keys for a while, then notes what came of it."""
    try:
        with Person(url, SIZE) as person:
            person.wait(_STANDS.format(*base_of(run)))
            while run.now < BEGINS:  # the first plan is made before the robot moves
                time.sleep(0.01)
            person.control("ahead")
            person.value(_COUNT.replace("BASE", base_of(run)[1]))
            heard, told = queue.SimpleQueue(), run.told

            def hear() -> None:
                told()
                heard.put(time.perf_counter())

            run.told = hear  # to look again and again would take the run's processor
            began, at, delays = time.perf_counter(), run.now, []
            while time.perf_counter() < began + seconds or not delays:
                before, pressed = run.controller.orders.ahead, time.perf_counter()
                person.press("s" if before > 0.35 else "w")
                delays.append(heard.get() - pressed)
                assert run.controller.orders.ahead != before
                time.sleep(0.3)
            took = time.perf_counter() - began
            found["real_time_factor"] = (run.now - at) / took
            found["key_to_motion_ms"] = 1e3 * float(np.median(delays))
            found["pictures_per_s"] = person.value("viewer.pictures") / took
    finally:
        run.loop.until = run.now


def robot_rows(seconds: float) -> dict[str, dict]:
    """Real-time factors of the robots' parts, and pictures of the skin a second."""
    leg = quads.LiveSkin(quads.Drive(duration=seconds))
    leg.pictures, draw = 0, leg.draw

    def count() -> None:
        leg.pictures += 1
        draw()

    leg.draw = count
    leg.controls = [
        replace(c, value=0.3) if c.name == "swing" else c for c in leg.controls
    ]
    free = {"headless": True, "duration": seconds}
    parts = {
        "hamr": (hamr.Gait, hamr.Drive(**free), 0.1),
        "gecko": (gecko.Walking, gecko.Drive(**free), 1.0),
        "voxel": (voxels.Moved, voxels.Drive(**free), 1.0),
    }
    found = {}
    for name, (make, drive, goal) in parts.items():
        factor = run_live(drive, make(drive)).metrics["real_time_factor"]
        found[name] = figure(factor, "1", goal)
    began = time.perf_counter()
    with calm_threads():
        metrics = run_live(quads.Drive(duration=seconds), leg).metrics
    found["skinned_leg"] = figure(metrics["real_time_factor"], "1", 0.3)
    rate = leg.pictures / (time.perf_counter() - began)
    return {"robots": found, "skinned_pictures_per_s": figure(rate, "1/s", 20)}


def main(argv: Sequence[str] | None = None) -> dict:
    """Measures and prints."""
    measurement = Measurement(__doc__, quick="a few seconds of each")
    measurement.add_argument("--robot", default=ROBOT, help="a name or a file")
    measurement.add_argument(
        "--headless", action="store_true", help="without a browser though there is one"
    )
    args = measurement.parse_args(argv)
    browser = find_browser() is not None and not args.headless
    seconds = 3.0 if args.quick else 20.0
    drive = Drive(
        args.robot, headless=not browser, duration=600 if browser else seconds
    )
    run = Driven(drive)
    started = start_seconds(args.robot, base_of(run), 7391)
    found: dict[str, float] = {}
    url = run.meshcat.web_url() if browser else ""  # its own thread must ask
    person = threading.Thread(target=watch, args=(run, url, seconds, found))
    if browser:
        person.start()
    try:
        result = run.simulate(duration=1e9)
    finally:
        run.controller.stop()
    if browser:
        person.join()
    figures = result.metrics
    factor = found.get("real_time_factor", figures["real_time_factor"])
    said = {
        "browser": browser,
        "start_s": figure(started, "s", 5.0),
        "real_time_factor": figure(factor, "1", 1.0),
        "solves_per_s": figure(figures["solves"] / run.now, "1/s", 120),
        "falls": figures["falls"],
        "solve_ms": figure(figures["solve_ms"], "ms"),
    }
    for name, unit, goal in (
        ("key_to_motion_ms", "ms", 100),
        ("pictures_per_s", "1/s", 30),
    ):
        if name in found:
            said[name] = figure(found[name], unit, goal)
    said |= robot_rows(0.2 if args.quick else 4.0)
    return measurement.report(said)


if __name__ == "__main__":
    main()
