-- A view for each of the pipeline's tables, for DuckDB. Run it at the start of a session, such as in the init SQL of
-- Grafana's DuckDB data source: the views have the version that was current then. s3:// needs the extension httpfs.
SET VARIABLE tables = 's3://lake/tiered';
SET VARIABLE manifest = (SELECT max(file) FROM glob(getvariable('tables') || '/_manifests/*.json'));

SET VARIABLE events = (
    SELECT list_transform(json_extract_string(content, '$.tables.events.files[*].path'), lambda path: getvariable('tables') || '/' || path)
    FROM read_text(getvariable('manifest'))
);
CREATE OR REPLACE VIEW events AS SELECT * FROM read_parquet(getvariable('events'), hive_partitioning = true);
SET VARIABLE segments = (
    SELECT list_transform(json_extract_string(content, '$.tables.segments.files[*].path'), lambda path: getvariable('tables') || '/' || path)
    FROM read_text(getvariable('manifest'))
);
CREATE OR REPLACE VIEW segments AS SELECT * FROM read_parquet(getvariable('segments'), hive_partitioning = true);
SET VARIABLE segment_history = (
    SELECT list_transform(json_extract_string(content, '$.tables.segment_history.files[*].path'), lambda path: getvariable('tables') || '/' || path)
    FROM read_text(getvariable('manifest'))
);
CREATE OR REPLACE VIEW segment_history AS SELECT * FROM read_parquet(getvariable('segment_history'), hive_partitioning = true);
SET VARIABLE objects_daily = (
    SELECT list_transform(json_extract_string(content, '$.tables.objects_daily.files[*].path'), lambda path: getvariable('tables') || '/' || path)
    FROM read_text(getvariable('manifest'))
);
CREATE OR REPLACE VIEW objects_daily AS SELECT * FROM read_parquet(getvariable('objects_daily'), hive_partitioning = true);
SET VARIABLE cost_daily = (
    SELECT list_transform(json_extract_string(content, '$.tables.cost_daily.files[*].path'), lambda path: getvariable('tables') || '/' || path)
    FROM read_text(getvariable('manifest'))
);
CREATE OR REPLACE VIEW cost_daily AS SELECT * FROM read_parquet(getvariable('cost_daily'), hive_partitioning = true);
SET VARIABLE findings = (
    SELECT list_transform(json_extract_string(content, '$.tables.findings.files[*].path'), lambda path: getvariable('tables') || '/' || path)
    FROM read_text(getvariable('manifest'))
);
CREATE OR REPLACE VIEW findings AS SELECT * FROM read_parquet(getvariable('findings'), hive_partitioning = true);
SET VARIABLE orphans_daily = (
    SELECT list_transform(json_extract_string(content, '$.tables.orphans_daily.files[*].path'), lambda path: getvariable('tables') || '/' || path)
    FROM read_text(getvariable('manifest'))
);
CREATE OR REPLACE VIEW orphans_daily AS SELECT * FROM read_parquet(getvariable('orphans_daily'), hive_partitioning = true);
SET VARIABLE coverage = (
    SELECT list_transform(json_extract_string(content, '$.tables.coverage.files[*].path'), lambda path: getvariable('tables') || '/' || path)
    FROM read_text(getvariable('manifest'))
);
CREATE OR REPLACE VIEW coverage AS SELECT * FROM read_parquet(getvariable('coverage'), hive_partitioning = true);
SET VARIABLE copy_lag_hourly = (
    SELECT list_transform(json_extract_string(content, '$.tables.copy_lag_hourly.files[*].path'), lambda path: getvariable('tables') || '/' || path)
    FROM read_text(getvariable('manifest'))
);
CREATE OR REPLACE VIEW copy_lag_hourly AS SELECT * FROM read_parquet(getvariable('copy_lag_hourly'), hive_partitioning = true);
SET VARIABLE retention_forecast = (
    SELECT list_transform(json_extract_string(content, '$.tables.retention_forecast.files[*].path'), lambda path: getvariable('tables') || '/' || path)
    FROM read_text(getvariable('manifest'))
);
CREATE OR REPLACE VIEW retention_forecast AS SELECT * FROM read_parquet(getvariable('retention_forecast'), hive_partitioning = true);
