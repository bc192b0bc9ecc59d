"""Write any result as a self-contained page or as a document."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from embedtopics._utils.display import Displayed
from embedtopics.comparison.results import Comparison
from embedtopics.errors import InputError
from embedtopics.evaluation.results import SheetScore
from embedtopics.report._comparison import comparison_html
from embedtopics.report._documents import FORMATS, Section
from embedtopics.report._explorer import explorer_html
from embedtopics.report._markup import corpus_title, write_page
from embedtopics.report._pages import PAGES, Reported
from embedtopics.report._study import Checks, record_sections, study_sections
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    import pandas as pd


def write_report(
    result: TopicResult | Comparison | Reported,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    tables: Mapping[str, pd.DataFrame] = MappingProxyType({}),
    measures: pd.DataFrame | None = None,
    validation: Sequence[SheetScore] = (),
    choices: Displayed | None = None,
    verification: Displayed | None = None,
) -> Path:
    """Write a result to one file, a page that works offline or a document for reviewers.

    A page contains its scripts, style and data. Its content security policy allows no connection,
    and no script except its own, identified by hashes. Text of the corpus is escaped. The same
    result gives the same file, byte for byte, except .docx files. The file is replaced atomically,
    so a failed write keeps the old report.

    Parameters
    ----------
    result : TopicResult, Comparison, ClassificationReport, StudyReport, TrainingReport, LayerScores
        A TopicResult gives a page to search, select and compare its documents, with a report below
        the map: methods, sample, topics, validation, decisions, software, references, and a
        checklist after ValiTex (Birkenmaier et al. 2024), in which what is missing is "not done". A
        theme in the list selects its topics. The map draws with WebGL 2 on a graphics card,
        otherwise on the CPU. A Comparison gives linked maps: a document that is highlighted or
        selected on one map is highlighted or selected on all.
    path : str or path
        File to write, in an existing folder. An existing file is replaced. It ends in .html, or,
        for the report alone, without figures, in .md, .docx (needs the extra "files") or .tex; then
        a file that ends in .bib cites the methods of topics. A Comparison has a page only.
    title : str, optional
        Heading; by default it names the corpus, or what the result is of.
    tables : mapping of str to DataFrame
        Further tables, by heading, such as effects or corrected shares; comparisons have none.
    measures : DataFrame, optional
        Of topics: see `topics.report_card`.
    validation : sequence of SheetScore
        Of topics: the scores of answers of people to `topics.validation_sheets`.
    choices : Specifications, optional
        Of topics: conclusions over other choices, see `topics.specifications`.
    verification : Verification, optional
        Of topics: see `embedtopics.verify`.

    Returns
    -------
    Path
        The file. A page has 0.1 MB for topics and 40 kB for a comparison, plus the texts; else
        5 MB, most of it Plotly.

    Raises
    ------
    InputError
        Another type of result, another suffix, a folder that does not exist, or a path that is a
        folder.
    MissingExtraError
        If python-docx, which writes .docx files, is not installed.
    OSError
        The folder is not writable, or the disk is full.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError("path", "the name of a file", path, "add report.html")
    if not path.parent.is_dir():
        raise InputError("path", "in a folder that exists", path, "create the folder first")
    suffix = path.suffix.lower()
    formats = (".html", ".htm") if isinstance(result, Comparison) else tuple(FORMATS)
    if suffix not in formats:
        raise InputError("path", f"a file that ends in {', '.join(formats)}", path)
    if isinstance(result, Comparison):
        return write_page(comparison_html(result, title=title), path)
    if isinstance(result, TopicResult):
        checks = Checks(measures, validation, choices, verification, tables)
        if suffix in (".html", ".htm"):
            return write_page(explorer_html(result, title=title, checks=checks), path)
        sections, entries = study_sections(result, checks, is_page=False)
        heading = corpus_title("Topics of", result.corpus.source, len(result.corpus))
        write_page("\n".join(entries), path.with_suffix(".bib"))
    elif type(result) in PAGES:
        heading, sections = PAGES[type(result)](result)
        sections += [Section(name, [frame]) for name, frame in tables.items()]
        sections += record_sections(result.decisions)
    else:
        types = "TopicResult, Comparison, " + ", ".join(one.__name__ for one in PAGES)
        raise InputError("result", f"one of {types}", result)
    FORMATS[suffix](title or heading, sections, path)
    return path
