#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer bench offload` brings up a rack of its own, measures every way to far
# records, and names every ratio. Its numbers are not judged here.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
[[ -z $AQ_PRELOAD ]] || skip "a benchmark of sanitized code tells nothing"

expect 0 "$AQUIFER" bench offload --help
expect 2 "$AQUIFER" bench offload --rounds 0
expect 2 "$AQUIFER" bench offload --records 5
expect 2 "$AQUIFER" bench offload --store 1
expect 2 "$AQUIFER" bench offload surplus

export TMPDIR=$TMP # others may measure in /tmp
status=0
"$AQUIFER" bench offload --quick --busy --json --dir "$TMP" >"$TMP/out" || status=$?
((status <= 1)) || fail "exit code $status"
cp "$TMP/out" "$TMP/json"
json "$TMP/json" 'd["bench"] == "offload" and d["commit"] and
	d["machine"]["cpu"] and d["settings"]["records"] > 0'
# The subjects ran (a busy machine may cost one its deadline), and none but the
# local ones without frames on the cable.
json "$TMP/json" 'len([r for r in d["rows"] if "error" in r]) <= 2'
# Of records that lie one behind the other the engine reads many at once.
json "$TMP/json" 'all(r["packets_per_op"] < 1 for r in d["rows"]
	if r["group"] == "scan64" and r["name"] == "cow" and "error" not in r)'
json "$TMP/json" 'all(r["packets_per_op"] > 0.01 for r in d["rows"]
	if r["unit"] == "op/s" and "error" not in r and
	r["name"] not in ("local", "file") and "direct" not in r["name"] and
	r["group"] != "switch_frames")'
# What the engine in the switch did for a record, and that idle rings are
# looked at.
json "$TMP/json" 'all(0.9 < r["app_writes_per_op"] < 2.5 and r["app_bytes_per_op"] > 60
	and r["switch_made_per_op"] > 1.8 for r in d["rows"]
	if r["group"] == "switch_probe64" and r["name"] == "p4" and "error" not in r)'
json "$TMP/json" 'all(r["probes_per_s"] > 0 for r in d["rows"]
	if r["group"] == "switch_frames" and r["name"] == "p4" and "error" not in r)'
for name in cow_client_cycles_vs_verbs cow64_vs_async_verbs \
	cow64_vs_sync_verbs cow64_vs_two_sided hlog_cow_vs_file_64 \
	hlog_comm_ratio cow8_vs_local cow64_vs_local cow8_vs_blocking \
	cow_latency_vs_sync cow_batched_latency_vs_async \
	hlog_cow_vs_local_64 hlog_cow_vs_local_512 \
	cow64_vs_async_direct cow8_beside_vs_local cow64_beside_vs_local \
	hlog_cow_beside_vs_local_64 hlog_cow_beside_vs_local_512 \
	p4_vs_spot_via_switch p4_vs_async_verbs_via_switch \
	p4_client_cycles_vs_verbs p4_lone_read_vs_spot fwd_rate_beside_p4; do
	json "$TMP/json" "d['ratios'].get('$name', 0) > 0 or
		d['void'].get('$name')"
done
# Nothing stays: no process, no file, no folder.
sleep 0.5
pgrep -f "$AQUIFER (memory|engine|switch).*bench-" && fail "a process stayed"
[[ -z $(find "$TMP" -name "aquifer-bench-*") ]] || fail "a folder stayed"

"$AQUIFER" bench offload --quick --busy --only caller64 >"$TMP/out" || true
grep -q 'cow_client_cycles_vs_verbs' "$TMP/out" || fail "no ratio"
expect 2 "$AQUIFER" bench offload --quick --only nothing_like_this
