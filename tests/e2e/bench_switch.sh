#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer bench switch` runs and measures every subject. Its numbers are not
# judged here: the machine is busy.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

expect 0 "$AQUIFER" bench switch --help
expect 2 "$AQUIFER" bench switch --rounds 0
export TMPDIR=$TMP
expect 0 "$AQUIFER" bench switch --quick --json
left=$(find "$TMP" -mindepth 1 ! -name out ! -name err)
[[ -z $left ]] || fail "it leaves $left"
json "$TMP/out" 'd["bench"] == "switch" and d["commit"] and d["machine"]["cpu"]'
json "$TMP/out" 'len(d["rows"]) == 17 and all(r["value"] > 0 for r in d["rows"])'
json "$TMP/out" 'all(d["ratios"][k] > 0 for k in ("fwd_rate_vs_ring3",
	"via_switch_lat_vs_ring3", "read_rate_via_switch_vs_cable",
	"kv_rate_via_switch_vs_cable", "swordbox_cas_rate"))'
