# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the redis_* tests after rack_lib.sh: a gateway on a rack, and
# Debian's own server beside it.

# gateway OPTION...: starts one, with AQ_REDIS_THREADS threads if that is set; its
# port is in GATEWAY_PORT, its process in GATEWAY_PID.
gateway() {
	local out=$TMP/gateway.$RANDOM
	: >"$out" # it is read before the process has opened it
	"$AQUIFER" redis --port 0 --json --threads "${AQ_REDIS_THREADS:-1}" "$@" \
		>"$out" 2>"$out.err" &
	GATEWAY_PID=$!
	PIDS+=("$GATEWAY_PID")
	for _ in {1..1200}; do
		GATEWAY_PORT=$(sed -n 's/.*"port": *\([0-9]*\).*/\1/p' "$out")
		[[ -n $GATEWAY_PORT ]] && return 0
		kill -0 "$GATEWAY_PID" 2>/dev/null || break
		sleep 0.05
	done
	fail "the gateway does not start: $(cat "$out" "$out.err")"
}

rack_with_gateway() {
	"$AQUIFER" up >/dev/null || fail "no rack"
	gateway --capacity 16K --values 16M
}

# start_redis: redis-server on $TMP/redis.sock. The package redis-tools has the
# program under the name of its checker.
start_redis() {
	ln -s "$(command -v redis-check-rdb)" "$TMP/redis-server"
	"$TMP/redis-server" --port 0 --unixsocket "$TMP/redis.sock" --save "" \
		--appendonly no --dir "$TMP" --loglevel warning >"$TMP/redis.log" 2>&1 &
	REDIS_PID=$!
	PIDS+=("$REDIS_PID")
	for _ in {1..1200}; do
		[[ -S $TMP/redis.sock ]] && return 0
		kill -0 "$REDIS_PID" 2>/dev/null || break
		sleep 0.05
	done
	fail "redis-server does not start: $(cat "$TMP/redis.log")"
}

# cli ARGUMENT...: redis-cli at the gateway.
cli() {
	timeout 60 redis-cli -p "$GATEWAY_PORT" "$@"
}
