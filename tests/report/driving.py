"""Local servers and Chromium, which is driven through its debugging pipe, without a port."""

import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from tests.factories import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
IN_A_BROWSER = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
FLAGS = (
    "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage", "--window-size=1300,1000",
    "--remote-debugging-pipe",
)  # fmt: skip
# Chromium reads commands from descriptor 3 and writes answers to 4; they are moved there in a
# process that becomes the browser.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 20) for end in sys.argv[1:3]]
os.dup2(ends[0], 3); os.dup2(ends[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page in one browser, which ends with it."""

    def __init__(self, folder, size=(1300, 1000), scale=1):
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(commands), str(answers), CHROMIUM, *FLAGS,
             f"--user-data-dir={folder / 'profile'}"],
            pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self._rest, self._number, self._session = b"", 0, None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        width, height = size
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=False)  # fmt: skip

    def call(self, method, **parameters):
        """Send a command and return its answer; what happens meanwhile goes into `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            left = max(deadline - time.monotonic(), 0)
            assert select.select([self._from], [], [], left)[0], "the browser does not answer"
            part = os.read(self._from, 1 << 20)
            assert part, "the browser has ended"
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, path):
        """Open a page and wait until its scripts have run."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        self.wait(f"location.href === {json.dumps(path.as_uri())} "
                  "&& document.readyState === 'complete'")  # fmt: skip

    def ask(self, expression):
        """Return the value of an expression in the page, a promise's too."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                          awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression):
        """Wait until an expression is true in the page."""
        self.until(lambda: self.ask(expression))

    @staticmethod
    def until(condition):
        """Wait until something is true outside of it."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "a condition never came true"
            time.sleep(0.02)

    def frame(self):
        """Wait until what was asked for is drawn."""
        self.ask(
            "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))).then(() => 1)"
        )

    def mouse(self, kind, x, y, *, buttons=0, clicks=0, shift=False):
        """Move, press or release the mouse."""
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, buttons=buttons,
                  button="left" if kind != "Moved" or buttons else "none", clickCount=clicks,
                  modifiers=8 * shift)  # fmt: skip

    def drag(self, points, *, shift=False):
        """Press at the first point, go through all, and release at the last."""
        self.mouse("Moved", *points[0])
        self.mouse("Pressed", *points[0], buttons=1, clicks=1, shift=shift)
        for point in points[1:]:
            self.mouse("Moved", *point, buttons=1, shift=shift)
        self.mouse("Released", *points[-1], clicks=1, shift=shift)
        self.frame()

    def drag_until(self, expression, points, *, shift=False):
        """Drag until an expression is true in the page.

        A frame is another process. Until its first picture is shown, the browser may give what
        the mouse does to the page around it.
        """

        def is_true_after_a_drag():
            self.drag(points, shift=shift)
            for _ in range(100):
                if self.ask(expression):
                    return True
                time.sleep(0.02)
            return False

        self.until(is_true_after_a_drag)

    def click(self, x, y, times=1):
        """Click, or double-click."""
        self.mouse("Moved", x, y)
        for click in range(1, times + 1):
            self.mouse("Pressed", x, y, buttons=1, clicks=click)
            self.mouse("Released", x, y, clicks=click)
        self.frame()

    def click_on(self, selector, times=1):
        """Click in the middle of an element."""
        self.click(*self.ask(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); "
            "return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        ), times)  # fmt: skip

    def press(self, key):
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)
        self.frame()

    def type(self, text):
        """Put text where the cursor is."""
        self.call("Input.insertText", text=text)
        self.frame()

    def close(self):
        """End this browser and no other."""
        try:
            self._session = None
            self.call("Browser.close")
        except (AssertionError, OSError):
            self._process.kill()
        try:
            self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)


def check_console(browser):
    """Nothing was thrown and nothing logged since the page was opened."""
    for trouble in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
        assert not [event for event in browser.events if event["method"] == trouble]


def check_requests(browser, server):
    """Nothing was asked of another server."""
    events = [e for e in browser.events if e["method"] == "Network.requestWillBeSent"]
    urls = [event["params"]["request"]["url"] for event in events]
    assert urls and all(u.startswith((f"http://127.0.0.1:{server.port}/", "data:")) for u in urls)


@contextmanager
def served(server):
    """Run a local server in a thread."""
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def fetch(server, path, content=None, **headers):
    """Return status, headers and body of the response to a request of the page."""
    base = {"X-Token": server.token, "Origin": f"http://127.0.0.1:{server.port}"}
    if content is not None:
        base["Content-Type"] = "application/json"
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
    sent = {name: value for name, value in {**base, **headers}.items() if value is not None}
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", content, sent)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()
