#!/bin/sh
# Moves orphaned objects to quarantine, and deletes what has been there for two weeks.
#
# BOOTSTRAP_SERVER  the cluster, and COMMAND_CONFIG its client properties (/dev/null for none)
# CLUSTER_ID        as `kafka-cluster cluster-id` prints it: it confirms the change
# STORE             such as s3://bucket/prefix, and LAYOUT the form of its keys (auto detects it)
# RECEIPTS          `store`, or a file; by default next to the plan
# STATE_DIR         where plans and receipts are kept; METRICS_DIR where a node exporter reads metrics
set -eu
: "${BOOTSTRAP_SERVER:?}" "${CLUSTER_ID:?}" "${STORE:?}"
: "${COMMAND_CONFIG:=/dev/null}" "${LAYOUT:=auto}" "${STATE_DIR:=/var/lib/tieredctl}" "${METRICS_DIR:=$STATE_DIR}"

plan="$STATE_DIR/orphans-$(date +%Y%m%dT%H%M%S).plan"
cluster="--bootstrap-server $BOOTSTRAP_SERVER --command-config $COMMAND_CONFIG --cluster-id $CLUSTER_ID"

# shellcheck disable=SC2086 # $cluster must be split into words
tieredctl orphans plan $cluster --store "$STORE" --layout "$LAYOUT" --to "$plan" \
    --min-age 24h --max-percent 5 --max-objects 100000 --multipart --metrics-file "$METRICS_DIR/tieredctl_plan.prom"

# Without anything to remove there is no plan.
# shellcheck disable=SC2086
if [ -e "$plan" ]; then
    tieredctl orphans apply "$plan" $cluster --yes --receipts "${RECEIPTS:-$plan.receipts}" --rate 200 \
        --metrics-file "$METRICS_DIR/tieredctl_apply.prom"
fi

# shellcheck disable=SC2086
tieredctl orphans purge $cluster --yes --store "$STORE" --layout "$LAYOUT" --older-than 14d \
    --metrics-file "$METRICS_DIR/tieredctl_purge.prom"
