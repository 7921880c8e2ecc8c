#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer bench walk` runs and measures every subject; all ways find the same.
# Its numbers are not judged here: the machine is busy.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
need_nic

expect 0 "$AQUIFER" bench walk --help
expect 2 "$AQUIFER" bench walk --size 0
export TMPDIR=$TMP
expect 0 "$AQUIFER" bench walk --quick --busy --size 4 --json
left=$(find "$TMP" -mindepth 1 ! -name out ! -name err)
[[ -z $left ]] || fail "it leaves $left"
json "$TMP/out" 'd["bench"] == "walk" and d["commit"] and d["machine"]["cpu"]'
json "$TMP/out" 'len(d["rows"]) == 34 and all(r["value"] > 0 for r in d["rows"])'
json "$TMP/out" 'not d["void"] and all(d["ratios"][k] > 0 for k in (
	"walk48_lat_vs_reads", "walk48_lat_vs_rpc", "walk48_rate_vs_reads",
	"walk48_rate_vs_rpc", "walk48_rate_vs_rpc_prefetch",
	"walk48_udp_lat_vs_reads", "reads_beside_walks", "interleave_gain",
	"cross_switch_vs_bounce", "index_cold_get_vs_reads",
	"reduce119_rate_vs_scan", "kv_extent_get_walk_vs_two",
	"exec_hot_vs_native_hash", "web_rate_vs_paged", "web_rate_vs_paged25",
	"tsv_rate_vs_paged", "tsv_rate_vs_paged25", "range_rate_vs_reads",
	"range_rate_vs_paged", "range_rate_vs_paged25"))'
