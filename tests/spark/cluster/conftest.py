"""One cluster for all tests of this folder: its workers have credentials in a file, as a node's profile would, and
those of Azure in the environment, as `conf/spark-env.sh` would."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rigs.availability import rig_unavailable
from tests.rigs.object_servers import ACCESS_KEY, AZURE_ACCOUNT, AZURE_KEY, SECRET_KEY, ObjectServer
from tests.rigs.prerequisites import RigMissing
from tests.rigs.spark_cluster import SparkCluster, spark_archive


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master and two workers, and the archive of the sources as they are."""
    pytest.importorskip("pyspark")
    credentials = tmp_path_factory.mktemp("credentials") / "credentials"
    credentials.write_text(f"[default]\naws_access_key_id={ACCESS_KEY}\naws_secret_access_key={SECRET_KEY}\n")
    credentials.chmod(0o600)
    try:
        azure = {"AZURE_STORAGE_ACCOUNT": AZURE_ACCOUNT, "AZURE_STORAGE_KEY": AZURE_KEY}
        cluster = SparkCluster(spark_archive(), {"AWS_SHARED_CREDENTIALS_FILE": str(credentials), **azure})
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with cluster:
        yield cluster


ON_AZURITE = pytest.param("azurite", marks=pytest.mark.exhaustive("a standalone cluster and Azurite"))


@pytest.fixture(scope="module", params=["versitygw", ON_AZURITE])
def server(request: pytest.FixtureRequest) -> ObjectServer:
    """One of each kind of server that the cluster's workers have credentials for."""
    running: ObjectServer = request.getfixturevalue(request.param)
    return running
