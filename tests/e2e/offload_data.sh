#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random asynchronous reads and writes of several threads, on one node and on
# two, against a model; the engine is visible in status and top.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1

printf '[memory m0]\nsize = 64M\n[memory m1]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up --json
json "$TMP/out" 'd["engines"][0]["name"] == "e0" and d["engines"][0]["state"] == "up"' >/dev/null || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" region create one 1M
expect 0 "$AQUIFER" region create two 1M --nodes 2 --stripe 4K
expect 0 client many one 4 1
cat "$TMP/out"
expect 0 client many two 2 0.7
cat "$TMP/out"
expect 0 "$AQUIFER" status --json
# Every second thread lets the engine map what it reads.
[[ -n ${AQ_VIA_SWITCH+x} ]] ||
	json "$TMP/out" 'd["engines"][0]["direct_ops"] > 1000' >/dev/null
json "$TMP/out" 'd["engines"][0]["counters"]["reads"] > 0 and d["engines"][0]["sessions"] == 0 and d["engines"][0]["counters"]["broken"] == 0' >/dev/null || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" top --once --interval 0.2 --json
json "$TMP/out" 'len(d["engines"]) == 1' >/dev/null || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" down --json
json "$TMP/out" '{n["name"] for n in d["nodes"]} == {"m0", "m1"} and
	[e["name"] for e in d["engines"]] == ["e0"]' >/dev/null || fail "$(<"$TMP/out")"
