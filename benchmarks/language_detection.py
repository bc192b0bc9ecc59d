"""How often the language of a sentence is recognized, for the 205 languages of SIB-200.

An answer is right if it is the ISO 639-1 code of the language or of the macrolanguage that contains
it, or the ISO 639-3 code where there is neither. "by_script" is the share of answers that follow
from the script alone: they say nothing of the language among those that share the script.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.corpora import _read_rows
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics.terms._languages import _by_script, detect_languages, language_of

# Two-letter codes that are not the first two letters of the code of FLORES-200.
CODES = dict(
    pair.split(":")
    for pair in (
        "acm:ar acq:ar aeb:ar ajp:ar apc:ar arb:ar ars:ar ary:ar arz:ar als:sq ayr:ay azb:az "
        "azj:az bak:ba bam:bm bel:be ben:bn bod:bo bos:bs bul:bg cat:ca ces:cs ckb:ku cym:cy "
        "deu:de dzo:dz ell:el epo:eo est:et eus:eu ewe:ee fao:fo fij:fj fuv:ff gaz:om gla:gd "
        "gle:ga glg:gl grn:gn hat:ht hye:hy ibo:ig ind:id isl:is jav:jv jpn:ja kas:ks kat:ka "
        "kaz:kk khk:mn kik:ki kin:rw kir:ky kmr:ku knc:kr kon:kg lim:li lin:ln lit:lt ltz:lb "
        "lug:lg lvs:lv mal:ml mar:mr mkd:mk mlt:mt mri:mi mya:my nld:nl nno:nn nob:no npi:ne "
        "nya:ny ory:or pan:pa pbt:ps pes:fa plt:mg pol:pl por:pt prs:fa quy:qu ron:ro run:rn "
        "rus:ru sag:sg san:sa sin:si slk:sk slv:sl sme:se sna:sn snd:sd som:so sot:st spa:es "
        "srd:sc srp:sr ssw:ss sun:su swe:sv swh:sw tam:ta tat:tt tel:te tgk:tg tgl:tl tir:ti "
        "tsn:tn tso:ts tuk:tk tur:tr twi:ak uig:ug ukr:uk urd:ur uzn:uz vie:vi wol:wo xho:xh "
        "ydd:yi yor:yo yue:zh zho:zh zsm:ms zul:zu aka:ak afr:af amh:am asm:as dan:da eng:en "
        "fin:fi fra:fr guj:gu hau:ha heb:he hin:hi hrv:hr hun:hu ita:it kan:kn khm:km kor:ko "
        "lao:lo oci:oc smo:sm tha:th taq:ber tzm:ber "
    ).split()
)


def measure(options: Options) -> dict[str, Any]:
    """Return the figures of each language; the options change nothing."""
    texts = defaultdict(list)
    for row in _read_rows("sib200/test.jsonl.gz"):
        texts[row["language"]].append(row["text"])
    figures = {}
    for language, sentences in sorted(texts.items()):
        expected = CODES.get(language[:3], language[:3])
        answers = [language_of(text) for text in sentences]
        wrong = Counter(code or "none" for code in answers if code != expected).most_common(1)
        scripts = [_by_script(text, sum(map(str.isalpha, text))) for text in sentences]
        figures[language] = {
            "expected": expected, "right": round(answers.count(expected) / len(answers), 3),
            "none": round(sum(not code for code in answers) / len(answers), 3),
            "most_frequent_wrong": wrong[0][0] if wrong else "",
            "by_script": round(sum(map(bool, scripts)) / len(scripts), 3),
            "main_of_corpus": detect_languages(sentences).main,
        }  # fmt: skip
    return {"languages": figures}


def render(result: Mapping[str, Any]) -> str:
    """Return the table: all languages, those with a script of their own, and the others."""
    languages = result["languages"].values()
    groups = {
        "all": list(languages),
        "follow from the script": [row for row in languages if row["by_script"] >= 0.5],
        "share a script": [row for row in languages if row["by_script"] < 0.5],
    }
    rows = []
    for name, group in groups.items():
        right = np.array([row["right"] for row in group])
        is_main = [row["main_of_corpus"] == row["expected"] for row in group]
        unanswered = np.mean([row["none"] for row in group])
        rows.append([
            name, str(len(group)), figure(right.mean(), 3), figure(np.median(right), 3),
            str((right >= 0.9).sum()), figure(unanswered, 3), str(sum(is_main)),
        ])  # fmt: skip
    header = ["languages", "number", "right", "median", "right in 0.9 or more", "no answer",
              "main language of all sentences right"]  # fmt: skip
    return markdown_table(header, rows)
