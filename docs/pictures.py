"""Make the pictures of the README and the guides in docs/images, in headless Chromium.

``python docs/pictures.py`` needs the dependency groups dev and docs, and Chromium. The texts are
those of the demo corpus. The map of the README needs the speeches of the UN General Debate (CC0) in
the folder that ``EMBEDTOPICS_DATA`` names; without them it stays as it is.
"""

from __future__ import annotations

import base64
import io
import json
import os
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

SPEECHES = Path(os.environ.get("EMBEDTOPICS_DATA", "")) / "un_general_debate"
PAGE_HEADER = r"\d\d-\d{5}.{0,40}?A/\d+/PV\.\S+|A/\d+/PV\.\S+.{0,40}?\d\d-\d{5}(?: \d+/\d+)?"
SEARCH = """(box => { box.value = 'water'; box.dispatchEvent(new Event('input')); })(
    document.getElementById('search'))"""


def save(png: bytes, name: str) -> None:
    """Write a picture with as many colours as a palette holds, which makes it small."""
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    image.save(ROOT / "docs" / "images" / f"{name}.png", optimize=True)


def speeches() -> et.Corpus:
    """Return every fifth passage, of 120 words or fewer, of the speeches from 2015 on."""
    table = pd.read_json(SPEECHES / "un_general_debate.jsonl.gz", lines=True)
    table = table[table["year"] >= 2015]
    table["text"] = table["text"].replace({r"\s+": " ", PAGE_HEADER: ""}, regex=True)
    passages = et.Corpus(table, text="text", time="year", group="country").passages(max_words=120)
    return passages[::5]


def photograph(
    browser: Browser, url: str, name: str, script: str = "1", part: str | None = None
) -> None:
    """Open an address, run a script, and store what is seen of the page or of a part."""
    browser.call("Page.navigate", url=url)
    browser.wait("document.readyState === 'complete'")
    browser.ask(f"new Promise(r => setTimeout(r, 2500)).then(() => {script})")
    browser.ask("new Promise(r => setTimeout(r, 1500)).then(() => 1)")
    clip = {}
    if part is not None:
        sides = browser.ask(f"document.querySelector({part!r}).getBoundingClientRect().toJSON()")
        names = ("x", "y", "width", "height")
        clip["clip"] = {side: sides[side] for side in names} | {"scale": 1}
    save(base64.b64decode(browser.call("Page.captureScreenshot", **clip)["data"]), name)


def main() -> None:
    """Make all pictures."""
    measured = json.loads((ROOT / "benchmarks" / "results" / "growth.json").read_text("utf-8"))
    save(growth.draw(measured).to_image("png"), "growth")
    demo = pd.read_csv(ROOT / "data" / "demo.csv", keep_default_na=False)
    demo = demo[demo["language"] == "en"]
    corpus = et.Corpus(demo, text="text", time="date", group="source")
    result = et.TopicModel(random_state=42).fit(corpus).result_
    trends = et.topics.over_time(result, every="quarter")
    save(et.plots.over_time(trends).to_image("png", width=1000), "over_time")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        et.report.write_report(result, folder / "study.html")
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
        if SPEECHES.is_dir():
            debate = et.TopicModel(random_state=42).fit(speeches()).result_
            et.report.write_report(debate, folder / "debate.html")
            browser = Browser(folder, size=(980, 720), scale=2)
            url = (folder / "debate.html").as_uri()
            photograph(browser, url, "debate", "document.querySelector('.tools').remove()", "#maps")
            browser.close()


if __name__ == "__main__":
    main()
