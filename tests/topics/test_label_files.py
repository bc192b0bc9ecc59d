import csv
import dataclasses
import io

import pytest

from embedtopics.topics import rename
from embedtopics.topics.editing._labels import read_labels, write_labels
from tests.factories import each, make_result, refuses


@pytest.fixture
def result():
    return make_result(texts=['=HYPERLINK("x")', "two\nlines, and a comma"], topic_labels=["=1+1"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "labels.csv"


def rows_of(path):
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def test_what_is_written(result, path):
    assert write_labels(result, path) == path
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    head, *rows = rows_of(path)
    assert head == ["topic", "label", "size", "terms", "example_1", "example_2", "example_3"]
    assert [int(row[0]) for row in rows] == list(range(6))
    assert [int(row[2]) for row in rows] == [topic.size for topic in result.topics]
    assert rows[0][1] == "'=1+1"
    cells = [cell for row in rows for cell in row]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert not any("\n" in cell for cell in cells)


def test_what_is_not_edited_is_no_change(result, path):
    write_labels(result, path)
    assert read_labels(path, result) == {}
    assert read_labels(path) == {topic.topic_id: topic.label for topic in result.topics}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_what_spreadsheets_do(result, path, delimiter, encoding, ending):
    write_labels(result, path)
    rows = rows_of(path)[1:]
    rows[1][1], rows[4][1], rows[5][1] = 'Élections, 2024; "quoted"', "'-minus", "  two\n words "
    del rows[3], rows[0]
    order = [6, 2, 1, 0]  # an example, the size, the label, the topic
    table = [[*(row[i] for i in order), "mine"] for row in reversed(rows)]
    table[0][3] = f"{table[0][3]}.0"
    table[1][3] = f"{table[1][3]},00"
    names = ["Example_3", " SIZE", "Label ", "TOPIC", "notes"]
    out = io.StringIO(newline="")
    # Python quotes a line feed only where one ends the lines; spreadsheets always do.
    quoting = csv.QUOTE_ALL if ending == "\r" else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=delimiter, lineterminator=ending, quoting=quoting)
    writer.writerows([names, *table, [""] * 5, []])
    path.write_bytes(out.getvalue().encode(encoding))
    expected = {5: "two words", 4: "-minus", 1: 'Élections, 2024; "quoted"'}
    assert read_labels(path, result) == expected
    named = rename(result, expected)
    assert read_labels(path, named) == {}
    assert read_labels(path)[2] == result.topics[2].label


def test_topics_csv_may_be_edited_too(result, tmp_path):
    from embedtopics.topics import export

    export(result, tmp_path / "topics.csv", what="topics")
    assert read_labels(tmp_path / "topics.csv", result) == {}


def test_an_own_apostrophe_stays(result, path):
    named = rename(result, {1: "'=x", 2: "'90s", 3: "+1"})
    write_labels(named, path)
    assert [row[1] for row in rows_of(path)[2:5]] == ["'=x", "'90s", "'+1"]
    assert read_labels(path, named) == {}
    assert read_labels(path)[2] == "'90s" and read_labels(path)[3] == "+1"


WRONG = {
    "labels": ["", "\n \n", "topic,name\n1,a\n", "label\na\n", "topic,label,Label\n1,a,b\n"],
    "topic": [
        "topic,label\n1,a\nx,b\n",
        "topic,label\n1.5,a\n",
        "topic,label\n,a\n",
        "topic,label\n\n1,a\n2,b\n1,c\n",
        "topic,label\n6,a\n",
        "topic,label\n-2,a\n",
        "topic;label\n1.000;x\n",
    ],
    "label": ["topic,label\n1,\n", "topic,label\n1\n"],
    "size": ["topic,label,size\n1,a,9999\n"],
}


@pytest.mark.parametrize(("parameter", "content"), each(**WRONG))
def test_bad_files(result, path, content, parameter):
    path.write_text(content)
    with refuses(parameter) as raised:
        read_labels(path, result)
    assert str(path) in str(raised.value)


def test_bytes_of_another_encoding_name_the_row(result, path):
    path.write_bytes("topic,label\n1,a\n2,Été\n".encode("latin-1"))
    with refuses("labels", row=3):
        read_labels(path, result)


def test_a_missing_file_and_a_folder(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        with refuses("labels"):
            read_labels(path)


@pytest.mark.parametrize(
    ("number", "size"),
    [
        *((1234, size) for size in ("1,234", "1234.0", "1234,00", " 1234 ", "")),
        *((2000, size) for size in ("2,000", "2.000", "2000", "2000,0", "2.000,00", "2 000")),
    ],
)
def test_a_size_may_be_spelt_otherwise(path, number, size):
    result = make_result()
    big = dataclasses.replace(result.topics[0], size=number)
    result = dataclasses.replace(result, topics=(big, *result.topics[1:]))
    path.write_text(f'topic;label;size\n0;x;"{size}"\n')
    assert read_labels(path, result) == {0: "x"}
