"""A headless Chromium for tests of the HTML report."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # Chromium has none for root, which containers run as
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
)


def needs_browser() -> None:
    """Skips the module that calls it where there is no Chromium to drive."""
    if importlib.util.find_spec("selenium") is None:
        pytest.skip("needs selenium: pip install pytest-tfdevice[test]", allow_module_level=True)
    if CHROMIUM is None or DRIVER is None:
        pytest.skip(
            "needs Chromium and its driver: apt-get install chromium chromium-driver",
            allow_module_level=True,
        )


CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
function rgba(color) {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
}
function over([r, g, b, a], below) {
  return [r, g, b].map((c, n) => c * a + below[n] * (1 - a)).concat(1);
}
function backdrop(node) {
  const layers = [];
  for (let e = node; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
}
function luminance([r, g, b]) {
  const f = [r, g, b].map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2];
}
const poor = [];
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].some(c => c.nodeType === 3 && c.data.trim());
  const read = !['SCRIPT', 'NOSCRIPT', 'OPTION'].includes(node.tagName);
  if (!own || !read || !node.getClientRects().length) continue;
  const back = backdrop(node);
  const text = over(rgba(getComputedStyle(node).color), back);
  const [a, b] = [luminance(text), luminance(back)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  const what = `${node.className || node.tagName}: ${node.textContent.slice(0, 30)}`;
  if (ratio < 4.5) poor.push(`${what}: ${ratio.toFixed(2)}`);
}
return poor;
"""
"""WCAG 2.2: relative luminance, contrast ratio; what is translucent is laid over what is below."""


class Browser:
    """A page in Chromium: what a reader does, and what the page shows of it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, address: str = "") -> None:
        """Opens a file in a fresh document, and waits until it can be used."""
        self.driver.get("about:blank")
        self._forget()
        self.driver.get(path.as_uri() + address)
        assert self.ready > 0

    @property
    def ready(self) -> float:
        """Milliseconds from opening the file until the page could be used."""
        return float(self.run("return performance.getEntriesByName('tfdevice-ready')[0].startTime"))

    @property
    def painted(self) -> float:
        """Milliseconds from opening the file until its content was seen."""
        entry = "performance.getEntriesByName('first-contentful-paint')[0]"
        self.wait(lambda: self.run(f"return {entry} !== undefined"))
        return float(self.run(f"return {entry}.startTime"))

    def wait(self, until: Callable[[], bool]) -> None:
        """Waits for what comes with the next picture, not at once."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, 10, poll_frequency=0.05).until(lambda _: until())

    @property
    def errors(self) -> list[str]:
        """What the console said since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    @property
    def requests(self) -> list[str]:
        """What the page asked for since it was opened."""
        messages = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        sent = [m for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [message["params"]["request"]["url"] for message in sent]

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def texts(self, selector: str) -> list[str]:
        """The texts of elements, as they are shown."""
        return [element.text for element in self.all(selector)]

    def text(self, selector: str) -> str:
        return str(self.one(selector).text)

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def press(self, *keys: str) -> None:
        """Types into whatever has the keyboard."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def focused(self, attribute: str = "id") -> str | None:
        found: str | None = self.driver.switch_to.active_element.get_attribute(attribute)
        return found

    def emulate(self, **features: str) -> None:
        """Media features, ``prefers_color_scheme="dark"``."""
        media = [{"name": n.replace("_", "-"), "value": value} for n, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def poor_contrast(self) -> list[str]:
        """Texts whose contrast is below the 4.5 of WCAG 2, level AA; patterns aside."""
        return list(self.run(CONTRAST))

    def _forget(self) -> None:
        for log in ("browser", "performance"):
            self.driver.get_log(log)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium, closed at the end."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        browser = Browser(driver)
        browser.resize(1400, 1000)
        yield browser
    finally:
        driver.quit()
