#!/bin/sh
# Keys whose segment is not alive: ids cut out of text, sorted and joined. $1: lines of Kafka's formatter, $2: keys.
# Ages, topics and proofs are ignored: a segment is alive if its copy finished and no deletion began.
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ids() { mawk '{ at = index($0, ", id="); print substr($0, at + 5, 22) }'; }
grep -F 'state=COPY_SEGMENT_FINISHED' "$1" | ids | sort -u >"$work/finished"
grep -F 'state=DELETE_SEGMENT_' "$1" | ids | sort -u >"$work/deleted"
comm -23 "$work/finished" "$work/deleted" >"$work/alive"
mawk -F/ '{ print substr($NF, 22, 22), $0 }' "$2" | sort -k1,1 | join -v1 - "$work/alive" | cut -d' ' -f2-
