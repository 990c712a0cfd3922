"""Keys and values in Avro: decoded by the schemas of a file or of a registry, an error for each that is not of them."""

from __future__ import annotations

import io
import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from tests.records.one_segment import of_log
from tieredctl.cli.records.avro_options import AvroOptions
from tieredctl.cli.records.record_items import RecordFormat, record_items
from tieredctl.cli.records.shown_bytes import BytesAs, ShownBytes
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.kafka.schema_registry import USER_INFO
from tieredctl.records.avro_values import AvroValues, SchemaOfFile
from tieredctl.wiring.avro_schemas import avro_values

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "map", "values": "bytes"}},
        {"name": "price", "type": "double"},
        {"name": "kinds", "type": {"type": "array", "items": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}}},
    ],
}
TREE = {
    "type": "record",
    "name": "Tree",
    "namespace": "garden",
    "fields": [
        {"name": "left", "type": ["null", "Tree"]},
        {"name": "others", "type": {"type": "array", "items": "garden.Tree"}},
    ],
}
VALUE = {"id": 1 << 60, "item": "bread", "at": 1 << 62, "tags": {"t": b"\xff"}, "price": 2.5, "kinds": ["B"]}
SHOWN = {**VALUE, "tags": {"t": "/w=="}}
ID = 7
BRANCHES = {"left": {"left": None, "others": []}, "others": [{"left": None, "others": []}]}
USER, PASSWORD = "reader", "s3cret:@"
SCHEMAS: dict[int, object] = {
    ID: {"schema": json.dumps(ORDER)},
    8: {"schema": json.dumps(TREE)},
    9: {"schema": "message Order {}", "schemaType": "PROTOBUF"},
    10: {"schema": json.dumps({"type": "array", "items": "null"})},
    11: {"schema": json.dumps({"type": "Elsewhere"}), "references": [{"name": "Elsewhere"}]},
    12: {"schema": "{"},
}


class Registry(BaseHTTPRequestHandler):
    """GET /schemas/ids/{id}, as Confluent's registry answers it; with a password below /private."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        path = self.path.removeprefix("/private")
        pair = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if path != self.path and self.headers["Authorization"] != f"Basic {pair}":
            return self._answer(401, {"error_code": 401, "message": "Unauthorized"})
        if path.startswith("/elsewhere"):
            self.send_response(302)
            self.send_header("Location", path.removeprefix("/elsewhere"))
            return self.end_headers()
        if path.startswith("/broken"):
            return self._answer(500, {"error_code": 50001})
        if path.startswith("/page"):
            return self._answer(200, ["no schema"])
        number = int(path.removeprefix("/schemas/ids/"))
        if number not in SCHEMAS:
            return self._answer(404, {"error_code": 40403, "message": f"Schema {number} not found"})
        return self._answer(200, SCHEMAS[number])

    def _answer(self, status: int, document: object) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[str]:
    Registry.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()


def encoded(value: object = VALUE, schema: dict[str, Any] = ORDER, number: int = ID) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def error_of(avro: AvroValues, data: bytes) -> str:
    document = avro.document(data)
    assert "value" not in document
    assert data.endswith(b64decode(document["data"]))
    return str(document["error"])


def test_records_are_decoded_by_the_schemas_of_a_registry(registry: str) -> None:
    values = [encoded(), encoded(BRANCHES, TREE, 8), None, encoded()]
    records = [Record(at, 0, b"k", value) for at, value in enumerate(values)]
    log = encode_batch(records, partition_leader_epoch=3)
    shown = ShownBytes(BytesAs.TEXT, BytesAs.AVRO, avro_values(None, registry))

    items = [*record_items(of_log(log, 0, 3).read(), shown)]
    lines = [*RecordFormat("%o %s", shown).lines(of_log(log, 0, 3).read())]

    decoded = {"schemaId": ID, "value": SHOWN}
    trees = {"schemaId": 8, "value": BRANCHES}
    assert [item["value"] and json.loads(item["value"]) for item in items] == [decoded, trees, None, decoded]
    assert json.loads(lines[0].removeprefix(b"0 ")) == decoded
    assert Registry.asked == [f"/schemas/ids/{ID}", "/schemas/ids/8"]


def test_without_schemas_the_id_is_shown() -> None:
    document = avro_values(None, None).document(encoded())

    assert document == {"schemaId": ID, "data": b64encode(encoded()[5:]).decode()}


def test_the_schema_of_a_file_decodes_any_id(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(json.dumps(ORDER))

    assert avro_values(file, None).document(encoded(number=99)) == {"schemaId": 99, "value": SHOWN}
    for text in ("", "{}", "[" * 10_000, '"Unknown"', '{"type": "array", "items": "null"}', '{"type": "record"}'):
        file.write_text(text)
        with pytest.raises(TieredctlError) as raised:
            avro_values(file, None)
        assert raised.value.code is ErrorCode.USAGE, text
    file.write_bytes(b"\xff")
    with pytest.raises(TieredctlError):
        avro_values(file, None)


def test_what_a_url_has_besides_its_place_is_not_kept() -> None:
    options = AvroOptions(value=BytesAs.AVRO, schema_registry="http://registry:8081/schemas/?token=secret#secret")

    assert options.identity() == "http://registry:8081/schemas"


def test_whatever_is_not_of_its_schema_is_an_error_of_its_own(registry: str) -> None:
    avro, sound = avro_values(None, registry), encoded()
    for end in range(len(sound)):
        error_of(avro, sound[:end])
    error_of(avro, sound + b"\0")
    for number in (9, 10, 11, 12, 404):
        assert error_of(avro, encoded(number=number)).startswith(f"schema {number} "), number
    many = AvroValues(SchemaOfFile("", json.dumps({"type": "array", "items": "long"})))
    error_of(many, encoded(number=1)[:5] + b"\xfe" * 9 + b"\x01" + b"\0" * 100)
    deep = b"\0\0\0\0\x08" + b"\x02" * 1_000_000
    assert error_of(avro, deep) == "it is nested too deeply"
    assert avro.undecoded == len(sound) + 1 + 5 + 1
    assert avro.document(sound)["value"] == SHOWN


def test_bits_that_flip_lead_to_no_other_end() -> None:
    avro, sound = AvroValues(SchemaOfFile("", json.dumps(ORDER))), encoded()
    for bit in range(8 * len(sound)):
        altered = bytearray(sound)
        altered[bit // 8] ^= 1 << bit % 8
        json.dumps(avro.document(bytes(altered)), allow_nan=False)


def test_a_registry_that_does_not_answer_ends_it_in_a_sentence(registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host = registry.removeprefix("http://")
    for url, code in (
        ("http://127.0.0.1:1", ErrorCode.REGISTRY_UNREACHABLE),
        (f"https://{host}", ErrorCode.REGISTRY_UNREACHABLE),
        (f"{registry}/broken", ErrorCode.REGISTRY_UNREACHABLE),
        (f"{registry}/page", ErrorCode.REGISTRY_UNREACHABLE),
        (f"{registry}/elsewhere", ErrorCode.REGISTRY_UNREACHABLE),
        (f"{registry}/private", ErrorCode.REGISTRY_REFUSED),
        (f"{registry}/private/", ErrorCode.REGISTRY_REFUSED),
    ):
        if url.endswith("/"):
            monkeypatch.setenv(USER_INFO, "reader:amiss")
        with pytest.raises(TieredctlError) as raised:
            avro_values(None, url).document(encoded())
        assert raised.value.code is code, url
        assert "amiss" not in raised.value.message
    for url in ("file:///etc/passwd", "localhost:8081", "http://", "http://h:port", "", f"http://u:amiss@{host}"):
        with pytest.raises(TieredctlError) as raised:
            avro_values(None, url)
        assert raised.value.code is ErrorCode.USAGE, url
        assert "amiss" not in raised.value.message + raised.value.hint


def test_a_user_and_a_password_are_in_the_environment(registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USER_INFO, f"{USER}:{PASSWORD}")

    assert avro_values(None, f"{registry}/private").document(encoded())["value"] == SHOWN
