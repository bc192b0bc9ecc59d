"""The blocks of docs/r.md, run by R, and the types of their tables."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories import PATIENCE
from tests.test_readme import TEXTS, fill

HAS_RETICULATE = (
    shutil.which("Rscript") is not None
    and subprocess.run(
        ["Rscript", "-e", 'quit(status = !requireNamespace("reticulate", quietly = TRUE))'],
        capture_output=True,
    ).returncode
    == 0
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.smoke,
    pytest.mark.skipif(not HAS_RETICULATE, reason="needs R with reticulate"),
]

ROUND_TRIP = r"""
given <- data.frame(
  text = c("\u00c9t\u00e9, \u00e0 l'\"oui\"", "na\u00efve\ncaf\u00e9", "\u65e5\u672c\u8a9e"),
  day = as.Date(c("2020-01-02", NA, "2021-05-06")),
  hour = as.POSIXct(c("2020-01-02 10:00:00", NA, "2021-05-06 11:30:00"), tz = "UTC"),
  party = factor(c("B", "\u00c4", NA), levels = c("\u00c4", "C", "B")),
  code = c("007", NA, "-5"), number = c(1.5, NA, -2), `mon parti` = c("=1", "#", "NA"),
  yes = c(TRUE, FALSE, TRUE), check.names = FALSE
)
back <- to_r(to_python(given))
stopifnot(identical(back, given), all(Encoding(back$text) == "UTF-8"))
"""
TYPES = r"""
stopifnot(
  is.character(topics$name), is.character(topics$terms), grepl(", ", topics$terms[1]),
  is.numeric(topics$share), sum(topics$size) == sum(documents$status == "text"),
  identical(documents$text, replace(articles$body, articles$body == "", NA)),
  any(grepl("\u00e9", documents$text)),
  class(documents$date) == "Date", identical(documents$date, articles$date),
  identical(documents$source, articles$source), is.logical(documents$core),
  class(shares$start) == "Date", all(shares$share >= 0 & shares$share <= 1),
  all(tapply(shares$count, shares$period, sum) == unique(shares[c("period", "total")])$total),
  setequal(effects$covariate, c("date", "source")), all(effects$low <= effects$effect),
  is.character(changes$verdict), file.exists("trends.html"), file.exists("study.html"),
  file.exists("tables/topics.csv")
)
"""


def test_the_guide_for_r_runs_and_types_survive(tmp_path):
    fill(tmp_path)
    first, *rest = re.findall(r"```r\n(.*?)```", TEXTS["r"], re.S)
    script = tmp_path / "guide.R"
    script.write_text("\n".join([first, ROUND_TRIP, *rest, TYPES, 'cat("done\\n")']), "utf-8")
    places = {"RETICULATE_PYTHON": sys.executable, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        ["Rscript", "--vanilla", script.name],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "LANG": "C.UTF-8", **places},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr + done.stdout
