"""A person at a page: a headless Chromium that is driven through its debugging pipe.

    with Person("http://localhost:7000") as person:
        person.press("w")
        person.value("document.title")

The pipe speaks Chrome's DevTools protocol, JSON ended by a zero byte, and needs no
package. Meshcat's page calls its viewer `viewer`.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from robot_zoo.browser import BROWSERS, FLAGS, find_browser

from drakebots.core.errors import InvalidInput

PATIENCE = 30.0
"""Longest time to wait for an answer or a change of the page [s]."""


class Person:
    """A browser with one page.

    Args:
        url: of the page.
        size: of its window [pixels].
    """

    def __init__(self, url: str, size: tuple[int, int] = (640, 480)):
        browser = find_browser()
        if browser is None:
            raise InvalidInput("needs a browser; install one of " + ", ".join(BROWSERS))
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (theirs, self._to), (self._from, answers) = os.pipe(), os.pipe()
        # As root it would run before all others; no person's browser may.
        plain = (
            ["setpriv", "--bounding-set=-sys_nice"] if shutil.which("setpriv") else []
        )
        words = [*plain, browser, *FLAGS, "--remote-debugging-pipe"]
        words += [f"--user-data-dir={self._profile.name}"]
        words += [f"--window-size={size[0]},{size[1]}", "about:blank"]
        # Chromium reads from descriptor 3 and answers on 4.
        shell = f"exec {shlex.join(words)} 3<&{theirs} 4>&{answers}"
        self._process = subprocess.Popen(
            ["bash", "-c", shell],
            pass_fds=[theirs, answers],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(answers)
        self._count, self._buffer, self._page = 0, b"", {}
        made = self._ask("Target.createTarget", url=url)
        attached = self._ask(
            "Target.attachToTarget", targetId=made["targetId"], flatten=True
        )
        self._page = {"sessionId": attached["sessionId"]}

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def close(self) -> None:
        """Closes the browser."""
        self._process.kill()
        self._process.wait()
        for end in (self._to, self._from):
            os.close(end)
        self._profile.cleanup()

    def _ask(self, method: str, **params: Any) -> dict:
        self._count += 1
        question = {"id": self._count, "method": method, "params": params, **self._page}
        os.write(self._to, json.dumps(question).encode() + b"\0")
        while True:
            while b"\0" not in self._buffer:
                read = os.read(self._from, 1 << 20)
                if not read:
                    raise InvalidInput("the browser has gone")
                self._buffer += read
            text, _, self._buffer = self._buffer.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise InvalidInput(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def value(self, script: str) -> Any:
        """The value of an expression on the page."""
        asked = {"returnByValue": True, "awaitPromise": True}
        found = self._ask("Runtime.evaluate", expression=script, **asked)
        if "exceptionDetails" in found:
            raise InvalidInput(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def open(self, url: str) -> None:
        """Goes to another page."""
        self._ask("Page.navigate", url=url)

    def wait(self, script: str, seconds: float = PATIENCE) -> Any:
        """The value of an expression once it is true."""
        until = time.monotonic() + seconds
        while not (found := self._tried(script)):
            if time.monotonic() > until:
                raise InvalidInput(f"not true after {seconds:g} s: {script}")
            time.sleep(0.02)
        return found

    def _tried(self, script: str) -> Any:
        """The same; None where the page does not know it yet."""
        try:
            return self.value(script)
        except InvalidInput:
            return None

    def press(self, key: str, times: int = 1) -> None:
        """Presses a key: a letter, a digit, or JavaScript's code of another key."""
        code = key
        if len(key) == 1:
            code = f"Digit{key}" if key.isdigit() else f"Key{key.upper()}"
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=code)

    def control(self, label: str) -> str:
        """The control whose text begins so, once it is there."""
        start = json.dumps(label)
        name = f"Object.keys(viewer.gui_controllers).find(n => n.startsWith({start}))"
        return f"viewer.gui_controllers[{json.dumps(self.wait(name))}]"

    def slide(self, label: str, value: float) -> None:
        """Moves a slider whose text begins so."""
        self.value(f"{self.control(label)}.setValue({value}).getValue()")

    def slid(self, label: str) -> float:
        """The value of a slider whose text begins so."""
        return self.value(f"{self.control(label)}.getValue()")

    def click(self, label: str) -> None:
        """Clicks a button whose text begins so."""
        self.value(f"{self.control(label)}.__button.click()")

    def labels(self) -> list[str]:
        """The texts of all controls on the page."""
        return self.value("Object.keys(viewer.gui_controllers)")

    @staticmethod
    def _matrix(path: str) -> str:
        words = json.dumps(path.strip("/").split("/"))
        return f"Array.from(viewer.scene_tree.find({words}).object.matrix.elements)"

    def pose(self, path: str) -> list[float]:
        """The matrix of an object below its parent, by columns (16,)."""
        return list(self.wait(self._matrix(path)))

    def wait_moved(self, path: str, pose: list[float], by: float) -> None:
        """Waits until an element of an object's matrix has changed by more."""
        far = f"(value, k) => Math.abs(value - {json.dumps(pose)}[k]) > {by}"
        self.wait(f"{self._matrix(path)}.some({far})")

    def picture(self, path: str | Path) -> Path:
        """Writes a picture of the page (.png)."""
        data = self._ask("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))
        return Path(path)
