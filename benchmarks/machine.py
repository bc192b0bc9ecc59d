"""What a figure was measured on: the machine, and the packages of each environment."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from benchmarks.jobs import System, run_python

__all__ = ["describe_environment", "describe_machine"]

# A package that is found on the path without being installed has no metadata; it is asked itself.
_LIST_PACKAGES = """
import importlib.metadata, importlib.util, json, platform, sys
packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
name = sys.argv[1]
if importlib.util.find_spec(name) is None:
    packages.pop(name, None)
elif name not in packages:
    packages[name] = importlib.import_module(name).__version__
packages = dict(sorted(packages.items(), key=lambda item: item[0].lower()))
print(json.dumps({"python": platform.python_version(), "packages": packages}))
"""


def describe_machine() -> dict[str, Any]:
    """Return the processor, the cores this process may use, the memory and the system."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "cores": usable,
        "memory_gb": round(memory / 1e9, 1),
        "system": platform.platform(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def describe_environment(system: System) -> dict[str, Any]:
    """Return the Python version of a system's interpreter and all packages found there.

    Raises
    ------
    SystemExit
        If the system is not among them.
    """
    found = json.loads(run_python(system, "-c", _LIST_PACKAGES, system.name))
    if system.name not in found["packages"]:
        raise SystemExit(
            f"expected {system.name} in the environment of {system.python}; it is not there; "
            "install it, or name another interpreter (EMBEDTOPICS_BERTOPIC_PYTHON for BERTopic)"
        )
    return found
