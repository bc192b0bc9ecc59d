"""The retrievers of docs/search.md, with the libraries where they are installed, else with stubs.

The stubs have what the examples use of langchain-core 1 and llama-index-core 0.14: constructors,
and the public method that calls the one that the examples write.
"""

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.retrieval.oracle import build

PAGE = (Path(__file__).parents[2] / "docs" / "search.md").read_text("utf-8")


class Fields:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class ChainRetriever(Fields):
    def invoke(self, query):
        return self._get_relevant_documents(query, run_manager=None)


class NodeRetriever:
    def retrieve(self, query):
        return self._retrieve(SimpleNamespace(query_str=query))


STUBS = {
    "langchain_core": {
        "documents": {"Document": Fields}, "retrievers": {"BaseRetriever": ChainRetriever},
    },
    "llama_index": {
        "core.retrievers": {"BaseRetriever": NodeRetriever},
        "core.schema": {"NodeWithScore": Fields, "TextNode": Fields},
    },
}  # fmt: skip


@pytest.mark.parametrize(("library", "place"), [("langchain_core", 0), ("llama_index", 1)])
def test_retrievers_of_the_documentation(monkeypatch, library, place):
    if find_spec(library) is None:
        for path in (library, f"{library}.core", *(f"{library}.{name}" for name in STUBS[library])):
            monkeypatch.setitem(sys.modules, path, ModuleType(path))
        for name, members in STUBS[library].items():
            vars(sys.modules[f"{library}.{name}"]).update(members)
    texts = ["rural hospitals close", "a cat sat", "closure of a mill"]
    data = [{"id": f"d{n}", "text": text, "day": f"202{n}-01-02"} for n, text in enumerate(texts)]
    index = build(data, text="text", id="id", time="day")
    names = {"index": index}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.S)[place - 2], names)  # the last two
    expected = index.search("closure of rural hospitals", 3, min_score=0)
    if place == 0:
        found = [(one.page_content, one.metadata) for one in names["documents"]]
        wanted = [(hit.passage, {"id": hit.id, **hit.metadata}) for hit in expected]
    else:
        found = [(one.node.text, one.node.metadata, one.score) for one in names["nodes"]]
        dates = [{"day": f"{hit.metadata['day']:%Y-%m-%d} 00:00:00"} for hit in expected]
        wanted = [(h.passage, day, h.score) for h, day in zip(expected, dates, strict=True)]
        assert sorted((one.score for one in names["nodes"]), reverse=True) == [w[2] for w in wanted]
    assert found == wanted and len(found) == 3
