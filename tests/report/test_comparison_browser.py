"""The linked maps, used as a person would use them in a browser.

Thirty-six documents lie on a grid, in another order in each map, so that what a line encloses and
where each document must be drawn can be told by hand.
"""

import csv
from dataclasses import replace

import numpy as np
import pytest

from embedtopics import report
from embedtopics.plots._colors import group_colors
from tests.factories import make_comparison
from tests.report.driving import IN_A_BROWSER, check_console

ATTACK = (
    "</script><script>document.title='pwned'</script><!-- "
    "<img src=x onerror=\"document.title='p'\"> \u2028 'single' \"double\""
)
FORMULA = '=HYPERLINK("http://example.org","click")'
SIDE = 6
SPACING = 100.0

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def result():
    made = make_comparison(n_documents=SIDE * SIDE, n_groups=3, texts=[ATTACK, FORMULA])
    grid = np.array([(x, y) for y in range(SIDE) for x in range(SIDE)], dtype=np.float32)
    rng = np.random.default_rng(5)
    encoders = tuple(
        replace(view, map=SPACING * grid[rng.permutation(len(grid))]) for view in made.encoders
    )
    return replace(made, encoders=encoders)


@pytest.fixture(scope="module")
def opened(browser, result, tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    browser.open(report.write_report(result, folder / "comparison.html"))
    return browser


@pytest.fixture
def page(opened):
    opened.press("Escape")
    opened.ask("document.querySelector('.panels').scrollIntoView({block: 'center'})")
    opened.frame()
    return opened


class Map:
    """Where the documents of one map must be, by hand: from its place and the data's span."""

    def __init__(self, page, result, index):
        self.left, self.top, width, height = page.ask(
            f"(() => {{ const m = document.querySelectorAll('[data-map]')[{index}];"
            " const b = m.getBoundingClientRect();"
            " return [b.left, b.top, m.clientWidth, m.clientHeight]; })()"
        )
        border = 1
        self.left, self.top = self.left + border, self.top + border
        span = SPACING * (SIDE - 1)
        self.scale = (min(width, height) - 44) / span
        self.middle, self.span = np.array([width, height]) / 2, span
        self.places, self.page, self.index = result.encoders[index].map, page, index

    def inside(self, x, y):
        """Return pixels from the map's corner of a point given in the units of the data."""
        offset = (np.array([x, y]) - self.span / 2) * self.scale
        return self.middle[0] + offset[0], self.middle[1] - offset[1]

    def at(self, x, y):
        """Return pixels from the window's corner."""
        right, down = self.inside(x, y)
        return self.left + right, self.top + down

    def pixel(self, document, layer=0):
        """Return red, green, blue and alpha where a document lies."""
        right, down = self.inside(*self.places[document].tolist())
        # through a canvas of one pixel: reading a map itself again and again draws a warning
        return self.page.ask(
            "(() => { const one = new OffscreenCanvas(1, 1).getContext('2d'); one.drawImage("
            f"document.querySelectorAll('[data-map]')[{self.index}]"
            f".querySelectorAll('canvas')[{layer}], -Math.floor({right}), -Math.floor({down}));"
            " return [...one.getImageData(0, 0, 1, 1).data]; })()"
        )


def maps_of(page, result):
    return [Map(page, result, index) for index in range(len(result.encoders))]


def listed(page):
    return set(
        page.ask(
            "[...document.querySelectorAll('#listed [data-document]')]"
            ".map(e => +e.dataset.document)"
        )
    )


def full_color(result, document, *, chosen):
    """Return the colour of a document; in no group it is darker where others are faded."""
    color = [*group_colors(result), "#8a93a0" if chosen else "#d3d7dd"][result.groups[document]]
    share = 0.7 if result.groups[document] < 0 and not chosen else 0.8
    return np.array([255 - share * (255 - int(color[i : i + 2], 16)) for i in (1, 3, 5)])


def drawn_in_full(result, maps, document, *, chosen):
    """Tell for each map whether a document has its colour, and not a paler one."""
    color = full_color(result, document, chosen=chosen)
    return [bool(np.allclose(m.pixel(document)[:3], color, atol=4)) for m in maps]


def pale_color(result, document):
    """Return the colour of a document that is not selected while others are."""
    group = result.groups[document]
    if group < 0:
        return np.full(3, 233)
    color = group_colors(result)[group]
    return np.array([255 - 0.2 * (255 - int(color[i : i + 2], 16)) for i in (1, 3, 5)])


def check_selected(page, result, expected):
    """The list, the count and every map must agree with what was worked out by hand."""
    assert listed(page) == expected
    n_documents = len(result.documents)
    count = page.ask("document.getElementById('count').textContent")
    assert count == f"{len(expected)} of {n_documents} documents selected"
    maps = maps_of(page, result)
    for document in range(n_documents):
        if document in expected:
            assert all(drawn_in_full(result, maps, document, chosen=True))
        else:
            pale = pale_color(result, document)
            assert all(np.allclose(m.pixel(document)[:3], pale, atol=4) for m in maps)


def among(result, index, test):
    """Return the documents whose grid column and row in a map fulfil a test."""
    cells = np.rint(result.encoders[index].map / SPACING).astype(int).tolist()
    return {document for document, (x, y) in enumerate(cells) if test(x, y)}


def test_a_lasso_in_one_map_selects_the_same_documents_in_all(page, result):
    first = Map(page, result, 0)
    corners = [(-0.2, -0.2), (2.4, -0.2), (2.4, 1.4), (1.4, 1.4), (1.4, 3.4), (-0.2, 3.4)]
    page.drag([first.at(x * SPACING, y * SPACING) for x, y in corners])
    inside = among(result, 0, lambda x, y: (x <= 1 and y <= 3) or (x == 2 and y <= 1))
    assert len(inside) == 10
    check_selected(page, result, inside)


def test_a_box_in_another_map_selects_and_shift_adds(page, result):
    page.click_on("[data-tool=box]")
    page.ask("document.querySelector('.panels').scrollIntoView({block: 'center'})")
    second = Map(page, result, 1)
    page.drag([second.at(50, 50), second.at(250, 350)])
    box = among(result, 1, lambda x, y: x in (1, 2) and y in (1, 2, 3))
    check_selected(page, result, box)
    page.drag([second.at(450, 450), second.at(520, 520)], shift=True)
    check_selected(page, result, box | among(result, 1, lambda x, y: x == y == 5))
    page.click_on("[data-tool=lasso]")


@pytest.mark.parametrize("way", ["Escape", "double click", "button"])
def test_a_selection_ends(page, result, way):
    first = Map(page, result, 0)
    page.drag([first.at(-20, -20), first.at(520, -20), first.at(520, 130), first.at(-20, 130)])
    assert len(listed(page)) == 2 * SIDE
    if way == "Escape":
        page.press("Escape")
    elif way == "double click":
        page.click(*first.at(250, 250), times=2)
    else:
        page.click_on("#clear")
    assert page.ask("document.getElementById('selection').hidden")
    maps = maps_of(page, result)
    for document in range(len(result.documents)):
        assert all(drawn_in_full(result, maps, document, chosen=False))


def test_pointing_at_a_document_shows_it_in_all_maps_and_its_text_once(page, result):
    maps = maps_of(page, result)
    for document in (3, 20):
        page.mouse("Moved", *maps[1].at(*result.encoders[1].map[document].tolist()))
        page.frame()
        row = result.documents.first_rows[document]
        tips = page.ask("[...document.querySelectorAll('#tip p')].map(e => e.textContent)")
        assert tips == [" ".join(result.corpus.texts[row].split())]
        color = [*group_colors(result), "#d3d7dd"][result.groups[document]]
        marked = [int(color[i : i + 2], 16) for i in (1, 3, 5)] + [255]
        assert [m.pixel(document, layer=1) for m in maps] == [marked] * len(maps)
        for m, view in zip(maps, result.encoders, strict=True):
            away = set(range(36)) - {document} - set(view.graph.indices[document].tolist())
            assert not any(m.pixel(other, layer=1) == marked for other in away)
    page.mouse("Moved", 2, 2)
    page.frame()
    assert page.ask("document.getElementById('tip').hidden")
    # the names of the groups come back, and nothing is marked any more
    assert [m.pixel(20, layer=1)[:3] != marked[:3] or result.groups[20] < 0 for m in maps]


def test_a_click_compares_the_neighbours_of_a_document(page, result):
    document = 7
    m = Map(page, result, 2)
    page.click(*m.at(*m.places[document].tolist()))
    columns = page.ask(
        "[...document.querySelectorAll('#document .neighbors ol')].map(o => "
        "[...o.querySelectorAll('[data-document]')].map(e => +e.dataset.document))"
    )
    assert columns == [view.graph.indices[document].tolist() for view in result.encoders]
    notes = page.ask("[...document.querySelectorAll('#document li .id')].map(e => e.textContent)")
    every = [j for column in columns for j in column]
    words = {1: "only here", 2: "in 2 of 3", 3: "in every list"}
    assert notes == [words[every.count(j)] for j in every]


def test_the_legend_hides_a_group_in_all_maps_and_in_the_selection(page, result):
    group = 1
    page.click_on(f"[data-group='{group + 1}']")
    maps = maps_of(page, result)
    for document in range(len(result.documents)):
        whites = [m.pixel(document)[:3] == [255, 255, 255] for m in maps]
        assert whites == [bool(result.groups[document] == group)] * len(maps)
    first = maps[0]
    page.drag([first.at(-20, -20), first.at(520, -20), first.at(520, 520), first.at(-20, 520)])
    assert listed(page) == set(np.flatnonzero(result.groups != group).tolist())
    page.click_on(f"[data-group='{group + 1}']")
    page.click_on(f"[data-group='{group + 1}']", times=2)
    pressed = page.ask("[...document.querySelectorAll('[data-group]')].filter("
                       "e => e.ariaPressed === 'true').map(e => +e.dataset.group)")  # fmt: skip
    assert pressed == [group + 1]
    page.click_on(f"[data-group='{group + 1}']", times=2)


def test_a_search_selects_the_texts_that_hold_a_word(page, result):
    page.ask("document.getElementById('search').focus()")
    page.type("RIVER")
    texts = [result.corpus.texts[row] for row in result.documents.first_rows]
    expected = {i for i, text in enumerate(texts) if "river" in text}
    assert 0 < len(expected) < len(texts)
    check_selected(page, result, expected)


def test_the_keyboard_walks_over_a_map(page, result):
    page.ask("document.querySelectorAll('[data-map]')[0].focus()")
    page.press("ArrowRight")  # begins at the document in the middle
    start = page.ask("document.querySelector('#tip p').textContent")
    texts = [" ".join(result.corpus.texts[row].split()) for row in result.documents.first_rows]
    x, y = result.encoders[0].map[texts.index(start)].tolist()
    assert {x, y} <= {200.0, 300.0}
    page.press("ArrowLeft")
    left = page.ask("document.querySelector('#tip p').textContent")
    assert result.encoders[0].map[texts.index(left)].tolist() == [x - SPACING, y]
    page.press("Enter")
    assert page.ask("document.querySelector('#document p').textContent") == left


def test_a_move_shows_its_document(page, result):
    move = result.moves[1]
    page.click_on(f"#moves [data-document='{move.document}']")
    row = result.documents.first_rows[move.document]
    shown = page.ask("document.querySelector('#document p').textContent")
    assert shown == " ".join(result.corpus.texts[row].split())


def test_the_selection_is_downloaded_without_formulas(page, result, tmp_path):
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path),
              eventsEnabled=False)  # fmt: skip
    m = Map(page, result, 0)
    page.drag([m.at(-20, -20), m.at(520, -20), m.at(520, 520), m.at(-20, 520)])
    page.click_on("#download")
    page.until(lambda: (tmp_path / "selection.csv").is_file())
    with (tmp_path / "selection.csv").open(encoding="utf-8-sig", newline="") as file:
        head, *lines = csv.reader(file)
    assert head == ["id", "row", "group", "text"]
    rows = sorted(result.documents.first_rows.tolist())
    names = [*result.group_names, "No group"]
    groups = dict(zip(result.documents.first_rows.tolist(), result.groups.tolist(), strict=True))
    for line, row in zip(lines, rows, strict=True):
        text = " ".join(result.corpus.texts[row].split())
        shown = "'" + text if text == FORMULA else text
        assert line == [result.corpus.ids[row], str(row + 1), names[groups[row]], shown]


def test_markup_in_a_text_shows_as_text_and_does_nothing(page, result):
    document = int(result.documents.of_row[0])
    m = Map(page, result, 0)
    page.mouse("Moved", *m.at(*m.places[document].tolist()))
    page.frame()
    assert page.ask("document.querySelector('#tip p').textContent") == " ".join(ATTACK.split())
    page.drag([m.at(-20, -20), m.at(520, -20), m.at(520, 520), m.at(-20, 520)])
    assert " ".join(ATTACK.split()) in page.ask("document.getElementById('listed').textContent")
    assert page.ask("document.title") == "3 encoders on 38 rows"
    assert page.ask("document.querySelectorAll('main script, main img').length") == 0


def test_nothing_is_reported_and_nothing_is_fetched(page):
    check_console(page)
    fetched = [
        event["params"]["request"]["url"]
        for event in page.events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert [url.split(":")[0] for url in fetched if not url.startswith("blob:")] == ["file"]
