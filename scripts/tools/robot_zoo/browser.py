"""Draws a page with a headless browser, where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.image
import numpy as np

from drakebots.core.errors import InvalidInput

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
)
TIMEOUT = 75
"""For each of two tries of the browser [s]."""


def find_browser() -> str | None:
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def run_browser(page: Path, *arguments: str) -> str:
    """Opens a page without a window and returns what the browser prints.

    Raises:
        InvalidInput: without a browser, or when it fails.
    """
    browser = find_browser()
    if browser is None:
        raise InvalidInput(
            "drawing needs a browser; install one of " + ", ".join(BROWSERS)
        )
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, *FLAGS, f"--user-data-dir={profile}", *arguments]
        # Chromium hangs now and then under --virtual-time-budget, on some machines
        # always; the second try waits by the clock.
        for tries_left in (1, 0):
            if not tries_left:
                budget, clock = "--virtual-time-budget", "--timeout"
                command = [word.replace(budget, clock) for word in command]
            try:
                return subprocess.run(
                    [*command, page.resolve().as_uri()],
                    capture_output=True,
                    timeout=TIMEOUT,
                    check=True,
                    text=True,
                    errors="replace",
                ).stdout
            except subprocess.TimeoutExpired as error:
                if not tries_left:
                    raise InvalidInput(f"{browser} drew nothing: {error}") from error
            except (subprocess.SubprocessError, OSError) as error:
                raise InvalidInput(f"{browser} drew nothing: {error}") from error


def screenshot(
    html: str, size: tuple[int, int] = (1200, 800), *, milliseconds: int = 8000
) -> np.ndarray:
    """The page as pixels (height, width, 3) in 0..1, drawn at twice the size.

    Args:
        html: the page.
        size: width and height [pixels].
        milliseconds: the page's own time until the picture is taken; pages
            that move take long to draw without a graphics card.

    Raises:
        InvalidInput: without a browser, or when it draws nothing.
    """
    w, h = size
    hidden = "<style>.dg {display: none !important}</style></head>"
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "page.html", Path(folder) / "shot.png"
        page.write_text(html.replace("</head>", hidden, 1))
        run_browser(
            page,
            f"--window-size={w},{h}",
            "--force-device-scale-factor=2",
            f"--virtual-time-budget={milliseconds}",
            f"--screenshot={shot}",
        )
        if not os.path.isfile(shot):
            raise InvalidInput(f"the browser cannot draw {w} x {h} pixels")
        pixels = matplotlib.image.imread(shot)[..., :3]
    if pixels.shape != (2 * h, 2 * w, 3):
        raise InvalidInput(f"the browser cannot draw {w} x {h} pixels; try 1200 x 800")
    return pixels.reshape(h, 2, w, 2, 3).mean((1, 3))
