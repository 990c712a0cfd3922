# Build it from the project's folder, after `make spark-archive`. The image needs Spark 4 and the Python that packed it;
# for results under s3a://, hadoop-aws among Spark's jars.
FROM example.com/spark:4.3.0-python3.11
ADD dist/tieredctl-spark.tar.gz /opt/tieredctl/
COPY spark/tieredctl_spark/jobs/ /opt/tieredctl-jobs/
