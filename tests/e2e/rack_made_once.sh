#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several who make a thing of one name at the same time, in a rack of two nodes:
# one of them does, it is whole, and the others are told that it exists.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
need curl

printf '[memory m%d]\nsize = 64M\n' 0 1 >"$TMP/rack.ini"
expect 0 "$AQUIFER" up

# all_at_once COMMAND...: four times; one succeeds.
all_at_once() {
	local pids=() made=0 i code
	for i in 0 1 2 3; do
		"$AQUIFER" "$@" >"$TMP/out.$i" 2>"$TMP/err.$i" &
		pids+=("$!")
	done
	for i in 0 1 2 3; do
		code=0
		wait "${pids[i]}" || code=$?
		if ((code == 0)); then
			made=$((made + 1))
		else
			grep -Eq -- '-E(EXIST|BUSY):' "$TMP/err.$i" ||
				fail "$*: $(cat "$TMP/err.$i")"
		fi
	done
	((made == 1)) || fail "$*: $made have made it: $(cat "$TMP"/err.?)"
}
for i in 1 2 3 4 5; do
	all_at_once kv create "t$i" 4K --extents 1M
	expect 0 "$AQUIFER" kv put "t$i" key value
	expect 0 "$AQUIFER" kv drop "t$i"
done
all_at_once kv create shards 4K --nodes all --copies 2
expect 0 "$AQUIFER" kv put shards key value
for i in 1 2; do
	all_at_once index create "i$i" --memory 1M
	expect 0 "$AQUIFER" index put "i$i" key value
	all_at_once region create "r$i" 1M
	expect 0 "$AQUIFER" region delete "r$i"
	expect 1 "$AQUIFER" region delete "r$i"
done

# Whoever has died with a claim holds others up no longer than it said.
# claim NODE HOLDER MS [NAME]
claim() {
	curl -s -m 60 -o "$TMP/http" -w '%{http_code}' --unix-socket "$RUNDIR/$1.sock" \
		-H "Authorization: Bearer $(cat "$RUNDIR/token")" \
		-d "{\"name\":\"${4:-held}\",\"holder\":\"$2\",\"ms\":$3}" "http://$1/v1/claims"
}
for node in m0 m1; do
	[[ $(claim $node dead 60000) == 204 && $(claim $node other 1) == 409 ]] || fail "$(cat "$TMP/http")"
done
expect 1 "$AQUIFER" region create held 1M --timeout 1000
grep -Eq -- '-E(BUSY|HOSTDOWN):' "$TMP/err" || fail "$(cat "$TMP/err")"
for node in m0 m1; do
	[[ $(claim $node dead 300) == 204 ]] || fail "$(cat "$TMP/http")"
done
expect 0 "$AQUIFER" region create held 1M

# A node that does not answer may have a table of the name: nobody makes another.
expect 0 "$AQUIFER" kv create there 4K --node m1
kill -STOP "$(cut -d' ' -f1 "$RUNDIR/m1.pid")"
expect 1 "$AQUIFER" kv create there 4K --node m0 --timeout 500
grep -q 'node m1 does not answer (-EHOSTDOWN:' "$TMP/err" || fail "$(cat "$TMP/err")"
kill -CONT "$(cut -d' ' -f1 "$RUNDIR/m1.pid")"
expect 1 "$AQUIFER" kv create there 4K --node m0
grep -q -- '-EEXIST:' "$TMP/err" || fail "$(cat "$TMP/err")"

# A gateway that waits for whoever makes its table ends when it is told to.
for node in m0 m1; do
	[[ $(claim "$node" dead 60000 kv-0000000-redis) == 204 ]] || fail "$(cat "$TMP/http")"
done
: >"$TMP/gateway"
AQUIFER_LOG=info "$AQUIFER" redis --port 0 >"$TMP/gateway" 2>&1 &
gateway=$!
PIDS+=("$gateway")
for _ in {1..600}; do
	! grep -q 'waits for table redis' "$TMP/gateway" || break
	sleep 0.05
done
kill -TERM "$gateway"
! wait "$gateway" || fail "without a table it gave 0"
grep -q 'stopped, still waiting for table redis' "$TMP/gateway" || fail "$(cat "$TMP/gateway")"
