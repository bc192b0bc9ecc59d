"""Treebanks made by hand, and a writer of CoNLL-U, for tests."""

from embedtopics.probing.results import Sentence, Treebank

OTHERS = ("lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")

FRENCH = """\
# newdoc id = one
# sent_id = fr-1
# text = Il parle du chat.
1\tIl\til\tPRON\t_\tNumber=Sing|Person=3\t2\tnsubj\t_\t_
2\tparle\tparler\tVERB\t_\tMood=Ind|Tense=Pres|VerbForm=Fin\t0\troot\t_\t_
3-4\tdu\t_\t_\t_\t_\t_\t_\t_\t_
3\tde\tde\tADP\t_\t_\t5\tcase\t_\t_
4\tle\tle\tDET\t_\tNumber=Sing\t5\tdet\t_\t_
5\tchat\tchat\tNOUN\t_\tNumber=Sing\t2\tobl\t_\tSpaceAfter=No|Gloss=cat
5.1\tparle\tparler\tVERB\t_\t_\t_\t_\t2:conj\t_
6\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_

# sent_id = fr-2
1\tOui\toui\tINTJ\t_\t_\t0\troot\t_\tSpaceAfter=No
2\t!\t!\tPUNCT\t_\t_\t1\tpunct\t_\t_
"""


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
        begins = dict(one.ranges)
        for place, word in enumerate(one.words):
            if place in begins:
                begin, end = one.spans[place]
                number = f"{place + 1}-{begins[place]}"
                lines.append("\t".join([number, one.text[begin:end], *"________"]))
            head = str(one.heads[place]) if one.heads else "_"
            cells = [one.columns[name][place] for name in OTHERS]
            assert cells[4] == head
            lines.append("\t".join([str(place + 1), word, *cells]))
        lines.append("")
    return "\n".join(lines) + "\n"
