#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Groups of operations on a key-value store over two nodes: each has its own
# answer, those on one key keep their order, and each change happens once while
# blocks are split by others.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
client=$1

up_two
expect 0 "$AQUIFER" ns mkdir /job --keep
expect 0 "$client" verbs /job/verbs
expect 0 "$client" mixed /job/mixed

export EKV_BLOCK=65536
"$client" count /job/kv 300 20 2>"$TMP/one" &
one=$!
"$client" count /job/kv 300 20 2>"$TMP/two" &
two=$!
expect 0 "$client" fill /job/kv 2000 700
wait "$one" || fail "$(<"$TMP/one")"
wait "$two" || fail "$(<"$TMP/two")"
expect 0 "$client" sum /job/kv 300
[ "$(<"$TMP/out")" = 24000 ] || fail "the sum is $(<"$TMP/out")"
expect 0 "$AQUIFER" ekv scan /job/kv --json
json "$TMP/out" 'd["count"] == 2300 and d["blocks"] > 16' >/dev/null
expect 0 "$AQUIFER" down
