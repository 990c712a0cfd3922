# Build it from the project's folder, after `make spark-archive`. The image needs Spark 4 and the Python that packed it.
# For s3a://, the manifests name hadoop-aws as a package, which each driver fetches; an image that has it and its
# dependencies among Spark's jars, `mvn dependency:copy-dependencies` of a project that names it, starts faster.
FROM example.com/spark:4.3.0-python3.11
ADD dist/tieredctl-spark.tar.gz /opt/tieredctl/
COPY spark/tieredctl_spark/jobs/ /opt/tieredctl-jobs/
