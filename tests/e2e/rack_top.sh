#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# top sees the operations of a client, with their latency; and its grants.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 1M
client busy r 20 >"$TMP/lines" &
PIDS+=("$!")
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "not ready"
expect 0 "$AQUIFER" top --once --json --interval 1
json "$TMP/out" 'd["total"]["operations_per_s"] > 100
    and d["total"]["read_bytes_per_s"] > 6400
    and 0 < d["total"]["latency_p50_ns"] <= d["total"]["latency_p99_ns"]
    and d["nodes"][0]["state"] == "up" and d["nodes"][0]["connections"] == 1
    and any(c["reads_per_s"] > 100 for c in d["clients"])' >/dev/null
expect 0 "$AQUIFER" top --once --interval 0.2
grep -q '^m0 ' "$TMP/out" || fail "no node"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["nodes"][0]["connections"] == 1' >/dev/null
expect 2 "$AQUIFER" top --interval never

# Who has a key of the region, and that a mapping could not be taken back.
expect 0 "$AQUIFER" region grants r --json
json "$TMP/out" 'len(d["grants"]) == 1 and d["grants"][0]["node"] == "m0"
    and d["grants"][0]["region"] == "r"
    and d["grants"][0]["revocable"] is False' >/dev/null
expect 0 "$AQUIFER" region grants
grep -q '1 not revocable' "$TMP/out" || fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" region grants other --json
json "$TMP/out" 'd["grants"] == []' >/dev/null
expect 2 "$AQUIFER" region grants r s
