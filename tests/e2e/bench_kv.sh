#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer bench kv` runs; what it counts is as promised on any machine, what it
# times is not judged here.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
need_nic

expect 0 "$AQUIFER" bench kv --help
expect 2 "$AQUIFER" bench kv --rounds 0
expect 2 "$AQUIFER" bench kv --only nothing
expect 0 "$AQUIFER" bench kv --quick --check --only fill
expect 0 "$AQUIFER" bench kv --quick --json
json "$TMP/out" 'd["bench"] == "kv" and d["commit"] and d["machine"]["cpu"]'
json "$TMP/out" 'all(d["bounds"][n]["kept"] for n in ("rtt_read_inline",
	"rtt_read_extent", "rtt_update", "rtt_delete", "rtt_insert_median"))'
# A ratio is a number, or void with its reason where there is no Redis.
json "$TMP/out" 'all(n in d["ratios"] or d["void"][n] for n in
	("kv_c_vs_redis_p1", "kv_c_async_vs_redis_p16", "kv_a_vs_redis_p1",
	"gateway_p16_vs_redis_p16"))'
