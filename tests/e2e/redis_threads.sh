#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A gateway with several threads is one server: clients are spread over them and
# counted together, limits are for all, and it ends at once under load.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
need redis-cli redis-benchmark curl

export AQ_REDIS_THREADS=3
"$AQUIFER" up >/dev/null || fail "no rack"
gateway --capacity 16K --values 16M --max-clients 16 --http "$TMP/http.sock"
info() {
	cli info | tr -d '\r' | sed -n "s/^$1://p"
}
is() {
	[[ $(info "$1") == "$2" ]] || fail "$1 is $(info "$1") instead of $2"
}
# await NAME VALUE: a client that has left may be counted for a moment.
await() {
	until [[ $(info "$1") == "$2" ]]; do
		sleep 0.05
	done
}

# Seven clients, and the one who asks: INFO and CLIENT LIST tell of all.
for fd in 11 12 13 14 15 16 17; do
	eval "exec $fd<>/dev/tcp/127.0.0.1/$GATEWAY_PORT"
	printf 'CLIENT SETNAME c%d\r\n' "$fd" >&"$fd"
	IFS= read -t 60 -r line <&"$fd" || fail "no answer"
	[[ $line == +OK* ]] || fail "SETNAME: $line"
done
await connected_clients 8
cli client list >"$TMP/list"
for fd in 11 12 13 14 15 16 17; do
	grep -q "name=c$fd " "$TMP/list" || fail "$(cat "$TMP/list")"
done
(($(sed -n 's/ .*name=c.*//p' "$TMP/list" | sort -u | wc -l) == 7)) ||
	fail "numbers of clients: $(cat "$TMP/list")"

# Counters of all threads, and all set to zero.
cli config resetstat >/dev/null
for fd in 11 12 13 14 15 16 17; do
	for _ in {1..10}; do
		printf 'INCR total\r\n' >&"$fd"
		IFS= read -t 60 -r line <&"$fd" || fail "no answer"
	done
done
[[ $line == :70* ]] || fail "70 increments gave $line"
is total_commands_processed 71
cli config resetstat >/dev/null
is total_commands_processed 1
for _ in {1..600}; do
	curl -s -m 60 --unix-socket "$TMP/http.sock" http://gateway/health >"$TMP/health"
	grep -q '"clients":7' "$TMP/health" && break
	sleep 0.1
done
grep -q '"status":"ok"' "$TMP/health" || fail "$(cat "$TMP/health")"
grep -q '"clients":7' "$TMP/health" || fail "$(cat "$TMP/health")"

# A watched key that a client of another thread changes.
printf 'WATCH total\r\nMULTI\r\nSET total 0\r\n' >&11
for _ in 1 2 3; do
	IFS= read -t 60 -r line <&11 || fail "no answer"
done
printf 'INCR total\r\n' >&12
IFS= read -t 60 -r line <&12 || fail "no answer"
printf 'EXEC\r\n' >&11
IFS= read -t 60 -r line <&11 || fail "no answer"
[[ $line == '*-1'* ]] || fail "EXEC after another's INCR: $line"

# The limit of clients is for all threads: of twelve more at most nine are let in.
served=0
for fd in {21..32}; do
	eval "exec $fd<>/dev/tcp/127.0.0.1/$GATEWAY_PORT"
	# Who is refused may find the connection gone already.
	(printf 'PING\r\n' >&"$fd") 2>/dev/null || true
	line=
	IFS= read -t 60 -r line <&"$fd" || true
	[[ $line != +PONG* ]] || served=$((served + 1))
done
((served > 0 && served <= 9)) || fail "$served of twelve more clients were let in"
for fd in {11..17} {21..32}; do
	eval "exec $fd>&-"
done
await connected_clients 1
(($(info rejected_connections) >= 3)) || fail "$(info rejected_connections) were refused"

# It ends by a signal while all threads are busy.
redis-benchmark -p "$GATEWAY_PORT" -t set -n 100000000 -c 7 -P 16 -q >/dev/null 2>&1 &
PIDS+=("$!")
for _ in {1..600}; do
	(($(info total_commands_processed) > 2000)) && break
	sleep 0.05
done
kill -TERM "$GATEWAY_PID"
wait "$GATEWAY_PID" || fail "SIGTERM gave $?"

expect 2 "$AQUIFER" redis --threads 0
expect 2 "$AQUIFER" redis --threads 65
