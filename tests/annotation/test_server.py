"""The page over HTTP: labels, undo, who is refused; and once in a browser, by keyboard."""

import json

import numpy as np
import pytest

from embedtopics.annotation import serve
from tests.annotation.conftest import NAMES, full_disk
from tests.factories import refuses
from tests.report.driving import IN_A_BROWSER, Browser, check_console, check_requests, fetch, served

ATTACK = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='p'\">"


def do(server, action, **content):
    status, _, answer = fetch(server, f"/api/{action}", content)
    assert status == 200, answer
    return json.loads(answer)


def test_labels_skips_and_undo_over_http(begin, toy, truth):
    texts, vectors, _ = toy
    hostile = [ATTACK, *texts[1:]]
    study = begin(corpus=hostile, encoder=vectors)
    with served(serve(study, annotator="Ada")) as server:
        state = json.loads(fetch(server, "/api/state")[2])
        assert [one["name"] for one in state["labels"]] == NAMES and state["annotator"] == "Ada"
        first = do(server, "next", tab="a")["next"]
        other = do(server, "next", tab="b")["next"]
        assert first["key"] != other["key"] and {first["text"], other["text"]} <= set(hostile)
        assert do(server, "next", tab="a", fresh=True)["next"] == first
        done = do(server, "label", key=first["key"], labels=["chess"], unsure=True, note="<b>")
        assert done["progress"]["labelled"] == 1
        do(server, "skip", key=other["key"])
        assert do(server, "undo", tab="a")["next"]["key"] == other["key"]
        back = do(server, "undo", tab="a")
        assert back["next"]["key"] == first["key"] and back["progress"]["answered"] == 0
        do(server, "label", key=first["key"], labels=["fruit"], stream=first["stream"])
        status, _, answer = fetch(server, "/api/label", {"key": first["key"], "labels": ["pear"]})
        assert status == 400 and "labels must be one of" in json.loads(answer)["error"]
    frame = study.to_frame()
    assert frame[["annotator", "label", "note"]].values.tolist() == [["Ada", "fruit", ""]]


def test_texts_are_found_noted_and_hinted_at(begin, toy, truth):
    texts, vectors, _ = toy
    study = begin(corpus=[ATTACK, *texts[1:]], encoder=vectors)
    with served(serve(study)) as server:
        assert do(server, "hint", key=study.keys[0])["label"] is None
        for _ in range(30):
            text = do(server, "next", tab="a")["next"]
            label = truth.get(text["text"], "chess")
            do(server, "label", key=text["key"], labels=[label], note="odd" if _ == 3 else "",
               unsure=_ == 5)  # fmt: skip
        noted = json.loads(fetch(server, "/api/noted")[2])["found"]
        assert [(one["note"], one["unsure"]) for one in noted] == [("", True), ("odd", False)]
        word = texts[7].split()[0].upper()
        found = do(server, "search", query=word)
        holds = [key for key in study.keys if word.lower() in study.state.texts.text(key).lower()]
        assert found["n"] == len(holds) and {one["key"] for one in found["found"]} <= set(holds)
        said = [one["labels"] is not None for one in found["found"]]
        assert said == sorted(said)
        assert do(server, "search", query=f"{word} zzz") == {"found": [], "n": 0}
        opened = next(one["key"] for one in found["found"] if one["labels"] is None)
        assert do(server, "queue", keys=[opened]) == {"waiting": 1}
        assert do(server, "next", tab="b")["next"]["key"] == opened
        Browser.until(lambda: do(server, "hint", key=opened)["label"])
        hint = do(server, "hint", key=opened)
        assert hint["label"] == truth[study.state.texts.text(opened)]
        assert fetch(server, "/api/queue", {"keys": "x"})[0] == 400
        assert fetch(server, "/api/label", {"key": opened, "labels": [], "spans": "x"})[0] == 400


def test_estimates_come_with_enough_count_texts(begin, truth):
    study = begin()
    with served(serve(study)) as server:
        for _ in range(44):
            text = do(server, "next", tab="a")["next"]
            do(server, "label", key=text["key"], labels=[truth[text["text"]]])
        Browser.until(lambda: json.loads(fetch(server, "/api/state")[2])["estimates"])
        found = json.loads(fetch(server, "/api/state")[2])["estimates"]
    assert [one["name"] for one in found["classes"]] == NAMES
    assert all(0 <= one["low"] <= one["share"] <= one["high"] <= 1 for one in found["classes"])
    assert found["accuracy"][0] > 0.9


@pytest.mark.parametrize(
    ("path", "content", "headers", "status"),
    [
        ("/", None, {"X-Token": None}, 403),
        ("/api/state", None, {"X-Token": None}, 403),
        ("/api/state", None, {"Origin": "http://evil.example"}, 403),
        ("/api/state", None, {"Host": "evil.example"}, 403),
        ("/api/undo", {"tab": "a"}, {"Origin": None}, 403),
        ("/api/undo", b"x" * 100_001, {}, 413),
        ("/api/undo", b"[1]", {}, 400),
        ("/api/undo", b"", {}, 400),
        ("/?token=%C2%B2", None, {"X-Token": None}, 403),
        ("/api/state?token=%FF", None, {"X-Token": None}, 403),
        ("/api/state", None, {"X-Token": "\u00e9"}, 403),
        ("/api/label", {"key": "x", "labels": "fruit"}, {}, 400),
        ("/../_server.py", None, {}, 404),
        ("/api/label", None, {}, 404),
    ],
)
def test_requests_that_are_refused_change_nothing(begin, path, content, headers, status):
    study = begin()
    with served(serve(study)) as server:
        code, found, answer = fetch(server, path, content, **headers)
        assert code == status and "error" in json.loads(answer)
        assert "default-src 'none'" in found["Content-Security-Policy"]
    assert study.to_frame().empty


def test_the_page_names_no_other_place_and_holds_the_token(begin):
    with served(serve(begin())) as server:
        for path in ("/", "/page.css", "/page.js"):
            status, headers, content = fetch(
                server, f"{path}?token={server.token}", **{"X-Token": None}
            )
            assert status == 200 and headers["Referrer-Policy"] == "no-referrer"
            outside = content.replace(b"http://www.w3.org/2000/svg", b"")
            assert b"http" not in outside and b"innerHTML" not in outside
        assert server.url.startswith("http://127.0.0.1:") and server.token in server.url


def test_a_port_that_is_taken_and_names_that_are_none(begin):
    study = begin()
    with served(serve(study)) as server, refuses("port"):
        serve(study, port=server.port)
    with refuses("port"):
        serve(study, port=70_000)
    with refuses("by"):
        serve(study, annotator="")


def opened(browser, url):
    browser.events.clear()
    browser.call("Page.navigate", url=url)
    browser.wait("document.querySelectorAll('#labels button').length > 0")
    browser.wait("document.querySelector('#text').textContent.length > 0")


def keyed(browser, key):
    """Press a key and wait until the text has changed."""
    before = browser.ask("document.querySelector('#text').textContent")
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key)
    browser.wait(f"document.querySelector('#text').textContent !== {json.dumps(before)}")
    return before


class TestInABrowser:
    pytestmark = IN_A_BROWSER

    def test_fifty_texts_by_keyboard_undo_reload_and_hostile_text(self, browser, begin, toy, truth):
        texts, vectors, _ = toy
        hostile = [ATTACK, "word " * 20_000, *texts[2:]]
        truth = {**truth, ATTACK: "chess", hostile[1]: "train"}
        study = begin(
            [{"name": n, "definition": ATTACK} for n in NAMES], corpus=hostile, encoder=vectors
        )
        with served(serve(study)) as server:
            opened(browser, server.url)
            key_of = {name: str(place) for place, name in enumerate(NAMES, 1)}
            seen = []
            for _ in range(50):
                text = browser.ask("document.querySelector('#text').textContent")
                seen.append(keyed(browser, key_of[truth[text]]))
            assert len(set(seen)) == 50
            waiting = keyed(browser, "ArrowLeft")
            assert browser.ask("document.querySelector('#text').textContent") == seen[-1]
            keyed(browser, key_of[truth[seen[-1]]])
            assert browser.ask("document.querySelector('#text').textContent") == waiting
            opened(browser, server.url)
            browser.wait("document.querySelectorAll('.share').length === 3")
            assert browser.ask("document.title") == "Label texts"
            assert browser.ask("document.querySelectorAll('img').length") == 0
            check_requests(browser, server)
            check_console(browser)
        labels = study.labels().dropna()
        assert len(labels) == 50 and all(truth[hostile[row]] == one for row, one in labels.items())

    def test_a_full_disk_is_said_and_what_was_typed_stays(self, browser, begin):
        study = begin()
        with served(serve(study)) as server:
            opened(browser, server.url)
            text = browser.ask("document.querySelector('#text').textContent")
            browser.press("/")
            note = "a note 1 " + "x" * 9000
            browser.type(note)
            browser.press("Escape")
            with full_disk(study):
                browser.press("1")
                browser.wait("document.querySelector('#message').textContent.includes('is full')")
            assert browser.ask("document.querySelector('#text').textContent") == text
            keyed(browser, "1")
            assert browser.ask("document.querySelector('#message').textContent") == ""
        assert study.to_frame()[["label", "note"]].values.tolist() == [["fruit", note]]

    def test_several_labels_and_a_narrow_page(self, browser, begin):
        study = begin(kind="several")
        with served(serve(study)) as server:
            browser.call("Emulation.setDeviceMetricsOverride", width=390, height=800,
                         deviceScaleFactor=1, mobile=True)  # fmt: skip
            opened(browser, server.url)
            assert browser.ask("document.documentElement.scrollWidth") <= 390
            browser.press("1")
            browser.press("3")
            browser.press("?")
            keyed(browser, "Enter")
            keyed(browser, "Enter")
        frame = study.to_frame()
        assert frame["label"].tolist() == [["fruit", "chess"], []]
        assert frame["unsure"].tolist() == [True, False]

    def test_parts_are_marked_by_mouse_and_by_keys(self, browser, begin, toy):
        texts, vectors, _ = toy
        hostile = [f"\U0001f600 {ATTACK} {text}" for text in texts]
        study = begin(kind="spans", corpus=hostile, encoder=vectors)
        with served(serve(study)) as server:
            opened(browser, server.url)
            text = browser.ask("document.querySelector('#text').textContent")
            for _ in range(3):
                browser.press("ArrowDown")
            browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowDown", modifiers=8)
            browser.press("2")
            browser.ask(
                "(() => { const node = document.querySelector('#text').lastChild;"
                " const range = document.createRange(); range.setStart(node, node.length - 5);"
                " range.setEnd(node, node.length); const s = getSelection(); s.removeAllRanges();"
                " s.addRange(range); return 0; })()"
            )
            browser.press("1")
            assert browser.ask("document.querySelectorAll('#text mark.span').length") >= 2
            assert browser.ask("document.querySelector('#text').textContent") == text
            keyed(browser, "Enter")
            assert browser.ask("document.title") == "Label texts"
        (spans,) = study.to_frame()["spans"]
        marked = [(name, text[begin:end]) for name, begin, end in spans]
        assert marked[1] == ("fruit", text[-5:].strip())
        assert marked[0] == ("train", "script>")  # after an emoji, which is one character here

    def test_a_killed_server_goes_on_and_two_tabs_share_no_text(self, browser, toy, tmp_path):
        import signal
        import subprocess
        import sys

        script = tmp_path / "study.py"
        script.write_text(
            "import json, sys, numpy as np\n"
            "from embedtopics import AnnotationProject\n"
            "from embedtopics.annotation import serve\n"
            "texts, vectors = json.load(open(sys.argv[1])), np.load(sys.argv[2])\n"
            f"study = AnnotationProject(texts, {NAMES!r}, sys.argv[3], encoder=vectors)\n"
            "server = serve(study)\nprint(server.url, flush=True)\nserver.run()\n"
        )
        (tmp_path / "texts.json").write_text(json.dumps(list(toy[0])))
        np.save(tmp_path / "vectors.npy", toy[1])
        command = [sys.executable, str(script), str(tmp_path / "texts.json"),
                   str(tmp_path / "vectors.npy"), str(tmp_path / "study")]  # fmt: skip

        def begun():
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            with process.stdout:
                return process, process.stdout.readline().strip()

        process, url = begun()
        try:
            opened(browser, url)
            seen = [keyed(browser, "1") for _ in range(5)]
            process.send_signal(signal.SIGKILL)
            process.wait()
            text = browser.ask("document.querySelector('#text').textContent")
            browser.press("1")
            browser.wait("document.querySelector('#message').textContent.includes('answer')")
            assert browser.ask("document.querySelector('#text').textContent") == text
            process, url = begun()
            opened(browser, url)
            browser.wait("document.querySelector('#counts').textContent.startsWith('5 of')")
            first = browser.ask("document.querySelector('#text').textContent")
            assert first not in seen
            browser.ask("sessionStorage.setItem('tab', 'another'); 0")
            opened(browser, url)
            assert browser.ask("document.querySelector('#text').textContent") != first
        finally:
            process.kill()
            process.wait()
