"""Metrics text, read as strictly as node exporters and OpenMetrics demand."""

from __future__ import annotations

import re
from typing import NamedTuple

from prometheus_client.openmetrics.parser import text_string_to_metric_families

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_COMMENT = re.compile(rf"# (HELP|TYPE) ({_NAME}) (.+)")
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
_SAMPLE = re.compile(rf"({_NAME})\{{({_LABEL}(?:,{_LABEL})*)\}} (\S+)")
_UNESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


class Sample(NamedTuple):
    """A number of a family, and the labels that tell it from others."""

    family: str
    labels: frozenset[tuple[str, str]]
    value: float


def read_metrics(text: str) -> list[Sample]:
    """All samples. Fails where a family is in two places, has no one HELP and TYPE, or a sample comes twice."""
    assert text.endswith("\n# EOF\n")
    assert list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
    families: list[str] = []
    samples: list[Sample] = []
    lines = text.removesuffix("# EOF\n").splitlines()
    while lines:
        family = _commented(lines.pop(0), "HELP")
        assert _commented(lines.pop(0), "TYPE", "gauge") == family
        assert family not in families
        families.append(family)
        while lines and not lines[0].startswith("#"):
            samples.append(_sample(lines.pop(0)))
            assert samples[-1].family == family
    assert len({sample[:2] for sample in samples}) == len(samples)
    return samples


def _commented(line: str, kind: str, content: str | None = None) -> str:
    comment = _COMMENT.fullmatch(line)
    assert comment, line
    assert comment[1] == kind
    assert content in (None, comment[3])
    return comment[2]


def _sample(line: str) -> Sample:
    sample = _SAMPLE.fullmatch(line)
    assert sample, line
    labels = [
        (label[1], re.sub(r"\\.", lambda found: _UNESCAPED[found[0]], label[2])) for label in re.finditer(_LABEL, line)
    ]
    assert len(dict(labels)) == len(labels)
    return Sample(sample[1], frozenset(labels), float(sample[_SAMPLE.groups]))
