"""Manifests for Kubernetes and the chart: what its API takes, with commands and properties that tieredctl takes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema_rs import Draft202012Validator

from tests.cli.command_line import this_process
from tests.rigs.availability import rig_unavailable
from tests.rigs.go_program import go_program
from tests.rigs.prerequisites import RigMissing
from tieredctl import __version__

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
CHART = EXAMPLES / "helm/tieredctl"
SCHEMAS = Path(__file__).with_name("kubernetes-schemas.json")
HELM = ("helm.sh/helm/v3/cmd/helm", "v3.22.0")
PLACES = "bootstrapServer=broker:9092,store=s3://kafka-tiered/prod"


def manifests(text: str) -> list[Any]:
    return [document for document in yaml.safe_load_all(text) if document]


def problems(document: Any) -> list[str]:
    known = json.loads(SCHEMAS.read_text(encoding="utf-8"))
    schema = {"$defs": known["$defs"], "$ref": f"#/$defs/{document['kind']}"}
    return [f"{error.instance_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(document)]


def pod_of(document: Any) -> Any:
    spec = document["spec"]
    return spec.get("jobTemplate", {"spec": spec})["spec"]["template"]["spec"]


def containers(documents: list[Any]) -> Iterator[Any]:
    for document in documents:
        if document["kind"] in ("CronJob", "Deployment"):
            yield from pod_of(document)["containers"]


def demand_commands(documents: list[Any]) -> None:
    """That tieredctl has the commands with all of their options."""
    for container in containers(documents):
        done = this_process(*container["args"], "--help")
        assert done.exit_code == 0, f"{container['args']}: {done.err}"


@pytest.fixture(scope="module")
def strimzi() -> list[Any]:
    return manifests((EXAMPLES / "strimzi.yaml").read_text(encoding="utf-8"))


def test_kubernetes_takes_the_manifests(strimzi: list[Any]) -> None:
    job = manifests((EXAMPLES / "cronjob.yaml").read_text(encoding="utf-8"))

    assert [problems(document) for document in [*job, *strimzi]] == [[]] * (len(job) + len(strimzi))
    assert {"KafkaUser", "CronJob", "PersistentVolumeClaim", "Deployment", "ServiceMonitor"} <= {
        document["kind"] for document in strimzi
    }
    demand_commands(strimzi)


def test_the_schemas_refuse_what_kubernetes_would(strimzi: list[Any]) -> None:
    for kind, path, value in (
        ("CronJob", ["spec", "shedule"], "0 3 * * *"),
        ("CronJob", ["spec", "jobTemplate", "spec", "template", "spec", "containers", 0, "env"], {"A": "b"}),
        ("Deployment", ["spec", "template", "spec", "volumes", 0, "secret"], "tieredctl"),
        ("Service", ["spec", "ports", 0, "port"], "metrics"),
        ("KafkaUser", ["spec", "authorization", "acls", 0, "operations"], ["Look"]),
        ("ServiceMonitor", ["spec", "endpoints", 0, "intervall"], "30s"),
    ):
        document = deepcopy(next(one for one in strimzi if one["kind"] == kind))
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        assert len(problems(document)) == 1, path


def test_the_pods_of_strimzi_name_only_what_is_there(strimzi: list[Any]) -> None:
    here = {(document["kind"], document["metadata"]["name"]) for document in strimzi}
    here |= {("Secret", name) for kind, name in here if kind == "KafkaUser"}  # which the operator makes
    for document in strimzi:
        if document["kind"] not in ("CronJob", "Deployment"):
            continue
        pod = pod_of(document)
        for volume in pod["volumes"]:
            named = {
                "Secret": volume.get("secret", {}).get("secretName"),
                "ConfigMap": volume.get("configMap", {}).get("name"),
                "PersistentVolumeClaim": volume.get("persistentVolumeClaim", {}).get("claimName"),
            }
            found = {(kind, name) for kind, name in named.items() if name and name != "prod-cluster-ca-cert"}
            assert found <= here
        mounted = {
            mount["name"] for one in [*pod["containers"], *pod["initContainers"]] for mount in one["volumeMounts"]
        }
        assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_the_properties_for_strimzi_are_taken(strimzi: list[Any], tmp_path: Path) -> None:
    """With a key and a certificate in two files, as Strimzi gives them; they are read before any listener is asked."""
    own_certificate(tmp_path / "user.key", tmp_path / "user.crt")
    pod = next(pod_of(one) for one in strimzi if one["kind"] == "CronJob")
    text = next(one for one in strimzi if one["kind"] == "ConfigMap")["data"]["client.properties"]
    (joining,) = pod["initContainers"]
    joined = [word.replace("/user/", f"{tmp_path}/").replace("/client/", f"{tmp_path}/") for word in joining["command"]]
    subprocess.run(joined, check=True, timeout=60)
    properties = tmp_path / "client.properties"
    properties.write_text(
        text.replace("/cluster-ca/ca.crt", f"{tmp_path}/user.crt").replace("/client/", f"{tmp_path}/")
    )

    done = this_process("offsets", "t", "--bootstrap-server", "localhost:1", "--command-config", str(properties))

    assert (done.exit_code, "localhost:1" in done.err) == (1, True), done.err


def own_certificate(key_file: Path, certificate_file: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name.from_rfc4514_string("CN=tieredctl")
    now = datetime.now(UTC)
    signed = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    certificate = signed.sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    key_file.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    certificate_file.write_bytes(certificate.public_bytes(pem))


def test_the_charts_own_values_fit_its_schema_once_the_places_are_named() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = Draft202012Validator(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")))
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert sorted(error.instance_path for error in schema.iter_errors(values)) == [["bootstrapServer"], ["store"]]
    assert {chart["version"], chart["appVersion"]} == {__version__}


@pytest.fixture
def helm() -> Path:
    try:
        return go_program(*HELM)
    except RigMissing as missing:
        reason = str(missing)
    rig_unavailable(reason)


@pytest.mark.exhaustive("helm")
def test_what_the_chart_renders_is_taken_too(helm: Path) -> None:
    everything = "clientSecret=kafka,exporter.serviceMonitor.enabled=true,env.AWS_REGION=eu-central-1"
    everything += ",results.storageClassName=efs,resources.limits.memory=1Gi,serviceAccountAnnotations.role=r"
    for more, kinds in (
        ("layout=aiven", "ServiceAccount PersistentVolumeClaim Service Deployment CronJob CronJob"),
        (everything, "ServiceAccount PersistentVolumeClaim Service Deployment CronJob CronJob ServiceMonitor"),
        ("exporter.enabled=false,scans.verify=null", "ServiceAccount PersistentVolumeClaim CronJob"),
    ):
        words = [str(helm), "template", "tieredctl", str(CHART), "--set", f"{PLACES},{more}"]
        rendered = manifests(subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout)

        assert sorted(document["kind"] for document in rendered) == sorted(kinds.split()), more
        assert [problems(document) for document in rendered] == [[]] * len(rendered), more
        demand_commands(rendered)


@pytest.mark.exhaustive("helm")
def test_helm_refuses_values_that_are_wrong(helm: Path) -> None:
    for wrong in ("store=kafka-tiered", "bootstrapServer=broker", "scan.a.args={a}", "results.accessMode=ReadOnlyMany"):
        words = [str(helm), "template", "tieredctl", str(CHART), "--set", f"{PLACES},{wrong}"]

        assert subprocess.run(words, capture_output=True, timeout=60, check=False).returncode != 0, wrong
