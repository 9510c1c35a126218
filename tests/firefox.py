"""Firefox for tests: of the system, without a window and without a network.

Firefox itself listens on a local socket for commands in JSON (Marionette), those of WebDriver
among them, so neither a driver nor a library is needed. Each message is an array behind its
length: `[0, number, command, parameters]`, answered by `[1, number, error, result]`.
"""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from browser import READY, Page

NAMES = ("firefox-esr", "firefox")
PATIENCE = 60.0  # seconds, for what takes a moment on an idle machine
PORT_FILE = "MarionetteActivePort"
NOWHERE = {"http": "127.0.0.1", "http_port": 9, "ssl": "127.0.0.1", "ssl_port": 9}
PREFERENCES = {
    "marionette.port": 0,  # any that is free
    "browser.download.folderList": 2,  # the folder that `browser.download.dir` names
    "browser.download.alwaysOpenPanel": False,
    "browser.helperApps.neverAsk.saveToDisk": "text/csv,image/svg+xml",
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.proxy.type": 1,
    **{f"network.proxy.{name}": value for name, value in NOWHERE.items()},
}
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "ArrowUp": "\ue013", "ArrowRight": "\ue014"}
SCHEMES = {"dark": 0, "light": 1}

# Scripts of the browser's own window. Its smallest width is above that of a phone, but the page
# in it can be narrower.
RESIZE = """
    const { style } = gBrowser.selectedBrowser;
    for (const [name, size] of Object.entries(arguments[0]))
        for (const end of ["min", "max"]) style.setProperty(`${end}-${name}`, `${size}px`);
"""
SCHEME = """
    const name = "layout.css.prefers-color-scheme.content-override";
    Services.prefs.setIntPref(name, arguments[0]);
"""
WATCH = """
    globalThis.asked = [];
    Services.console.reset();
    if (globalThis.watch) return;
    globalThis.watch = { observe(subject) {
        const { URI, loadInfo } = subject.QueryInterface(Ci.nsIChannel);
        if (loadInfo.browsingContextID === gBrowser.selectedBrowser.browsingContext.id)
            asked.push(URI.spec);
    } };
    Services.obs.addObserver(watch, "http-on-opening-request");
"""
# Errors of scripts and of policies; what a page says by `console` itself, Chromium notes.
NOTED = """
    const messages = Services.console.getMessageArray().map((each) => each.message);
    return [messages.filter((each) => /"(file|data|blob):/.test(each)), asked];
"""


class Firefox:
    """A running Firefox that takes commands."""

    def __init__(self, connection: socket.socket, answers: BinaryIO, downloads: Path) -> None:
        self.connection = connection
        self.answers = answers
        self.downloads = downloads
        self.n_sent = 0
        self._receive()  # its greeting
        self.command("WebDriver:NewSession")
        self.command("WebDriver:SetWindowRect", width=1500, height=1100)

    def command(self, name: str, **parameters: Any) -> Any:
        """What a command gives."""
        self.n_sent += 1
        message = json.dumps([0, self.n_sent, name, parameters]).encode()
        self.connection.sendall(b"%d:%b" % (len(message), message))
        _, number, error, result = self._receive()
        assert number == self.n_sent
        if error is not None:
            raise RuntimeError(f"{name}: {error['error']}: {error['message']}")
        return result.get("value") if isinstance(result, dict) else result

    def _receive(self) -> Any:
        length = b""
        while (byte := self.answers.read(1)) != b":":
            if not byte:
                raise ConnectionError("Firefox closed the connection")
            length += byte
        return json.loads(self.answers.read(int(length)))

    def run_outside(self, script: str, *arguments: Any) -> Any:
        """What a script returns that runs in the window of the browser, not in the page."""
        self.command("Marionette:SetContext", value="chrome")
        try:
            return self.command(
                "WebDriver:ExecuteScript",
                script=script,
                args=arguments,
                sandbox="tests",
                newSandbox=False,
            )
        finally:
            self.command("Marionette:SetContext", value="content")


class Opened(Page):
    """A page in Firefox; `page` is the browser, which has only one."""

    def run(self, script: str, argument: Any = None) -> Any:
        call = f"return ({script})(...arguments)"
        return self.page.command(
            "WebDriver:ExecuteScript", script=call, args=[argument], sandbox=None
        )

    def wait(self, script: str) -> None:
        _until(lambda: self.run(f"() => Boolean(({script})())"), script)

    def press(self, key: str) -> None:
        self.type(KEYS[key])

    def type(self, text: str) -> None:
        strokes = [{"type": kind, "value": each} for each in text for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keyboard", "actions": strokes})

    def click_at(self, x: float, y: float) -> None:
        steps = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        self._act({"type": "pointer", "id": "mouse", "actions": steps})

    def _act(self, actions: dict[str, Any]) -> None:
        self.page.command("WebDriver:PerformActions", actions=[actions])

    def saved(self, save: Callable[[], None]) -> str:
        """Firefox writes into `*.part` and renames it, over a file that is empty until then."""
        folder = self.page.downloads
        before = set(folder.iterdir())
        save()

        def whole() -> list[Path]:
            new = set(folder.iterdir()) - before
            is_partial = any(path.suffix == ".part" for path in new)
            return [] if is_partial else [path for path in new if path.stat().st_size]

        (path,) = _until(whole, "a download")
        return path.read_text(encoding="utf-8")

    def attach(self, place: str, file: Path) -> None:
        found = self.page.command("WebDriver:FindElement", using="css selector", value=place)
        (element,) = found.values()
        self.page.command("WebDriver:ElementSendKeys", id=element, text=str(file))

    def printed(self) -> bytes:
        sheet = {"width": 21.0, "height": 29.7}
        return base64.b64decode(self.page.command("WebDriver:Print", page=sheet))

    def reload(self) -> None:
        self.page.command("WebDriver:Refresh")

    def assert_clean(self) -> None:
        self.console, self.requests = self.page.run_outside(NOTED)
        super().assert_clean()


def _until(found: Callable[[], Any], what: str) -> Any:
    """What a function gives once that is true."""
    end = time.monotonic() + PATIENCE
    while not (value := found()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE:.0f} seconds in vain for {what}")
        time.sleep(0.02)
    return value


@contextmanager
def firefox() -> Iterator[Firefox]:
    """A running browser; skips the test where there is none."""
    executable = next((path for path in map(shutil.which, NAMES) if path), None)
    if executable is None:
        pytest.skip("Firefox is not installed, so no page was opened: apt-get install firefox-esr")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        profile, downloads = Path(folder), Path(folder) / "downloads"
        downloads.mkdir()
        chosen = PREFERENCES | {"browser.download.dir": str(downloads)}
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in chosen.items()]
        (profile / "user.js").write_text("".join(lines), encoding="utf-8")
        options = ["--headless", "--marionette", "--remote-allow-system-access", "--no-remote"]
        process = subprocess.Popen(
            [executable, *options, "--profile", folder],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            file = profile / PORT_FILE
            port = _until(lambda: file.exists() and file.read_text(), "the port of Firefox")
            with (
                socket.create_connection(("127.0.0.1", int(port)), PATIENCE) as connection,
                connection.makefile("rb") as answers,
            ):
                yield Firefox(connection, answers, downloads)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def opened(
    browser: Firefox,
    path: Path,
    ready: str = READY,
    viewport: dict[str, int] | None = None,
    color_scheme: str = "light",
) -> Iterator[Opened]:
    """A page as `browser.opened` opens it in Chromium, one at a time."""
    address = path.resolve().as_uri()
    browser.run_outside(RESIZE, viewport or {"width": 1280, "height": 720})
    browser.run_outside(SCHEME, SCHEMES[color_scheme])
    browser.run_outside(WATCH)
    found = Opened(browser)
    browser.command("WebDriver:Navigate", url=address)
    found.wait(ready)
    if ready == READY:
        found.settle()
    yield found
    browser.command("WebDriver:Navigate", url="about:blank")
