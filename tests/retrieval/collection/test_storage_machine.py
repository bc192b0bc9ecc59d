"""Whatever is done in whatever order, a collection is what a dict would be."""

import shutil
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from embedtopics.retrieval.storage._collection import Collection
from tests.factories import refuses
from tests.retrieval.collection.fake import add, assert_clean, make_segment, state

IDS = st.sampled_from(["1", "2", "2.5", "a", "b", "c", "-7"])
DOCUMENTS = st.dictionaries(
    IDS, st.tuples(st.text("ab é🙂", max_size=9), st.none() | st.integers(0, 3)), max_size=5
)


class CollectionMachine(RuleBasedStateMachine):
    @initialize()
    def create(self):
        self.above = Path(tempfile.mkdtemp())
        self.collection = Collection.create(self.above / "c", {"k": 1})
        self.model, self.version, self.numbers, self.names = {}, 0, set(), False

    def teardown(self):
        if hasattr(self, "collection"):
            assert_clean(self.collection)
            shutil.rmtree(self.above)

    @rule(documents=DOCUMENTS, update=st.booleans())
    def add(self, documents, update):
        frame = pd.DataFrame({"n": pd.Series([n for _, n in documents.values()], dtype="Int64")})
        texts = [text for text, _ in documents.values()]
        with self.collection.writing() as writer:
            if self.model.keys() & documents.keys() and not update:
                with refuses("id"):
                    add(writer, documents, texts, frame)
                return
            add(writer, list(documents), texts, frame, update=update)
            numbers = list(self.collection.numbers(list(documents)).values())
        assert not self.numbers & set(numbers) and len(set(numbers)) == len(documents)
        self.numbers |= set(numbers)
        self.version += bool(documents)
        self.names |= bool(documents)
        for id, (text, n) in documents.items():
            self.model[id] = text, {"n": n}

    @rule(ids=st.lists(IDS, max_size=4), missing=st.sampled_from(["raise", "ignore"]))
    def remove(self, ids, missing):
        found = self.model.keys() & set(ids)
        with self.collection.writing() as writer:
            if set(ids) - found and missing == "raise":
                with refuses("ids"):
                    writer.remove(ids, missing=missing)
                return
            assert writer.remove(ids, missing=missing) == len(found)
        self.version += bool(found)
        for id in found:
            del self.model[id]

    @rule()
    def compact(self):
        with self.collection.writing() as writer:
            self.version += writer.compact(make_segment)
        assert len(self.collection.snapshot().segments) == bool(self.model)

    @rule(verify=st.booleans())
    def reopen(self, verify):
        self.collection = Collection.open(self.above / "c", verify=verify)

    @rule()
    def copy(self):
        self.collection = self.collection.copy_to(self.above / "d", overwrite=True)
        shutil.rmtree(self.above / "c")
        (self.above / "d").rename(self.above / "c")
        self.collection = Collection.open(self.above / "c")

    @invariant()
    def is_the_model(self):
        if hasattr(self, "collection"):
            assert state(self.collection) == self.model
            assert self.collection.version() == self.version
            assert self.collection.numbers(list(self.model)).keys() == self.model.keys()


TestMachine = CollectionMachine.TestCase
TestMachine.settings = settings(
    max_examples=12, stateful_step_count=10, deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck), database=None,
)  # fmt: skip


@pytest.mark.slow
class TestLongMachine(CollectionMachine.TestCase):
    settings = settings(
        max_examples=100, stateful_step_count=25, deadline=None,
        suppress_health_check=list(HealthCheck), database=None,
    )  # fmt: skip
