"""Words that libraries find, lemmas, social tokens, and words by a function of the user's own."""

import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import embedtopics as et
from embedtopics.encoders._registry import encoder_from_settings
from embedtopics.errors import InputError
from embedtopics.terms import _rules
from embedtopics.terms._rules import choose_rules, segment_run
from embedtopics.terms._spans import word_spans
from embedtopics.terms._tokens import join_tokens, texts_with, tokenize, usual_letters, words_of
from embedtopics.terms.results import WordRules
from embedtopics.topics._describe import count_social_tokens
from tests.factories import refuses

ASIAN = ["zh", "ja", "th", "lo", "km", "my"]
SENTENCES = {
    "zh": ("政府|宣布|新|的|经济|政策", "市民|来到|清华大学"),
    "ja": ("東京|都|に|住ん|で|いる|人々", "新しい|税金"),
    "th": ("รัฐบาล|ไทย|ประกาศ|นโยบาย|เศรษฐกิจ|ใหม่",),
    "lo": ("ລັດຖະບານ|ລາວ|ປະກາດ|ນະໂຍບາຍ|ເສດຖະກິດ|ໃໝ່",),
    "km": ("រាជរដ្ឋាភិបាល|កម្ពុជា|បាន|ប្រកាស|គោលនយោបាយ",),
    "my": ("မြန်မာနိုင်ငံ|အစိုးရ|သည်|စီးပွားရေး",),
}


def rules(words="auto", languages=ASIAN):
    return choose_rules(words, languages)[0]


def own(text):
    return re.findall(r"\w+|\W", text)


RULES = {
    "characters": WordRules(),
    "segmenters": rules(),
    "icu": WordRules(tuple((code, _rules._installed("icu4py")) for code in ASIAN)),
    "social": rules("social", []),
    "split": rules("social-split", []),
    "dropped": rules(["social-drop", "auto"]),
    "all": rules(["social", "auto"]),
    "own": WordRules(function=own),
    "search": WordRules(addresses=True),
    "search-split": WordRules(addresses=True, social="split"),
    "earlier": WordRules(version=1),
}


CUT = Path(__file__).with_name("words_by_hand.txt").read_text("utf-8").split("\n\n")[1:]
BY_HAND = {block[:2]: block[3:].strip() for block in CUT}


def agreement(code, by):
    """Return F1 of the words of the sentences that were cut by hand."""
    n_both = n_words = 0
    for line in BY_HAND[code].split("\n"):
        cut = line if code == "ko" else line.replace(" ", "|")
        found = {(begin, end) for _, begin, end in word_spans(cut.replace("|", ""), by)}
        wanted, place = set(), 0
        for part in re.split(r"(?<= )|[|]", cut):
            wanted.add((place, place + len(part.rstrip())))
            place += len(part)
        n_both += 2 * len(found & wanted)
        n_words += len(found) + len(wanted)
    return round(n_both / n_words, 2)


@pytest.mark.parametrize(
    ("code", "of_pairs", "of_words"),
    [
        ("zh", 0.47, 0.86), ("ja", 0.31, 0.95), ("th", 0.08, 0.89), ("lo", 0.09, 0.86),
        ("km", 0.12, 0.83), ("ko", 0.14, 0.97),
    ],
)  # fmt: skip
def test_the_documentation_says_how_well_words_are_found(code, of_pairs, of_words):
    if code == "ko":
        pytest.importorskip("kiwipiepy", reason="the extra 'korean' is not installed")
    found = [agreement(code, by) for by in (WordRules(), rules(languages=[code]))]
    assert found == [of_pairs, of_words]


@pytest.mark.parametrize(("code", "of_words"), [("zh", 0.89), ("ja", 0.88), ("th", 0.74)])
def test_the_documentation_says_how_well_icu_finds_words(code, of_words):
    assert agreement(code, WordRules(((code, _rules._installed("icu4py")),))) == of_words


@pytest.mark.parametrize(
    ("code", "of_pairs", "of_words", "n"), [("zh", 43, 35, 43), ("th", 59, 52, 61)]
)
def test_the_documentation_says_how_often_a_search_finds_a_word(code, of_pairs, of_words, n):
    texts = BY_HAND[code].replace(" ", "").splitlines()
    asked = {word for word in BY_HAND[code].split() if len(word) > 1}
    wanted = {(word, text) for word in asked for text in texts if word in text}
    found = []
    for words in ("characters", "auto"):
        index = et.SearchIndex.build(
            texts, encoder=None, words=words, languages=[code], stop_words=[]
        )
        found.append({(word, hit.text) for word in asked for hit in index.search(word, k=10)})
    assert [len(wanted & one) for one in found] == [of_pairs, of_words] and len(wanted) == n
    assert not found[1] - wanted


@pytest.mark.parametrize("code", SENTENCES)
def test_words_of_scripts_without_spaces(code):
    for gold in SENTENCES[code]:
        wanted = gold.split("|")
        text = f"Python{gold.replace('|', '')}, x-ray"
        assert words_of(text, rules(languages=[code])) == ["python", *wanted, "x-ray"]
        assert words_of(text, rules(languages=["en"])) == words_of(text)


def test_other_scripts_stay_pairs_and_kana_tell_japanese():
    assert words_of("北京大学 ไทย", rules(languages=["th"])) == ["北京", "京大", "大学", "ไทย"]
    both = rules(languages=["zh", "ja"])
    read = [segment_run(run, both) for run in _rules.script_runs(both).finditer("经济增长 税金は")]
    assert read == [["经济", "增长"], ["税金", "は"]]


def test_a_korean_word_is_cut_where_a_morpheme_begins():
    assert _rules._cut("발표했다", [0, 2, 2, 3]) == ["발표", "했", "다"]
    assert words_of("한국 정부는", rules(languages=["en"])) == ["한국", "정부는"]


SNIPPETS = [
    *(gold.replace("|", "") for golds in SENTENCES.values() for gold in golds), "日日日", "L'eau",
    "caf&eacute;", "@who", "#Tag_1", "https://x.org/a?b=c.", "a@b.org", "👍🏽", "🇫🇷", "❤️", "x-ray",
    "<b>", "1️⃣", "\u0e31", "\u0301", "\u200d", "İs", "Ｆｕｌｌ", "ｶﾞ", "।", "　", "한국", ".", "#",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(SNIPPETS) | st.text(max_size=4), max_size=10).flatmap(
    lambda parts: st.sampled_from(["", " "]).map(lambda glue: glue.join(parts))
)


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=40, deadline=None)
@given(TEXTS)
@example("日日日日a日")
@example("\ud800#\udfff東京\ud800")
@example("\u0301\u0e31\u0e49")
def test_a_place_holds_its_word_whatever_the_rules(name, text):
    by = RULES[name]
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    found = word_spans(text, by)
    assert [word for word, _, _ in found] == words_of(text, by)
    stream = tokenize([text], rules=by)
    assert [stream.words[i] for i in stream.ids] == words_of(text, by) and stream.rules is by
    for word, begin, end in found:
        assert 0 <= begin < end <= len(text)
        if "&" not in text and "<" not in text:  # entities stand for other characters
            cut = text[begin:end].lower().replace("\ufe0f", "").replace("\u00ad", "")
            plain = cut.translate({0x2018: "'", 0x2019: "'", 0x2010: "-", 0x2011: "-"})
            plain = unicodedata.normalize("NFC", plain)
            if by.function is None and by.version > 1:
                plain = usual_letters(plain)
            assert plain == word.replace("\ufe0f", "")


def test_threads_read_beside_each_other():
    texts = [golds[0].replace("|", "") * 20 for golds in SENTENCES.values()] * 20
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: words_of(text, RULES["segmenters"]), texts))
    assert found == [words_of(text, RULES["segmenters"]) for text in texts]


def test_long_runs_and_marks_alone_are_read():
    text = "北京" * 30_000
    assert "".join(words_of(text, rules())) == text
    for text in ("\u0301\u0302", "\u0e31\u0e49\u0e31", "…!?、。", ""):
        assert words_of(text, rules()) in ([], [text])


def test_lemmas_in_several_languages_and_in_phrases():
    by, notes = choose_rules("lemmas", ["en", "de", "th"])
    assert by.lemmas == ("en", "de") and notes[-1].value == ["en", "de"]
    assert words_of("Houses were running", by) == ["house", "be", "run"]
    assert words_of("Häuser", rules("lemmas", ["de"])) == ["haus"]
    assert texts_with(
        ["better houses", "a good house", "good. House"], ["good", "house"], by
    ).tolist() == [0, 1, 2]
    assert [w for w, _, _ in word_spans("The policies", by)] == ["the", "policy"]


@given(st.sampled_from("meetings bests gone laid données rede arbeit häuser bilder".split()))
def test_the_lemma_of_a_lemma_is_itself(word):
    for codes in (["en"], ["de"], ["en", "de"]):
        by = rules("lemmas", codes)
        assert words_of(words_of(word, by)[0], by) == words_of(word, by)


def test_social_tokens_are_words():
    text = "RT @Who_1: #MAGA!! see https://t.co/aB, me@x.org ❤️❤ 👍🏽 it's 5#1"
    by = rules("social", [])
    assert words_of(text, by) == [
        "rt", "@who_1", "#maga", "see", "https://t.co/ab", "me@x.org", "❤", "❤", "👍🏽", "it", "5",
        "1",
    ]  # fmt: skip
    assert words_of("#हिन्दी #Été2024", by) == ["#हिन्दी", "#été2024"]  # marks belong to letters
    assert count_social_tokens([text, "plain", "a #b &amp; &#35;c"]) == {
        "#tags": 3, "@names": 1, "emoji": 3, "addresses": 2,
    }  # fmt: skip


def test_social_tokens_are_split_or_dropped():
    text = "#ClimateChangeNow @UNHabitat_Africa 👍 #COP26Glasgow #été HelloWorld me@x.org www.x.org"
    apart = ["climate", "change", "now", "un", "habitat", "africa", "cop26", "glasgow", "été"]
    assert words_of(text, rules("social-split", [])) == [*apart, "helloworld"]
    assert words_of(text, rules("social-drop", [])) == ["helloworld"]
    plain = ["climatechangenow", "unhabitat", "africa", "cop26glasgow", "été", "helloworld"]
    assert words_of(text) == plain
    places = {word: text[a:b] for word, a, b in word_spans(text, rules("social-split", []))}
    assert [places[word] for word in ("change", "habitat", "glasgow", "été")] == [
        "Change", "Habitat", "Glasgow", "été",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("social", "Kept as words: 41 #tags, 0 @names, 1 emoji and 0 addresses."),
        ("social-drop", "Left out of the words: 41 #tags, 0 @names, 1 emoji and 0 addresses."),
        ("social-split", "Split into words at their capitals: 41 #tags and 0 @names; left out: "
         "1 emoji and 0 addresses."),
    ],
)  # fmt: skip
def test_social_tokens_are_counted(words, message):
    texts = [f"#RiverFlood {'water' if i < 20 else 'chess'} {i}" for i in range(40)]
    texts[0] += " #RiverFlood 👍"
    model = et.TopicModel(languages=["en"], words=words).fit(texts, embeddings=GIVEN)
    assert [d.message for d in model.result_.decisions if d.name == "social"] == [message]
    assert WordRules.from_json(model.result_.tokens.rules.to_json()) == model.result_.tokens.rules


@pytest.mark.parametrize("bad", ["words", ["auto", "no"], [], ["social", "social-drop"]])
def test_a_choice_that_does_not_exist(bad):
    with refuses("words"):
        choose_rules(bad, ["zh"])
    with refuses("words"):
        et.TopicModel(words=bad).fit(["a"])


@pytest.mark.parametrize(
    "bad",
    [lambda text: text, lambda text: ["other"], lambda text: text.split()[::-1], lambda t: [t]],
)
def test_a_function_that_gives_no_words_in_order(bad):
    texts = ["one", "two three"]
    rows = [4, 7]
    with pytest.raises(InputError) as caught:
        tokenize(texts, rules=WordRules(function=bad), rows=rows)
    assert caught.value.parameter == "words" and caught.value.row in (4, 7)


def test_what_is_not_installed_is_never_replaced_silently(monkeypatch):
    stored = WordRules.from_json({"segmenters": {"zh": "rjieba==0.2.2"}, "version": 2})
    assert stored == rules(languages=["zh"]) and stored.to_json()["segmenters"]
    monkeypatch.setattr(_rules, "_installed", lambda library: "")
    for cached in (_rules._library, _rules._segmenter, _rules._lemma):
        cached.cache_clear()
    with pytest.raises(InputError, match=r"pip install rjieba==0\.2\.2"):
        words_of("经济", stored)
    by, notes = choose_rules("auto", ["en", "th", "ja", "ko"])
    assert by == WordRules()
    for note, extra in zip(notes, ("thai", "japanese"), strict=True):
        assert f"embedtopics[{extra}]" in note.message
    assert [note.value for note in notes] == ["characters"] * 2
    with refuses("words"):
        choose_rules("lemmas", ["en"])
    with refuses("words"):  # no name of a file is imported
        words_of("经济", WordRules((("zh", "os==1"),)))
    with pytest.raises(InputError) as caught:  # nor is a line to copy made of what is none
        words_of("经济", WordRules((("zh", "rjieba==0.2.2 --index-url x"),)))
    assert "pip install" not in str(caught.value)


def test_another_version_is_warned_of():
    with pytest.warns(UserWarning, match=r"rjieba==0\.0\.1"):
        assert words_of("经济增长", WordRules((("zh", "rjieba==0.0.1"),))) == ["经济", "增长"]


def test_streams_are_joined_where_only_their_languages_differ():
    first, order = tokenize(["a"]), np.array([0, 1])
    joined = join_tokens(first, tokenize(["経済"], rules=rules(languages=["ja"])), order)
    assert joined.rules == rules(languages=["ja"]) and joined.words == ("a", "経済")
    with refuses("words"):
        join_tokens(first, replace(first, rules=rules("social", [])), order)


THEMES = ["猫と犬が公園で遊ぶ", "政府が新しい税金を発表した"]
GIVEN = np.repeat(np.eye(2), 20, axis=0) + 0.05 * np.random.default_rng(0).normal(size=(40, 2))


def test_a_saved_model_reads_texts_as_its_fit_did(tmp_path):
    texts = [f"{THEMES[i // 20]} {i}" for i in range(40)]
    model = et.TopicModel(languages=["ja"]).fit(texts, embeddings=GIVEN)
    assert "税金" in model.result_.term_counts.terms
    model.save(tmp_path / "model")
    result = et.TopicModel.load(tmp_path / "model").result_
    assert result.tokens.rules == rules(languages=["ja"])
    assert set(et.topics.concordance(result, "税金")["keyword"]) == {"税金"}
    more = et.topics.extend(result, ["猫の税金"], embeddings=np.ones((1, 2)))
    assert (
        more.result.tokens.words.count("税金") == 1
        and more.result.tokens.rules == result.tokens.rules
    )


def test_a_function_is_given_again_after_loading(tmp_path):
    texts = ["", *(f"{THEMES[i // 20]} {i}" for i in range(40))]
    given = np.vstack([np.zeros(2), GIVEN])

    def parts(text):
        return own(text)[:: -1 if text.endswith(" 7") else 1]

    with refuses("words", row=8):  # of the caller's rows
        et.TopicModel(languages=[], words=parts).fit(texts, embeddings=given)
    model = et.TopicModel(languages=[], words=own).fit(texts, embeddings=given)
    model.save(tmp_path / "model")
    lost = et.TopicModel.load(tmp_path / "model")
    with refuses("words"):
        et.topics.concordance(lost.result_, THEMES[0])
    kept = et.TopicModel.load(tmp_path / "model", words=own)
    assert len(et.topics.concordance(kept.result_, THEMES[0], n_occurrences=None)) == 20
    assert kept.words is own and kept.fit(texts, embeddings=given).result_.n_topics == 2
    with refuses("words"):
        et.SearchIndex.build(texts, encoder=None, words=own)


def test_an_encoder_is_made_again_with_its_words():
    first = et.encoders.TfidfEncoder().fit(THEMES)
    again = encoder_from_settings(first.settings).fit(THEMES)
    assert again.fingerprint == first.fingerprint and "税金" in first._column_of
    english = et.encoders.TfidfEncoder(stop_words=[]).fit(["cold water", "cold cup"])
    assert (
        english.settings["words"] == {"version": 2}
        and et.encoders.TfidfEncoder().settings["words"] == "auto"
    )
