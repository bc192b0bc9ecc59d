"""The page and the API of an index: answers as those of Python, who is refused, and a browser."""

import json
import urllib.parse
from contextlib import closing

import pandas as pd
import pytest

from embedtopics import SearchIndex
from embedtopics.retrieval import serve
from tests.factories import refuses
from tests.report.driving import IN_A_BROWSER, Browser, check_console, check_requests, fetch, served
from tests.retrieval.oracle import build

ATTACK = "<img src=x onerror=\"document.title='pwned'\"><script>document.title='p'</script>"
PARTS = ["cat dog sea", "dog owl town", f"owl cat {ATTACK}", "hen fox town", "fox cat sea"]


@pytest.fixture(scope="module")
def index():
    frame = pd.DataFrame({
        "id": [f"a/{n} ü" for n in range(10)],
        "title": [f"Title {n} {ATTACK if n == 2 else ''}" for n in range(10)],
        "body": [f"{PARTS[n % 5]} \U0001f600 w{n}" for n in range(10)],
        "tags": [["x", "it's \\ \"q\""] if n % 2 else ["x", ATTACK] for n in range(10)],
        "year": [2000 + n % 3 for n in range(10)],
        "day": pd.to_datetime([f"202{n % 2}-01-0{n % 9 + 1}" for n in range(10)]),
        "share": [float("inf") if n == 1 else n / 7 for n in range(10)],
    })  # fmt: skip
    return build(frame, text=["title", "body"], id="id")


@pytest.fixture(scope="module")
def server(index):
    with served(serve(index)) as started:
        yield started


def ask(server, path, status=200, headers=None, **parameters):
    query = urllib.parse.urlencode(parameters, doseq=True)
    code, _, content = fetch(server, f"{path}?{query}", **(headers or {}))
    assert code == status, content
    return json.loads(content)


def test_answers_are_those_of_the_index(server, index):
    where = "year == 2001 or 'x' in tags"
    answer = ask(server, "/search", q="cat -owl", k=3, where=where)
    hits = index.search("cat -owl", 3, where=where, min_score=0)
    assert [one["id"] for one in answer["hits"]] == [hit.id for hit in hits]
    first, hit = answer["hits"][0], hits[0]
    assert (first["relevance"], first["terms"]) == (hit.relevance, hit.terms)
    assert "".join(piece for piece, _ in first["snippet"]) == str(hit.snippet)
    assert first["metadata"]["day"] == hit.metadata["day"].date().isoformat()
    assert answer["notes"] == ["For the query, search covers only documents without 'owl'."]
    assert ask(server, "/search", q="twon")["suggestions"] == {"twon": "town"}
    ids, others = list(index.ids[:2]), [index.ids[3]]
    like = ask(server, "/similar", id=ids, unlike=others, passage="sea", k=4)["hits"]
    expected = index.similar(ids, 4, unlike=others, passage="sea")
    assert [one["id"] for one in like] == [hit.id for hit in expected]
    assert like[0]["relevance"] == expected[0].relevance > 0
    counted = ask(server, "/facets", by=["tags", "day"], where="year == 2000")["facets"]
    assert counted["tags"][0] == ["x", 4] and dict(counted["day"]) == {"2020": 2, "2021": 2}
    assert ask(server, "/facets", by="tags", q="zzz qqq", mode="lexical")["facets"]["tags"] == []
    for id in index.ids:
        found = ask(server, f"/documents/{urllib.parse.quote(id, safe='')}")
        assert found["text"] == index.get(id).text
        if id == index.ids[1]:
            assert found["metadata"]["share"] is None  # infinity is no number of JSON
    about = ask(server, "/about")
    assert about["documents"] == 10 and about["facets"] == ["tags", "year", "day"]
    assert about["columns"] == index.columns and about["modes"][0] == "hybrid"


@pytest.mark.parametrize(
    ("path", "asked", "named"),
    [
        ("/search", {}, "q"), ("/search", {"q": ["a", "b"]}, "q"),
        ("/search", {"q": "a", "k": "0"}, "k"), ("/search", {"q": "a", "k": "²"}, "k"),
        ("/search", {"q": "a", "k": "999"}, "k"), ("/search", {"q": "a", "mode": "x"}, "mode"),
        ("/search", {"q": "a", "where": "year"}, "where"),
        ("/search", {"q": "a", "min_score": "high"}, "min_score"),
        ("/search", {"q": "a", "min_score": "nan"}, "min_score"),
        ("/search", {"q": "a", "wher": "x"}, "parameter"),
        ("/similar", {}, "id"), ("/similar", {"id": "none"}, "id"),
        ("/facets", {"by": "none"}, "by"), ("/facets", {"by": "tags", "where": "("}, "where"),
    ],
)  # fmt: skip
def test_bad_questions_name_what_is_wrong(server, path, asked, named):
    assert ask(server, path, 400, **asked)["error"].startswith(named)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/search", {"X-Token": None}, 403), ("/about", {"Host": "evil.example"}, 403),
        ("/documents/none", {}, 404), ("/documents/%20", {}, 404), ("/documents/", {}, 404),
        ("/../search.js", {}, 404), ("/search/more", {}, 404),
    ],
)  # fmt: skip
def test_invalid_requests_are_refused(server, path, headers, status):
    assert "error" in ask(server, path, status, headers)


def test_nothing_can_be_posted_and_the_page_names_no_other_place(server):
    assert fetch(server, "/search", {})[0] == 404
    for path in ("/", "/page.css", "/page.js"):
        _, headers, content = fetch(server, f"{path}?token={server.token}")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        content = content.replace(b"http://www.w3.org/2000/svg", b"")
        assert b"http" not in content and b"innerHTML" not in content
    with refuses("port"):
        serve(server.index, port=server.port)


def test_an_index_of_words_alone():
    index = SearchIndex.build(["cat dog", "owl"], encoder=None, show_progress=False)
    with served(serve(index)) as server:
        assert ask(server, "/about")["modes"] == ["lexical"]
        assert [one["relevance"] for one in ask(server, "/search", q="cat")["hits"]] == [1]
        assert "no vectors" in ask(server, "/similar", 400, id=index.ids[0])["error"]


class TestInABrowser:
    pytestmark = IN_A_BROWSER

    def test_search_filter_read_and_more_like_this(self, server, tmp_path):
        with closing(Browser(tmp_path, (1200, 900))) as browser:
            browser.call("Page.navigate", url=server.url)
            browser.wait("document.querySelectorAll('fieldset').length === 3")
            browser.type("owl twon")
            browser.ask("document.querySelector('#form').requestSubmit()")
            browser.wait("document.querySelectorAll('#hits li').length === 10")
            browser.wait("document.querySelector('#suggestion button').textContent === 'owl town'")
            browser.ask("document.querySelector('#suggestion button').click()")
            browser.wait("document.querySelector('#query').value === 'owl town'")
            for value in (ATTACK, 'it\'s \\ "q"'):  # a filter of any text is read by the server
                label = f"[...document.querySelectorAll('fieldset label')].find((one) => one.querySelector('span').textContent === {json.dumps(value)})"  # noqa: E501
                browser.wait(f"Boolean({label})")
                browser.ask(f"{label}.querySelector('input').click()")
                browser.wait("document.querySelector('#hits').children.length === 5")
                browser.wait(f"{label}?.querySelector('input').checked")
                browser.ask("document.querySelector('#asked button').click()")
                browser.wait("document.querySelector('#hits').children.length === 10")
            browser.press("/")
            browser.press("ArrowDown")
            assert browser.ask("document.activeElement.dataset.hit").startswith("a/")
            browser.ask("document.activeElement.click()")
            browser.wait("document.querySelector('#reader').open")
            marks = "[...document.querySelectorAll('#read-text mark')].map((m) => m.textContent)"
            assert "owl" in browser.ask(marks)
            browser.ask("getSelection().selectAllChildren(document.querySelector('#read-text'))")
            browser.wait("!document.querySelector('#read-passage').disabled")
            browser.ask("document.querySelector('#read-passage').click()")
            browser.wait("document.querySelector('#asked').textContent.includes('like “Title')")
            browser.ask("document.querySelector('#hits .link').click()")
            browser.wait("document.querySelector('#asked').textContent.startsWith('like a/')")
            browser.wait("document.querySelector('#hits').children.length === 9")
            browser.ask("document.querySelectorAll('#hits .link')[1].click()")
            browser.wait("document.querySelector('#asked').textContent.includes('not like a/')")
            browser.wait("document.querySelector('#hits').children.length === 8")
            browser.ask("history.go(-3)")
            browser.wait("document.querySelector('#query').value === 'owl town'")
            browser.wait("document.querySelector('#hits').children.length === 10")
            browser.call("Emulation.setDeviceMetricsOverride", width=420, height=900,
                         deviceScaleFactor=1, mobile=True)  # fmt: skip
            assert browser.ask("document.documentElement.scrollWidth") <= 420
            assert browser.ask("document.title") == "owl town – index"
            assert browser.ask("document.querySelectorAll('img').length") == 0
            check_requests(browser, server)
            check_console(browser)
