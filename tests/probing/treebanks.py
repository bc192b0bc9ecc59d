"""Treebanks made by hand, and a writer of CoNLL-U, for tests."""

from pathlib import Path

from embedtopics.probing.results import Sentence, Treebank

OTHERS = ("lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")

FRENCH_FILE = Path(__file__).with_name("french.conllu")
FRENCH = FRENCH_FILE.read_text("utf-8")


def sentence(words, heads=(), id="", **columns):
    """A sentence of words that are parted by blanks; columns are such strings, too."""
    forms = tuple(words.split())
    text, spans, at = " ".join(forms), [], 0
    for form in forms:
        spans.append((at, at + len(form)))
        at += len(form) + 1
    split = {name: tuple(cells.split()) for name, cells in columns.items()}
    assert all(len(cells) == len(forms) for cells in split.values()), words
    return Sentence(id, text, forms, split, tuple(heads), tuple(spans))


def treebank(*sentences, source="made"):
    return Treebank(source, tuple(sentences), tuple(sentences[0].columns))


def n_each_in_one_part(keys, parts):
    """Tell how many keys there are, none of which is in two parts."""
    found = set(zip(keys, parts, strict=True))
    assert len(found) == len({key for key, _ in found})
    return len(found)


def conllu(sentences):
    """Sentences as CoNLL-U; what their spans do not part by a blank has SpaceAfter=No."""
    lines = []
    for one in sentences:
        lines += [f"# sent_id = {one.id}", f"# text = {one.text}"]
        for place, word in enumerate(one.words):
            n_words = one.spans.count(one.spans[place])
            if n_words > 1 and one.spans.index(one.spans[place]) == place:
                begin, end = one.spans[place]
                number = f"{place + 1}-{place + n_words}"
                lines.append("\t".join([number, one.text[begin:end], *"________"]))
            head = str(one.heads[place]) if one.heads else "_"
            cells = [one.columns[name][place] for name in OTHERS]
            assert cells[4] == head
            lines.append("\t".join([str(place + 1), word, *cells]))
        lines.append("")
    return "\n".join(lines) + "\n"
