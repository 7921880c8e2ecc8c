#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# promtool finds no fault in /metrics.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

need promtool
start_node
ask "$TOKEN" 201 POST /v1/regions '{"name": "a", "size": 1000000}'
ask "$ADMIN" 201 POST /v1/tenants '{"name": "t.u-v_w"}'
ask "" 200 GET /metrics
promtool check metrics <"$TMP/answer" >"$TMP/out" 2>&1 ||
	fail "promtool: $(<"$TMP/out")"
[[ ! -s $TMP/out ]] || fail "promtool: $(<"$TMP/out")"
[[ $(metric aquifer_regions) == 1 ]] || fail "no aquifer_regions"
stop_node
echo "ok: metrics"
