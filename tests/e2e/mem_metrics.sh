#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# promtool finds no fault in /metrics, which also says what clients of this
# machine did: sums that stay when a client ends, and none of other tenants.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"
: "${AQ_BUSY_CLIENT:?}"

need promtool
NODE_OPTIONS=(--listen 127.0.0.1:0 --json)
start_node
PORT=$(json "$TMP/node" 'd["port"]')
ask "$TOKEN" 201 POST /v1/regions '{"name": "a", "size": 1000000}'
ask "$ADMIN" 201 POST /v1/tenants '{"name": "t.u-v_w"}'
OTHER=$(json "$TMP/answer" 'd["token"]')
ask "$TOKEN" 400 POST /v1/regions '{"name": "b", "size": 1, "colour": "red"}'
grep -q 'colour.* is not known here' "$TMP/answer" || fail "$(<"$TMP/answer")"
ask "" 200 GET /v1/status
[[ $(json "$TMP/answer" 'd["version"]') == "$("$AQUIFER" --version |
	sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')" ]] || fail "$(<"$TMP/answer")"

# A client of one tenant, and one of another.
expect 0 "$AQUIFER" kv create users 1K --extents 4M
expect 0 env AQUIFER_TOKEN="$OTHER" "$AQUIFER" kv create hidden 1K --extents 4M
env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} timeout -k 5 600 \
	"$AQ_BUSY_CLIENT" kv users 600 >"$TMP/users" 2>&1 &
CLIENT=$!
PIDS+=("$CLIENT")
env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} AQUIFER_TOKEN="$OTHER" \
	timeout -k 5 600 "$AQ_BUSY_CLIENT" kv hidden 600 >"$TMP/hidden" 2>&1 &
PIDS+=("$!")

# count TABLE: gets of its clients, as the node says.
count() {
	ask "${2:-}" 200 GET /metrics
	sed -n 's/^aquifer_client_operations_total{kind="kv",object="'"$1"'",tenant="[^"]*",operation="reads"} //p' \
		"$TMP/answer"
}
for table in users hidden; do
	for _ in {1..200}; do
		n=$(count "$table")
		((${n:-0} < 20)) || break
		sleep 0.1
	done
	((${n:-0} >= 20)) || fail "$table: $n $(cat "$TMP/$table")"
done

ask "" 200 GET /metrics
promtool check metrics <"$TMP/answer" >"$TMP/out" 2>&1 ||
	fail "promtool: $(<"$TMP/out")"
[[ ! -s $TMP/out ]] || fail "promtool: $(<"$TMP/out")"
grep -q '^aquifer_regions [1-9]' "$TMP/answer" || fail "no aquifer_regions"
grep -q '^aquifer_build_info{version="[0-9.]*"} 1$' "$TMP/answer" ||
	fail "no aquifer_build_info"
grep -q '^aquifer_clients{kind="kv",object="users",tenant="default"} 1$' \
	"$TMP/answer" || fail "$(grep ^aquifer_client "$TMP/answer")"
grep -q '^aquifer_client_latency_seconds_count{kind="kv",object="hidden",tenant="t.u-v_w"} [1-9]' \
	"$TMP/answer" || fail "$(grep ^aquifer_client "$TMP/answer")"
grep -q '^aquifer_client_bytes_total{kind="kv",object="users",tenant="default",direction="write"} [1-9]' \
	"$TMP/answer" || fail "$(grep ^aquifer_client "$TMP/answer")"

# From another machine a tenant is told of its own clients only, and a stranger
# nothing.
curl -sS -H "Authorization: Bearer $TOKEN" \
	"http://127.0.0.1:$PORT/metrics" >"$TMP/answer"
grep -q '^aquifer_clients{kind="kv",object="users",tenant="default"} 1$' \
	"$TMP/answer" || fail "$(<"$TMP/answer")"
! grep -qE 'hidden|t\.u-v_w|build_info' "$TMP/answer" ||
	fail "of others: $(<"$TMP/answer")"
[[ $(curl -sS -o /dev/null -w '%{http_code}' \
	"http://127.0.0.1:$PORT/metrics") == 401 ]] || fail "a stranger is told"

# What it did stays when it has ended.
kill -TERM "$CLIENT"
wait "$CLIENT" || true
for _ in {1..100}; do
	after=$(count users)
	grep -q '^aquifer_clients{.*"users".*} 0$' "$TMP/answer" && break
	sleep 0.1
done
grep -q '^aquifer_clients{.*"users".*} 0$' "$TMP/answer" || fail "still there"
((after >= 20)) || fail "$after gets after its end"
stop_node
echo "ok: metrics"
