"""Records: JSON from outside is refused unless every field has its type."""

import pytest

from embedtopics._utils.records import ForeignRecord, Record, parse_record, read_record
from embedtopics.errors import CorruptFileError


class Settings(Record):
    name: str
    size: int = 1
    weights: tuple[float, ...] = ()


class Answer(ForeignRecord):
    text: str


def test_a_record_has_the_fields_of_its_json():
    settings = parse_record(Settings, '{"name": "a", "size": 2, "weights": [0.5, 1]}')
    assert settings == Settings(name="a", size=2, weights=(0.5, 1.0))


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ('{"name": 1}', "name"),
        ('{"name": "a", "size": "2"}', "size"),
        ('{"name": "a", "size": 2.5}', "size"),
        ('{"name": "a", "size": true}', "size"),
        ('{"name": "a", "trust_remote_code": true}', "trust_remote_code"),
        ('{"name": "a", "weights": [1, null]}', "weights.1"),
        ("{}", "name"),
    ],
)
def test_fields_that_are_unknown_or_of_another_type_are_named(content, field):
    with pytest.raises(ValueError, match=f"^{field}: "):
        parse_record(Settings, content)


@pytest.mark.parametrize("content", ["[]", "", "{", "[" * 5000, b"\xff", '{"name": "\\ud800"}'])
def test_what_is_no_object_is_refused_in_one_line(content):
    with pytest.raises(ValueError) as caught:
        parse_record(Settings, content)
    assert len(str(caught.value).splitlines()) == 1


def test_a_problem_quotes_no_value():
    with pytest.raises(ValueError) as caught:
        parse_record(Settings, '{"name": "a", "size": "the secret"}')
    assert "secret" not in str(caught.value)


def test_fields_of_another_program_are_ignored():
    assert parse_record(Answer, '{"text": "a", "usage": [1]}').text == "a"


def test_a_damaged_file_is_named():
    with pytest.raises(CorruptFileError, match=r"^result\.json is damaged: size: .*; save again"):
        read_record(Settings, '{"name": "a", "size": []}', "result.json")
