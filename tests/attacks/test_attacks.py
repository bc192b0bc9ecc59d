"""Everything that can be thrown at the package is served or refused in one sentence."""

import json
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="limits of processes are those of POSIX")

from tests.attacks import folders
from tests.attacks.interruptions import WORKS
from tests.attacks.trials import FAILED, attack, judged


@pytest.mark.slow
@pytest.mark.parametrize("family", ["files", "folders"])
def test_nothing_crashes_hangs_or_lies(family):
    outcome = attack(family)
    sys.stdout.write(f"{family}: {outcome}\n")
    assert not outcome.failures


MENDED = {
    folders.of_damage: r"bit 5 tuned/model.safetensors|pipe cache",
    folders.of_forged_arrays: (
        r"weights most|embeddings.npy: wide|__text__ nulls|__status__ ints|000001/sum.npy: endless"
    ),
    folders.of_forged_catalogues: r"(columns.position|files.(segment|sha256)) = (-1|blob)$",
}


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, id=name, marks=pytest.mark.slow if "arrays" in name else ())
        for family, name in ((family, family.__name__) for family in MENDED)
    ],
)
def test_what_once_failed(tmp_path, monkeypatch, family):
    monkeypatch.chdir(tmp_path)
    found = [
        (trial.name, *judged(trial)) for trial in family() if re.search(MENDED[family], trial.name)
    ]
    assert len(found) >= 2 and [one for one in found if one[1] == FAILED] == []


INTERRUPTIONS = {"kill": 60, "full": 40, "denied": 40, "limit": 14, "moment": 12}
"""How many at most of each kind; there are as many as a work changes files."""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system with fork")
@pytest.mark.parametrize(
    ("work", "kinds"),
    [
        pytest.param("saved_result", ["kill"], marks=pytest.mark.smoke),
        pytest.param("enlarged_index", ["kill"], marks=pytest.mark.smoke),
        *((work, list(INTERRUPTIONS)) for work in WORKS),
    ],
)
def test_an_interruption_leaves_the_old_or_the_new(tmp_path, work, kinds):
    most = {kind: INTERRUPTIONS[kind] for kind in kinds}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.attacks.interruptions", work,
         json.dumps(most)],
        capture_output=True, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    sys.stdout.write(f"{work}: {len(found)} interruptions\n")
    assert len(found) > (25 if len(kinds) > 1 else 10) and [one for one in found if one[2]] == []
