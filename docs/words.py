"""Refuse words of a private language and forms that a native writer would not use.

``python docs/words.py [PATHS]`` prints every line with such a word and fails if there is one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Pattern -> what to write. Names in code are compared word by word (split at "_").
BANNED = {
    r"walks?|walked|walking|walker": "label propagation",
    r"springs?": "edge schedule",
    r"clearness|least[_ ]ratio": "margin",
    r"guidance": "constraints",
    r"settl(e|es|ing)": "apply constraints",
    r"whims?": "unstable",
    r"by heart": "memorized",
    r"foretold|foretells?|foretelling": "predicted, predicts",
    r"likeness": "similarity",
    r"rooms?": "subpackage",
    r"roads?": "method",
    r"wish(es|ed)?": "options",
    r"lessons?": "training data",
    r"trainees?": "trainable encoder",
    r"twins?": "randomly initialized model",
    r"told": "reported",
    r"dealt|dealing": "split",
    r"at its highest": "peak",
    r"how_many": "n_terms, n_documents, k",
    r"alike": "similar, equal",
    r"near[- ]cop(y|ies)": "near-duplicates",
    r"strangers?": "not neighbours",
    r"whoever": "a named subject",
    r"that (is|are) to be": "to + verb, or must",
    r"of which": "a verb and its object",
    r"no \w+ but": "only, except",
    r"for ever": "forever",
    r"so many (of|texts|words|tokens)": "a number, n",
    r"of one's own": "your, a custom",
}
# Lines in which a word means what it says: stop words, other libraries.
ALLOWED = re.compile(
    r"orders page pages problem|walk_packages|(os|ast)\.walk|docs/words\.py"
    r"|[\"'](road|names_told_apart)[\"']"
)
FILES = ("embedtopics/**/*.py", "README.md", "CONTRIBUTING.md", "docs/*.md")


def offences(path: Path) -> list[str]:
    """Return the lines of a file that hold a banned word, with the term to use."""
    lines = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if ALLOWED.search(line):
            continue
        for pattern, term in BANNED.items():
            if re.search(rf"(?<![A-Za-z])({pattern})(?![A-Za-z])", line):
                shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
                lines.append(f"{shown}:{number}: {line.strip()[:80]} -> {term}")
    return lines


def main(arguments: list[str]) -> int:
    """Print the offences of the given files, by default of the package and its documents."""
    paths = [Path(argument).resolve() for argument in arguments]
    paths = paths or sorted(path for pattern in FILES for path in ROOT.glob(pattern))
    lines = [line for path in paths for line in offences(path)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
