"""CoNLL-U and token tables: what is read, and what is refused, with its line."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.probing import read_treebank
from embedtopics.probing.results import Sentence
from tests.factories import refuses
from tests.probing.treebanks import FRENCH, OTHERS, conllu


@pytest.fixture
def written(tmp_path):
    def write(content, name="made.conllu"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def test_words_are_the_units_and_multiword_tokens_their_place(written):
    bank = read_treebank(written(FRENCH))
    first, second = bank.sentences
    assert (first.id, first.text) == ("fr-1", "Il parle du chat.")
    assert first.words == ("Il", "parle", "de", "le", "chat", ".")
    assert [first.text[a:b] for a, b in first.spans] == ["Il", "parle", "du", "du", "chat", "."]
    assert first.spans[2] == first.spans[3] and first.heads == (2, 0, 5, 5, 2, 2)
    assert first.columns["upos"] == ("PRON", "VERB", "ADP", "DET", "NOUN", "PUNCT")
    assert first.columns["misc"][4] == "SpaceAfter=No|Gloss=cat"
    assert set(first.columns) == set(bank.columns) == set(OTHERS)
    # There is no comment with the text of the second.
    assert (second.text, second.spans) == ("Oui!", ((0, 3), (3, 4)))
    assert (len(bank), len(bank.to_frame()), bank.source) == (2, 8, "made.conllu")
    assert [(d.name, d.value) for d in bank.decisions] == [
        ("multiword_tokens", 1), ("empty_nodes", 1),
    ]  # fmt: skip


def test_gzip_a_byte_order_mark_and_windows_line_ends_change_nothing(written):
    plain = read_treebank(written(FRENCH))
    marked = b"\xef\xbb\xbf" + FRENCH.replace("\n", "\r\n").encode()
    assert read_treebank(written(marked, "made.conllu.gz")).sentences == plain.sentences


def test_text_that_is_not_that_of_the_words_is_made_from_these(written):
    other = FRENCH.replace("Il parle du chat.", "Il parle d'un chat.")
    bank = read_treebank(written(other.replace("Oui", "O\u2028u\x85i")))
    assert bank.sentences[0].text == "Il parle du chat."
    assert bank.decisions[-1].name == "texts_made"
    # Line ends of Unicode are part of a word.
    assert bank.sentences[1].words[0] == "O\u2028u\x85i"


def test_sentences_without_heads_are_counted(written):
    lines = [line.split("\t") for line in FRENCH.split("\n")]
    bare = "\n".join("\t".join([*f[:6], "_", *f[7:]]) if len(f) == 10 else f[0] for f in lines)
    bank = read_treebank(written(bare))
    assert all(one.heads == () for one in bank.sentences)
    assert bank.decisions[-1].name == "without_heads" and bank.decisions[-1].value == 2


BROKEN = {
    "two columns are missing": ("\tnsubj\t_\t_", "\tnsubj", "made", 1),
    "a number is left out": ("\n2\tparle", "\n3\tparle", "id", 1),
    "a number is none": ("\n2\tparle", "\nb\tparle", "made", 1),
    "a number is huge": ("\n2\tparle", "\n" + "9" * 5000 + "\tparle", "made", 1),
    "a range ends before it begins": ("\n3-4", "\n3-2", "made", 1),
    "a range has too few words": ("\n3-4", "\n3-9", "id", 1),
    "ranges overlap": ("\n4\tle", "\n4-5\tx" + "\t_" * 8 + "\n4\tle", "id", 1),
    "a head is out of range": ("\t5\tcase", "\t7\tcase", "head", 1),
    "a head is the word": ("\t5\tcase", "\t3\tcase", "head", 1),
    "a head is none": ("\t5\tcase", "\t_\tcase", "head", 1),
    "a head is negative": ("\t5\tcase", "\t-1\tcase", "head", 1),
    "a head is a number of others": ("\t5\tcase", "\t\u0665\tcase", "head", 1),
    "there are two roots": ("\t2\tobl", "\t0\tobl", "head", 1),
    "words hang on one another": ("\t2\tobl", "\t3\tobl", "head", 1),
    "there is no root": ("\t0\troot\t_\t_\n3", "\t1\troot\t_\t_\n3", "head", 1),
    "a form is empty": ("1\tOui", "1\t", "made", 13),
    "comments alone": ("# newdoc id = one\n", "# newdoc id = one\n\n", "id", 1),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_sentences_are_named(written, case):
    before, after, parameter, row = BROKEN[case]
    assert before in FRENCH
    with pytest.raises(InputError) as caught:
        read_treebank(written(FRENCH.replace(before, after, 1)))
    assert caught.value.line == row and caught.value.parameter.startswith(parameter)


def test_bytes_that_are_not_utf8_are_named(written):
    with refuses("made.conllu", line=14):
        read_treebank(written(FRENCH.encode().replace(b"Oui", b"Ou\xffi")))


def test_files_that_are_none(written, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_treebank(tmp_path / "nothing.conllu")
    with refuses("path"):
        read_treebank(tmp_path)
    with refuses("made.conllu"):
        read_treebank(written("\n\n"))
    with refuses("id in made.conllu", line=1):
        read_treebank(written("0.1\tx" + "\t_" * 8 + "\n"))
    with pytest.raises(InputError, match="gzip"):
        (tmp_path / "bad.gz").write_bytes(b"no gzip")
        read_treebank(tmp_path / "bad.gz")


_form = st.text(
    st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1, max_size=4
).filter(lambda form: form != "_")
_cell = st.text("abc=|:", min_size=1, max_size=5)


@st.composite
def _sentences(draw):
    """A sentence with a random tree, spacing, multi-word tokens and labels."""
    n = draw(st.integers(1, 6))
    words = tuple(draw(_form) for _ in range(n))
    order = draw(st.permutations(range(n)))
    heads = [0] * n
    for place in range(1, n):
        heads[order[place]] = order[draw(st.integers(0, place - 1))] + 1
    ranges, begin = [], 0
    while begin < n:
        end = draw(st.integers(begin + 1, min(n, begin + 3)))
        if end > begin + 1:
            ranges.append((begin, end))
        begin = end
    text, spans, ends = "", [], dict(ranges)
    for place in range(n):
        inside = any(a < place < b for a, b in ranges)
        if inside:
            spans.append(spans[-1])
            continue
        form = draw(_form) if place in ends else words[place]
        text += " " if text and draw(st.booleans()) else ""
        spans.append((len(text), len(text) + len(form)))
        text += form
    columns = {name: tuple(draw(_cell) for _ in range(n)) for name in OTHERS}
    columns["head"] = tuple(map(str, heads))
    id = f"s{draw(st.integers(0, 99))}"
    return Sentence(id, text, words, columns, tuple(heads), tuple(spans))


@given(st.lists(_sentences(), min_size=1, max_size=3))
def test_what_is_written_is_read_again(tmp_path_factory, sentences):
    path = tmp_path_factory.getbasetemp() / "round.conllu"
    path.write_bytes(conllu(sentences).encode())
    bank = read_treebank(path)
    assert list(bank.sentences) == sentences
    assert not any(decision.name == "texts_made" for decision in bank.decisions)


TABLE = "sent_id\ttok_id\tform\tupos\thead\na\t1\tYes\tINTJ\t0\na\t2\t.\tPUNCT\t1\nb\t1\tNo\tX\t0\n"


def test_tables_end_sentences_at_empty_lines_and_new_ids(written):
    bank = read_treebank(written(TABLE, "t.tsv"))
    assert [(s.id, s.words, s.heads) for s in bank.sentences] == [
        ("a", ("Yes", "."), (0, 1)), ("b", ("No",), (0,)),
    ]  # fmt: skip
    assert bank.columns == ("upos", "head") and bank.sentences[0].columns["upos"][1] == "PUNCT"
    assert bank.sentences[0].text == "Yes ." and bank.sentences[0].spans == ((0, 3), (4, 5))
    tags = read_treebank(written('token\ttag\n"\tO\n#ner\tB-x\n\n\nIt\tO', "w.tsv.gz"))
    assert [(s.id, s.words) for s in tags.sentences] == [("1", ('"', "#ner")), ("2", ("It",))]


def test_tables_with_commas_and_quotes(written):
    bank = read_treebank(written('word,tag\n"a,b",X\n"""",Y\n\nc,Z\n', "t.csv"))
    assert [s.words for s in bank.sentences] == [("a,b", '"'), ("c",)]
    bank = read_treebank(written("word\tsentence\na\t1\nb\t2\n", "k.tsv"))
    assert [s.id for s in bank.sentences] == ["1", "2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TABLE.replace("\t2\t.", "\t3\t."), "a line of t.tsv"),
        (TABLE.replace("PUNCT\t1", "PUNCT\t9"), "head in t.tsv"),
        (TABLE.replace("\tX", ""), "a line of t.tsv"),
        (TABLE.replace("\tNo", "\t "), "a line of t.tsv"),
        (TABLE.replace("form", "x"), "t.tsv"),
        (TABLE.replace("upos", "head"), "t.tsv"),
        ("form\n", "t.tsv"),
        ("", "t.tsv"),
    ],
)  # fmt: skip
def test_broken_tables(written, content, message):
    with refuses(message):
        read_treebank(written(content, "t.tsv"))


def test_quotes_that_are_never_closed(written):
    with refuses("t.csv", line=2):
        read_treebank(written('word,tag\n"a,b\n', "t.csv"))


@pytest.mark.benchmark_data
@pytest.mark.parametrize(
    ("name", "n_sentences", "n_words"),
    [
        ("ud_english_ewt/train", 12_544, 204_577), ("ud_english_ewt/dev", 2_001, 25_147),
        ("ud_english_ewt/test", 2_077, 25_094), ("ud_french_gsd/dev", 1_476, 35_721),
        ("ud_french_gsd/test", 416, 10_018), ("ud_french_sequoia/train", 2_231, 50_502),
        ("wnut17/train", 3_394, 62_730), ("wnut17/dev", 1_009, 15_733),
        ("wnut17/test", 1_287, 23_394),
    ],
)  # fmt: skip
def test_published_counts(data_folder, name, n_sentences, n_words):
    bank = read_treebank(data_folder / f"{name}.tsv.gz")
    assert (len(bank), len(bank.to_frame())) == (n_sentences, n_words)
