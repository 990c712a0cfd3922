"""Where nothing may be missing, a skipped test is a failed one."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        pytest.param("def test_it(): pytest.skip('no broker')", {"failed": 1}, id="skipped in the test"),
        pytest.param("@pytest.mark.skip\ndef test_it(): pass", {"errors": 1}, id="skipped by a mark"),
        pytest.param(
            "@pytest.fixture\ndef rig(): pytest.skip('no broker')\ndef test_it(rig): pass",
            {"errors": 1},
            id="skipped in a fixture",
        ),
        pytest.param("pytest.skip('no broker', allow_module_level=True)", {"errors": 1}, id="skipped as a whole"),
        pytest.param("@pytest.mark.xfail\ndef test_it(): assert False", {"xfailed": 1}, id="fails as expected"),
        pytest.param("def test_it(): pass", {"passed": 1}, id="passes"),
    ],
)
def test_what_is_skipped_fails(pytester: pytest.Pytester, source: str, outcome: dict[str, int]) -> None:
    pytester.makepyfile(f"import pytest\n{source}\n")

    result = pytester.runpytest_inprocess("-p", "tests.no_skips")

    assert result.parseoutcomes() == outcome


def test_the_reason_is_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\ndef test_it(): pytest.skip('no broker')\n")

    result = pytester.runpytest_inprocess("-p", "tests.no_skips")

    result.stdout.fnmatch_lines(["May not be skipped here: Skipped: no broker"])
