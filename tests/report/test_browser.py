"""The report as a browser sees it."""

import shutil
import subprocess
from dataclasses import replace

import pytest

from embedtopics import report
from embedtopics.topics.results import Edit
from tests.factories import make_result

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--window-size=1300,1000", "--virtual-time-budget=15000",
    "--enable-logging=stderr", "--v=0", "--dump-dom",
)  # fmt: skip
ATTACK = (
    "</script><script>document.title='pwned'</script><img src=x onerror=\"document.title='p'\">"
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    result = make_result(texts=[ATTACK], topic_labels=[ATTACK])
    topic = result.topics[0]
    shown = replace(topic, representatives=(0,), keywords=(ATTACK,), weights=(1.0,))
    result = replace(
        result, topics=(shown, *result.topics[1:]), history=(Edit("rename", message=ATTACK),)
    )
    path = report.write_report(result, folder / "report.html")
    return subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", path.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip


def test_markup_in_a_text_shows_as_text_and_does_nothing(seen):
    assert "<title>Topics of 313 rows</title>" in seen.stdout
    assert "&lt;script&gt;document.title='pwned'&lt;/script&gt;" in seen.stdout
    assert "<img" not in seen.stdout.split("application/json")[0]


def test_both_figures_are_drawn(seen):
    body = seen.stdout.split("application/json")[0]
    assert body.count('class="main-svg"') >= 2
    assert "gl-canvas" in body
    assert "WebGL is not supported" not in body
    assert body.count('class="annotation"') == 6


def test_the_console_is_silent(seen):
    assert [line for line in seen.stderr.splitlines() if "CONSOLE" in line] == []
