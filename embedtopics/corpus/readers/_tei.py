"""XML: texts of the Text Encoding Initiative (TEI), or the elements of any other file.

Where an edition records alternatives, one is read: the corrected, regularized or expanded form, the
lemma of an apparatus (else its first reading), and what was added in place of what was deleted.
Nothing is fetched: a file could name others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from embedtopics.corpus.readers._documents import FileText
from embedtopics.corpus.readers._html import DELETED
from embedtopics.corpus.readers._markup import ElementKinds, local_name, paragraphs_of, remove
from embedtopics.corpus.readers._opening import File, read_markup
from embedtopics.errors import InputError

_BLOCKS = frozenset((
    "ab argument byline cell closer dateline desc div docTitle epigraph head item l label lg "
    "opener p postscript quote row salute signed sp speaker stage titlePart trailer u"
).split())  # fmt: skip
_UNITS = frozenset((
    "seg w pc phr cl biblScope name persName forename surname roleName "
    "addName nameLink genName placeName settlement region country orgName rs date time title "
    "author editor publisher pubPlace term gloss mentioned soCalled ref num measure"
).split())  # fmt: skip
_APART = frozenset(("q", "said", "cit", "bibl", "biblStruct"))
_TURNS = frozenset(("pb", "cb", "gb", "milestone"))
TEI = ElementKinds(_BLOCKS, units=_UNITS, apart=_APART, turns=_TURNS)

_FIELDS = (
    ("title", "titleStmt/{*}title"), ("author", "titleStmt/{*}author"),
    # The date of the text precedes that of the file.
    ("date", "profileDesc//{*}date"), ("date", "sourceDesc//{*}date"),
    ("date", "publicationStmt//{*}date"), ("language", "langUsage/{*}language"),
)  # fmt: skip

# The children of `choice` in the order in which they are preferred.
_PREFERRED = ("corr", "reg", "expan", "ex")

# What is no text of the edition: notes, running titles, images, annotations and witnesses.
_NO_TEXT = ("note", "fw", "teiHeader", "facsimile", "standOff", "wit", "witDetail", "rt")

LONGEST_ENTITY = 1000
"""Characters of an entity of the file. A longer one is no character and no name."""


def read_xml(etree: Any, file: File, stream: BinaryIO, encoding: str) -> list[FileText]:
    """Read each text of TEI with the fields of its header, or the elements of another file."""
    root = parse_xml(etree, read_markup(file.name, stream, is_packed=file.is_packed))
    _replace_entities(etree, file, root)
    documents = []
    for tei in root.iter("{*}TEI"):
        metadata = _metadata(tei)
        remarks = dict(_keep_one_reading(tei))
        etree.strip_elements(tei, *(f"{{*}}{name}" for name in _NO_TEXT), with_tail=False)
        if tei.find("{*}text") is not None:
            etree.strip_elements(tei, "{*}sourceDoc", with_tail=False)  # the same text by its lines
        documents.append(FileText(paragraphs_of(etree, tei, TEI), metadata, remarks))
    return documents or [FileText(paragraphs_of(etree, root, ElementKinds()), {}, {})]


def parse_xml(etree: Any, content: bytes) -> Any:
    """Return the root of a file; no entity is expanded, and none fetched."""
    parser = etree.XMLParser(
        remove_comments=True,
        remove_pis=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
    )
    return etree.fromstring(content, parser)


def _replace_entities(etree: Any, file: File, root: Any) -> None:
    """Put the characters of entities that the file declares into its text; refuse others."""
    entities = list(root.iter(etree.Entity))
    if not entities:
        return

    declared = root.getroottree().docinfo.internalDTD
    text_of = {entity.name: entity.content for entity in declared.iterentities()}
    for node in entities:
        text = text_of.get(node.name)
        if text is None or len(text) > LONGEST_ENTITY or not {"&", "<"}.isdisjoint(text):
            raise InputError(
                f"{file.name}: uses the entity {node.name!r}, which is not text of this file; "
                "replace it"
            )

        file.unpacked.add(file.name, len(text))
        node.tail = text + (node.tail or "")
        remove(node)


def _metadata(tei: Any) -> dict[str, str]:
    """Return the first title, author, date and language of a header."""
    metadata: dict[str, str] = {}
    for field, path in _FIELDS:
        for node in tei.iterfind(f"{{*}}teiHeader//{{*}}{path}"):
            values = (*map(node.get, ("when", "from", "ident")), "".join(node.itertext()))
            metadata.setdefault(field, " ".join(next(filter(None, values), "").split()))
    return metadata


def _keep_one_reading(tei: Any) -> Iterator[tuple[str, str]]:
    """Remove all alternatives except one from a text, and yield remarks on what was removed."""
    text = tei.find("{*}text")
    if text is None:
        text = tei
    choices = list(text.iter("{*}choice"))
    for choice in choices:
        _keep_child(choice, _reading_of_choice(choice))

    apparatus = list(text.iter("{*}app"))
    for app in apparatus:
        # An apparatus in another place repeats the text that it is about.
        is_elsewhere = app.get("from") is not None or app.get("loc") is not None
        _keep_child(app, None if is_elsewhere else _reading_of_apparatus(app))
    if choices or apparatus:
        yield "Of alternative readings, one is read", ""

    # What was deleted and restored is text.
    deleted = [
        node for node in text.iter("{*}del") if next(node.iterancestors("{*}restore"), None) is None
    ]
    for node in deleted:
        remove(node)
    if deleted:
        yield DELETED, ""
    if next(text.iter("{*}delSpan"), None) is not None:
        yield "Passages marked as deleted by their ends (delSpan) are read", ""
    if next(text.iter("{*}note"), None) is not None:
        yield "Notes were left out", ""


def _keep_child(node: Any, kept: Any) -> None:
    """Remove all that an element holds except one of its descendants."""
    for child in list(node):
        node.remove(child)
    node.text = None
    if kept is not None:
        node.append(kept)
        kept.tail = None


def _reading_of_choice(choice: Any) -> Any:
    """Return the child to read."""
    children = list(choice)
    for name in _PREFERRED:
        for child in children:
            if local_name(child) == name:
                return child
    return children[0] if children else None


def _reading_of_apparatus(app: Any) -> Any:
    """Return the lemma, else the first reading; groups hold readings too."""
    readings = []
    groups = [app]
    while groups:
        for child in groups.pop(0):
            if local_name(child) == "rdgGrp":
                groups.append(child)
            elif local_name(child) in ("lem", "rdg"):
                readings.append(child)
    lemmas = [reading for reading in readings if local_name(reading) == "lem"]
    return next(iter(lemmas or readings), None)
