#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# READ, WRITE and CAS on granted memory; regions outlive clients; another
# tenant gets cleared memory; a window cannot be left.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

client=$1
start_node
ask "$TOKEN" 201 POST /v1/regions '{"name": "a", "size": 60000000}'
# Each line is a client of its own.
"$client" "$SOCKET" "$TOKEN" zero a
"$client" "$SOCKET" "$TOKEN" fill a
"$client" "$SOCKET" "$TOKEN" check a
"$client" "$SOCKET" "$TOKEN" narrow a

# All of the pool's memory goes to somebody else, and is empty.
ask "$TOKEN" 204 DELETE /v1/regions/a
ask "$ADMIN" 201 POST /v1/tenants '{"name": "t"}'
other=$(json "$TMP/answer" 'd["token"]')
ask "$other" 201 POST /v1/regions '{"name": "a", "size": 60000000}'
"$client" "$SOCKET" "$other" zero a

# Growing keeps what was there.
ask "$TOKEN" 201 POST /v1/regions '{"name": "g", "size": 100000}'
"$client" "$SOCKET" "$TOKEN" fill g
ask "$TOKEN" 200 PATCH /v1/regions/g '{"size": 50000}'
"$client" "$SOCKET" "$TOKEN" check g

# Two clients count at the same time.
ask "$TOKEN" 201 POST /v1/regions '{"name": "n", "size": 8}'
"$client" "$SOCKET" "$TOKEN" cas n >"$TMP/one" &
pid=$!
PIDS+=("$pid")
"$client" "$SOCKET" "$TOKEN" cas n >"$TMP/two"
wait "$pid" || fail "a counting client failed"
cat "$TMP/one" "$TMP/two"
grep -q "now 2000$" "$TMP/one" "$TMP/two" || fail "an addition was lost"

# No tenant's key opens another's region, nor its name.
! "$client" "$SOCKET" "$other" zero g 2>"$TMP/err" || fail "another's region"
grep -q 404 "$TMP/err" || fail "$(<"$TMP/err")"
stop_node
echo "ok: data"
