"""The manifests for Kubernetes: what the Spark operator takes, with arguments that the job takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema_rs import Draft202012Validator

ROOT = Path(__file__).parents[2]
MANIFESTS = [ROOT / "examples/spark-verify.yaml", ROOT / "examples/spark-verify-nightly.yaml"]
SCHEMAS = Path(__file__).with_name("spark-operator-crds.yaml")


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def strict(schema: Any) -> Any:
    """The same schema, refusing fields that it does not name, as `kubectl --validate=strict` does."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {} if "properties" not in schema else {"additionalProperties": False}
    return closed | {name: strict(value) for name, value in schema.items()}


def problems(document: Any) -> list[str]:
    schema = strict(loaded(SCHEMAS)[document["kind"]])
    schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
    return [f"{error.instance_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(document)]


def application(document: Any) -> Any:
    spec = document["spec"]
    return spec.get("template", spec)


@pytest.fixture(params=MANIFESTS, ids=lambda path: path.name)
def manifest(request: pytest.FixtureRequest) -> Any:
    return loaded(request.param)


def test_the_operator_takes_it(manifest: Any) -> None:
    assert manifest["apiVersion"] == "sparkoperator.k8s.io/v1beta2"
    assert problems(manifest) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("executer", {}), ("mode", "clustered"), ("volumes", [{"secret": {}}]), ("arguments", "--help")],
)
def test_the_schema_refuses_what_the_operator_would(manifest: Any, field: str, value: Any) -> None:
    application(manifest)[field] = value

    assert len(problems(manifest)) == 1


def test_the_job_takes_its_arguments(manifest: Any) -> None:
    pytest.importorskip("pyspark")
    from tieredctl_spark.jobs.verify import _parser

    options = _parser().parse_args(application(manifest)["arguments"])

    assert options.store == "s3://kafka-tiered/prod"


def test_nothing_secret_stands_in_it(manifest: Any) -> None:
    """Driver and executors have an identity instead, and the client's properties are a mounted secret."""
    spec = application(manifest)

    assert {spec[role]["serviceAccount"] for role in ("driver", "executor")} == {"tieredctl"}
    assert not {"env", "envFrom", "envVars", "envSecretKeyRefs"} & {*spec["driver"], *spec["executor"]}
    assert [volume["secret"]["secretName"] for volume in spec["volumes"]] == ["tieredctl-client"]


def test_the_image_has_what_the_manifest_runs(manifest: Any) -> None:
    built = (ROOT / "examples/spark.Dockerfile").read_text(encoding="utf-8")
    spec = application(manifest)

    assert "ADD dist/tieredctl-spark.tar.gz /opt/tieredctl/\n" in built
    assert "COPY spark/tieredctl_spark/jobs/ /opt/tieredctl-jobs/\n" in built
    assert spec["mainApplicationFile"] == "local:///opt/tieredctl-jobs/verify.py"
    assert (ROOT / "spark/tieredctl_spark/jobs/verify.py").is_file()
    assert set(spec["sparkConf"].values()) == {"/opt/tieredctl/pex"}
