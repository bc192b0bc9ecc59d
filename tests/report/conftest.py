from contextlib import closing

import pytest

from tests.report.driving import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with closing(Browser(tmp_path_factory.mktemp("browser"))) as opened:
        yield opened
