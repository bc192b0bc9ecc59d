"""Make the pictures of the README in docs/images, from the demo corpus, in headless Chromium.

``python docs/pictures.py`` needs the dependency groups dev and docs, and Chromium.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import tempfile
import threading
from pathlib import Path

import pandas as pd
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import embedtopics as et  # noqa: E402
from benchmarks import growth  # noqa: E402
from tests.report.driving import Browser  # noqa: E402

SEARCH = """(box => { box.value = 'water'; box.dispatchEvent(new Event('input')); })(
    document.getElementById('search'))"""


def save(png: bytes, name: str) -> None:
    """Write a picture with as many colours as a palette holds, which makes it small."""
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    image.save(ROOT / "docs" / "images" / f"{name}.png", optimize=True)


def photograph(browser: Browser, url: str, name: str, script: str = "1") -> None:
    """Open an address, run a script, and keep what is seen."""
    browser.call("Page.navigate", url=url)
    browser.wait("document.readyState === 'complete'")
    browser.ask(f"new Promise(r => setTimeout(r, 2500)).then(() => {script})")
    browser.ask("new Promise(r => setTimeout(r, 1500)).then(() => 1)")
    save(base64.b64decode(browser.call("Page.captureScreenshot")["data"]), name)


def main() -> None:
    """Make all pictures."""
    measured = json.loads((ROOT / "benchmarks" / "results" / "growth.json").read_text("utf-8"))
    save(growth.draw(measured).to_image("png"), "growth")
    demo = pd.read_csv(ROOT / "data" / "demo.csv", keep_default_na=False)
    corpus = et.Corpus(demo, text="text", time="date", group="source")
    result = et.TopicModel(random_state=42).fit(corpus).result_
    trends = et.topics.over_time(result, every="quarter")
    save(et.plots.over_time(trends).to_image("png", width=1000), "over_time")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        et.report.write_explorer(result, folder / "study.html")
        browser = Browser(folder, size=(1200, 720))
        photograph(browser, (folder / "study.html").as_uri(), "explorer", SEARCH)
        study = et.AnnotationProject(corpus, ["heat pumps", "other"], folder / "study")
        for _ in range(24):
            text = study.next()
            pumps = "heat pump" in text.text.lower()
            study.label(text.key, "heat pumps" if pumps else "other")
        server = et.annotation.serve(study)
        threading.Thread(target=server.run, daemon=True).start()
        photograph(browser, server.url, "annotate")
        server.close()
        study.close()
        browser.close()


if __name__ == "__main__":
    main()
