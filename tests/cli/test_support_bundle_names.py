"""`support-bundle --hide-names`: no topic's name is in it, wherever it stood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.command_line import Tieredctl
from tests.cli.unpacked_bundle import SECRET, SEGMENT, bundled, manifest, unpacked
from tieredctl.cli.trouble.bundle import HiddenNames, Part, manifest_of, without_names
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.process import crash_file

pytestmark = pytest.mark.usefixtures("own_state")
TOPIC_ID = "G4i52LJdRBel-FDnehx_Kw"
MARK = "Zq"
"""Nothing else has it."""
AROUND = st.text(st.sampled_from("aZ9.-_"), max_size=5)
ODD = st.text(st.sampled_from("a9.-_ '\"\\é\n"), max_size=5)
NAMES = st.sets(st.builds(lambda before, after: f"{before}{MARK}{after}", AROUND | ODD, AROUND | ODD), min_size=1)


def test_topic_names_are_hidden_on_request(tieredctl: Tieredctl, captures: Path, tmp_path: Path) -> None:
    to, data = tmp_path / "bundle.tar.gz", captures / "kafka-4.3.1/data"
    bundled(tieredctl, to, "--log-dir", data, "--segment-id", SEGMENT, "--hide-names")

    events = json.loads(unpacked(to)[f"history/{SEGMENT}.json"])["items"]
    assert b"orders7" not in b"".join(unpacked(to).values())
    assert {event["topic"].startswith("topic-") for event in events if "topic" in event} == {True}
    assert manifest(to)["topicNamesAreHidden"]


def test_topic_names_are_hidden_in_lines_too_and_plain_text_is_left_out_since_any_word_may_be_one(
    tieredctl: Tieredctl, tmp_path: Path
) -> None:
    to, result, metrics = tmp_path / "bundle.tar.gz", tmp_path / "scan.jsonl", tmp_path / "scan.prom"
    lines = [{"kind": "Scan"}, {"topic": "payments7", "key": "x/payments7-id/0", "password": SECRET}]
    result.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    metrics.write_text('tieredctl_remote_bytes{topic="invoices7"} 1\n')
    crash_file.write_crash_file(ValueError("payments7"), ["tieredctl", "topic", "status", "other7"])

    outcome = bundled(tieredctl, to, "--result", result, "--result", metrics, "--hide-names")

    inside = b"".join(unpacked(to).values())
    assert outcome.exit_code == 5, outcome.err
    assert [one for one in (b"payments7", b"other7", b"invoices7", SECRET.encode()) if one in inside] == []
    assert len(unpacked(to)["results/0-scan.jsonl"].splitlines()) == 2
    left_out = {item["name"].partition("/")[0]: item["problem"] for item in manifest(to)["items"] if item["problem"]}
    why = "Left out because of --hide-names: it is plain text, in which any word may be the name of a topic."
    assert left_out == {"crashes": why, "results": why}


ITEMS_THAT_NAME: dict[str, dict[str, Any]] = {
    "aiven": {"key": f"prod/secret.orders-{TOPIC_ID}/3/00000000000000000044-iKEAjo4YQFCacBhyCX3_1g.log"},
    "local": {"key": f"secret.orders-3-{TOPIC_ID}/00000000000000000044-iKEAjo4YQFCacBhyCX3_1g.log"},
    "path": {"path": "/var/kafka/secret.orders-3/leader-epoch-checkpoint", "error": "secret.orders-3 is damaged"},
    "member": {"secret.orders-3": 5},
    "topic record": {"type": "TopicRecord", "data": {"name": "secret.orders", "topicId": TOPIC_ID}},
    "config record": {
        "data": {"resourceType": 2, "resourceName": "secret.orders", "name": "retention.ms", "value": "5"}
    },
}


def test_topics_that_only_a_key_or_a_path_names_are_hidden(tieredctl: Tieredctl, tmp_path: Path) -> None:
    to, result = tmp_path / "bundle.tar.gz", tmp_path / "result.json"
    segment = "iKEAjo4YQFCacBhyCX3_1g"
    for case, named in ITEMS_THAT_NAME.items():
        result.write_text(json.dumps({"items": [named, {"segmentId": segment, "topicId": TOPIC_ID}]}))

        bundled(tieredctl, to, "--result", result, "--hide-names", "--force")

        inside = unpacked(to)["results/0-result.json"]
        assert [one.encode() in inside for one in ("secret", segment, TOPIC_ID)] == [False, True, True], case


def test_topics_of_the_metadata_are_hidden_wherever_they_appear(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path
) -> None:
    to, result = tmp_path / "bundle.tar.gz", tmp_path / "keys.json"
    result.write_text(
        json.dumps({"keys": ["prod/orders7-ID/0/x.log", "orders7", "myorders7", {"orders7": "orders7-0"}]})
    )

    bundled(tieredctl, to, "--log-dir", captures / "kafka-4.3.1/data", "--result", result, "--hide-names")

    key, name, other, by_name = json.loads(unpacked(to)["results/0-keys.json"])["keys"]
    assert key == f"prod/{name}-ID/0/x.log"
    assert (name.startswith("topic-"), other) == (True, "myorders7")
    assert by_name == {name: f"{name}-0"}


def test_names_are_found_as_words_and_the_longest_first() -> None:
    for hidden, text, expected in (
        ({"a-b": "B", "a": "A"}, "a-b-0 a-0 a-b.c b-a", "B-0 A-0 A-b.c b-A"),
        (
            {"orders": "O"},
            "orders orders.x preorders orders_2 [orders] orders:0",
            "O orders.x preorders orders_2 [O] O:0",
        ),
        ({"-a": "D", "a--b": "E"}, "x--a a--b-1", "x-D E-1"),
        ({'odd "one"': "O", "one": "N"}, 'an odd "one" and one', "an O and N"),
        ({}, "a-b", "a-b"),
    ):
        found = HiddenNames(set(hidden))

        result = found.in_text(text)

        for name, letter in hidden.items():
            result = result.replace(found.in_text(name), letter)
        assert result == expected


def findings_about(name: str) -> list[dict[str, Any]]:
    """As commands write them: the name as an argument, quoted, in a path and a key, and next to full stops."""
    evidence = {"topic": name, "partition": 0, "key": f"prod/{name}-{TOPIC_ID}/3/00044.log"}
    sentences = [
        f"settings of topic {name} and 3 more: {name!r} cannot be read. The user may not look at topic {name}.",
        f"data is kept forever (topic {name})",
        f"{name}-0 ends at 5, /data/{name}-0/00044.log at 6; ask for {name}:0@7, '{name}', or \"{name}\"...",
    ]
    found = [Finding(FindingCode.EPOCH_MISMATCH, f"{name}-0", sentence, evidence) for sentence in sentences]
    found.append(Finding(FindingCode.TOPIC_NEVER_TIERED, f"topic {name}", sentences[0], evidence))
    return [one.document() for one in found]


@given(NAMES)
def test_no_name_is_anywhere_in_it(names: set[str]) -> None:
    items = [finding for name in names for finding in findings_about(name)]
    parts = [
        Part("doctor.json", "what doctor finds", json.dumps({"items": items, "by": dict.fromkeys(names, 1)})),
        Part("verify.json", "", "".join(f"{json.dumps(item)}\n" for item in items)),
        *(Part(f"results/0-{one}.json", "", None, f"/tmp/{one}.json cannot be read: no {one}.") for one in names),
    ]

    hidden = without_names(parts, names)

    inside = json.dumps([manifest_of(hidden, hides_names=True), *(part.text for part in hidden)], ensure_ascii=False)
    assert MARK not in inside
    assert [len((part.text or "").splitlines()) > 0 for part in hidden] == [part.text is not None for part in parts]


FINDINGS_THAT_NAME: dict[str, dict[str, Any]] = {
    "list": {"evidence": {"topics": ["secret", "other"]}, "message": "settings of topics secret."},
    "subject": {"subject": "topic secret", "message": "secret is not copied."},
    "sentence": {"message": "data is kept forever (topic secret)", "remedy": "tieredctl topic status secret …"},
    "member": {"longestTopic": "secret", "message": "secret."},
}


def test_topics_that_only_a_finding_names_are_hidden(tieredctl: Tieredctl, tmp_path: Path) -> None:
    to, result = tmp_path / "bundle.tar.gz", tmp_path / "result.json"
    for case, named in FINDINGS_THAT_NAME.items():
        result.write_text(json.dumps({"items": [named]}))

        bundled(tieredctl, to, "--result", result, "--hide-names", "--force")

        assert b"secret" not in unpacked(to)["results/0-result.json"], case
