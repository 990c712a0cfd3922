"""A real broker that lost its disk: its users sign in as before, if the set kept their keys for a recipient."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from confluent_kafka.cimpl import NewTopic

from tests.backup.key_files import KeyFiles, key_files
from tests.cli.command_line import Outcome, Tieredctl
from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.topics import admin_client, answered, create_topics
from tests.rigs.waiting import wait_until
from tieredctl.errors import ExitCode

pytestmark = pytest.mark.integration

ALICE, PASSWORD = "alice", "her-old-password"
SETTING, VALUE = "plugin.of.ours.secret", "a-word-of-the-plugin"
SECONDS = 30
_OTHERS = (pytest.param(one, marks=pytest.mark.exhaustive(f"a broker of {one}")) for one in ("3.9.1", "4.4.0"))


@pytest.fixture(params=["4.3.1", *_OTHERS])
def broker(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    with KafkaBroker(jars_of(request.param), secure=True) as broker:
        create_topics(broker.bootstrap_server, NewTopic("notes", 1, replication_factor=1))
        give_secrets(broker)
        # enough for a snapshot of the metadata log, with the secrets in it
        create_topics(broker.bootstrap_server, NewTopic("many", 20, replication_factor=1))
        wait_until(lambda: has_setting(broker, "*.checkpoint"), "a snapshot has the setting", SECONDS)
        yield broker


def give_secrets(broker: KafkaBroker) -> None:
    admin = admin_client(broker.bootstrap_server)
    user = UserScramCredentialUpsertion(
        ALICE, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), PASSWORD.encode()
    )
    answered(lambda: admin.alter_user_scram_credentials([user])[ALICE].result(SECONDS))
    entry = ConfigEntry(SETTING, VALUE, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    answered(lambda: admin.incremental_alter_configs([resource])[resource].result(SECONDS))


def signs_in(broker: KafkaBroker, password: str = PASSWORD) -> bool:
    """Whether alice does, by SCRAM-SHA-512."""
    refused: list[str] = []
    settings: dict[str, Any] = broker.secure_listeners.client_properties("SASL_SSL", "SCRAM-SHA-512")
    settings |= {"sasl.username": ALICE, "sasl.password": password, "log_level": 0}
    settings["error_cb"] = lambda error: refused.append(error.name())
    admin = AdminClient(settings)
    try:
        topics = admin.list_topics(timeout=10).topics
    except KafkaException:
        wait_until(lambda: admin.poll(0.1) == 0 and bool(refused), "the client says why", SECONDS)
        assert "_AUTHENTICATION" in refused
        return False
    return "notes" in topics


def has_setting(broker: KafkaBroker, files: str = "*") -> bool:
    """By the broker's own log directory: no broker tells a sensitive value."""
    folder = broker.log_dir / "__cluster_metadata-0"
    return any(VALUE.encode() in path.read_bytes() for path in folder.glob(files))


def lose_and_restore(broker: KafkaBroker, sets: Path, tieredctl: Tieredctl, *more: str | Path) -> Outcome:
    broker.kill()
    shutil.rmtree(broker.log_dir)
    broker.remote_dir.mkdir(parents=True, exist_ok=True)
    places = ("--from", f"file:{sets}", "--store", f"file:{broker.remote_dir}", "--node", f"1={broker.log_dir}")
    confirmed = ("--yes", "--cluster-id", broker.cluster_id)
    done = tieredctl("restore", "apply", *places, *confirmed, "-o", "json", *more)
    assert done.exit_code == ExitCode.CLEAN, done.err
    broker.start()
    return done


def test_a_user_signs_in_with_the_old_password_after_everything_was_lost(
    broker: KafkaBroker, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    keys, sets = key_files(tmp_path, 0, password="the key's own"), tmp_path / "sets"
    sets.mkdir()
    assert signs_in(broker)
    server = ("--bootstrap-server", broker.bootstrap_server)
    made = tieredctl(
        "backup", "run", *server, "--to", f"file:{sets}", "--recipient", keys.public, "-o", "json", "--debug"
    )
    assert made.exit_code == ExitCode.CLEAN, made.err
    named = {(one["kind"], one["subject"]) for one in made.document()["summary"]["encrypted"]}
    assert named >= {("credential", f"{ALICE}, SCRAM-SHA-512"), ("config", f"broker 1: {SETTING}")}
    assert VALUE not in made.out + made.err
    assert "unaligned_records=…" in made.err, "the snapshot was fetched, and nothing of it is shown"
    demand_nothing_in_the_clear(sets)

    without = lose_and_restore(broker, sets, tieredctl)
    assert (signs_in(broker), has_setting(broker)) == (False, False)
    assert f"the password of {ALICE}, SCRAM-SHA-512" in without.document()["summary"]["leftOut"]

    back = lose_with_password(broker, sets, keys, tieredctl)
    assert (signs_in(broker), has_setting(broker)) == (True, True)
    assert not signs_in(broker, "another-password")
    assert all(ALICE not in one for one in back.document()["summary"]["leftOut"])


def lose_with_password(broker: KafkaBroker, sets: Path, keys: KeyFiles, tieredctl: Tieredctl) -> Outcome:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIEREDCTL_IDENTITY_PASSWORD", "the key's own")
        return lose_and_restore(broker, sets, tieredctl, "--identity", keys.private)


def demand_nothing_in_the_clear(sets: Path) -> None:
    for path in sets.rglob("*"):
        assert path.is_dir() or VALUE.encode() not in path.read_bytes(), path
