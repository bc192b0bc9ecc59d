"""Results go to a hub and come back; by default privately, and without their texts."""

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.topics import from_pretrained, push_to_hub, save_result
from tests.factories import refuses
from tests.stub_hub import online_hub


@pytest.fixture
def hub(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    with online_hub(monkeypatch) as hub:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.endpoint)
        template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield hub


@pytest.fixture(scope="module")
def result(toy):
    texts, vectors, _ = toy
    frame = pd.DataFrame({"text": texts, "author": [f"secret {i}" for i in range(len(texts))]})
    frame["when"] = pd.date_range("2024-01-01", periods=len(texts))
    corpus = et.Corpus(frame, text="text", time="when")
    return et.TopicModel(languages=["en"], random_state=3).fit(corpus, embeddings=vectors).result_


def test_to_the_hub_and_back_with_texts(hub, result, tmp_path, capsys):
    url = push_to_hub(result, "someone/topics", include_texts=True, token="hf_secret")
    assert url == f"{hub.endpoint}/someone/topics/commit/{hub.sha('someone/topics')}"
    stored = hub.repositories["someone/topics"]
    assert stored["private"]
    assert set(stored["files"]) == {
        "README.md", "manifest.json", "result.json", "words.json", "rows.parquet", "arrays.arrow",
        "embeddings.npy",
    }  # fmt: skip
    loaded = from_pretrained("someone/topics", token="hf_secret")
    assert loaded.corpus.texts == result.corpus.texts and repr(loaded.topics) == repr(result.topics)
    np.testing.assert_array_equal(loaded.embeddings, result.embeddings)
    assert loaded.corpus.metadata["author"].tolist() == result.corpus.metadata["author"].tolist()
    assert "loading someone/topics" in capsys.readouterr().err
    assert all(
        token == "Bearer hf_secret" for _, path, token in hub.requests if "api/models" in path
    )


def test_by_default_no_text_leaves_the_machine(hub, result, tmp_path):
    push_to_hub(result, "someone/topics")
    files = hub.repositories["someone/topics"]["files"]
    assert hub.repositories["someone/topics"]["private"]
    (tmp_path / "folder").mkdir()
    for name, content in files.items():
        (tmp_path / "folder" / name).write_bytes(content)
    rows = pd.read_parquet(tmp_path / "folder" / "rows.parquet")
    assert set(rows["__text__"]) == {""} and list(rows.columns) == [
        "__text__", "__id__", "__status__",
    ]  # fmt: skip
    whole = b"".join(files.values())
    for secret in (b"secret", b"DataFrame", b"2024-01", result.corpus.texts[0].encode()):
        assert secret not in whole
    loaded = from_pretrained("someone/topics", token="hf_secret")
    np.testing.assert_array_equal(loaded.labels, result.labels)


def test_the_page_may_be_edited_and_files_may_not(hub, result, tmp_path):
    push_to_hub(result, "someone/topics")
    files = hub.repositories["someone/topics"]["files"]
    files["README.md"] = b"# My own words"
    assert from_pretrained("someone/topics").n_topics == result.n_topics
    hub.add("someone/other", {**files, "words.json": files["words.json"] + b" "})
    with pytest.raises(CorruptFileError, match=r"words\.json is damaged"):
        from_pretrained("someone/other")


def test_nothing_that_runs_is_fetched(hub, result, tmp_path):
    push_to_hub(result, "someone/topics")
    hub.repositories["someone/topics"]["files"].update({"evil.py": b"1/0", "arrays.pkl": b"x"})
    from_pretrained("someone/topics")
    asked = [path for method, path, _ in hub.requests if method == "GET" and "resolve" in path]
    assert asked and not any("evil" in path or "README" in path for path in asked)


def test_a_second_load_without_network(hub, result, tmp_path, monkeypatch):
    push_to_hub(result, "someone/topics")
    from_pretrained("someone/topics")
    n_requests = len(hub.requests)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert from_pretrained("someone/topics").n_topics == result.n_topics
    assert len(hub.requests) == n_requests
    with pytest.raises(InputError, match="could not load someone/unknown"):
        from_pretrained("someone/unknown")
    with pytest.raises(InputError, match=r"could not upload .*unset the `HF_HUB_OFFLINE`"):
        push_to_hub(result, "someone/topics")


def test_a_folder_needs_no_hub(result, tmp_path):
    folder = save_result(result, tmp_path / "saved")
    assert (
        from_pretrained(folder).n_topics == from_pretrained(str(folder)).n_topics == result.n_topics
    )


def test_what_cannot_be_loaded(hub, tmp_path):
    with pytest.raises(InputError, match="could not load someone/nothing"):
        from_pretrained("someone/nothing")
    hub.add("someone/else", {"config.json": b"{}"})
    with pytest.raises(InputError, match="holds no saved topic result"):
        from_pretrained("someone/else")
    for bad in ("no-owner", "../up/here", tmp_path / "nowhere", "a/b/c", ""):
        with refuses("name"):
            from_pretrained(bad)


def test_what_cannot_be_pushed(hub, result, tmp_path):
    hub.refuse = "you may not write here"
    with pytest.raises(InputError, match=r"could not upload to someone/x: .*hf auth login"):
        push_to_hub(result, "someone/x")
    for bad in ("a/b/c", "", "-/x"):
        with pytest.raises(InputError, match=f"could not upload to {bad}: Repo id must"):
            push_to_hub(result, bad)
    assert hub.repositories == {}
