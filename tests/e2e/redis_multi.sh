#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Transactions of the gateway: refused ones execute nothing, watched keys are
# seen whoever changes them, and a gateway that is killed leaves no half.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
need redis-cli

printf '[memory m%d]\nsize = 64M\n' 0 1 >"$TMP/rack.ini"
rack_with_gateway
first=$GATEWAY_PORT
gateway
second=$GATEWAY_PORT

# say WORD...: one command of an open connection (3), and its answer's first line.
# Bash reads a byte at a time, so nothing of the next answer is lost.
say() {
	local line
	printf '%s\r\n' "$*" >&3
	IFS= read -t 60 -r line <&3 || fail "no answer to $*"
	printf '%s\n' "${line%$'\r'}"
}
expect_line() {
	local want=$1 got
	shift
	got=$(say "$@")
	[[ $got == "$want" ]] || fail "$*: '$got' instead of '$want'"
}
dial() {
	exec 3<>"/dev/tcp/127.0.0.1/$1"
}

# What is refused while it is queued ends the whole: nothing is executed.
dial "$first"
expect_line +OK MULTI
expect_line +QUEUED SET refused 1
expect_line "-ERR unknown command 'nosuch', with args beginning with: 'x' " nosuch x
expect_line +QUEUED SET refused 2
expect_line "-EXECABORT Transaction discarded because of previous errors." EXEC
expect_line :0 EXISTS refused
expect_line +OK MULTI
expect_line "-ERR wrong number of arguments for 'get' command" GET
expect_line "-EXECABORT Transaction discarded because of previous errors." EXEC
# What this gateway cannot do inside a transaction is refused as well.
expect_line +OK MULTI
expect_line "-ERR Command not allowed inside a transaction" FLUSHALL
expect_line +QUEUED SET refused 3
expect_line "-EXECABORT Transaction discarded because of previous errors." EXEC
expect_line :0 EXISTS refused
# Too many keys: before anything is executed, in words.
expect_line +OK MULTI
for i in {1..129}; do
	expect_line +QUEUED SET "many$i" 1
done
[[ $(say EXEC) == "-ERR a transaction has at most 128 different keys here; nothing was executed" ]] ||
	fail "129 keys"
expect_line :0 EXISTS many1 many129
# An error of one command does not stop the others.
expect_line +OK SET word abc
expect_line +OK MULTI
expect_line +QUEUED INCR word
expect_line +QUEUED INCR number
expect_line '*2' EXEC
IFS= read -t 60 -r answer <&3
[[ $answer == "-ERR value is not an integer"* ]] || fail "INCR of a word: $answer"
IFS= read -t 60 -r answer <&3
[[ $answer == :1$'\r' ]] || fail "the command after it: $answer"

# Watched keys: changed through another gateway, and by the table's own API.
for who in gateway api nobody; do
	expect_line +OK SET watched 1
	expect_line +OK WATCH watched other
	case $who in
	gateway) redis-cli -p "$second" set other new >/dev/null ;;
	api) "$AQUIFER" kv put redis watched 2 >/dev/null ;;
	esac
	expect_line +OK MULTI
	expect_line +QUEUED SET winner "$who"
	if [[ $who == nobody ]]; then
		expect_line '*1' EXEC
		IFS= read -t 60 -r answer <&3
	else
		expect_line '*-1' EXEC
	fi
done
[[ $(redis-cli -p "$second" get winner) == nobody ]] || fail "WATCH"
# EXEC, DISCARD and UNWATCH end it.
expect_line +OK WATCH watched
redis-cli -p "$second" incr watched >/dev/null
expect_line +OK UNWATCH
expect_line +OK MULTI
expect_line '*0' EXEC
exec 3>&-

# A table of several parts: only keys of one part together, and in words.
expect 0 "$AQUIFER" kv create parts 4K --extents 4M --nodes 2
gateway --table parts
dial "$GATEWAY_PORT"
expect_line +OK MULTI
for i in {1..12}; do
	expect_line +QUEUED SET "spread$i" 1
done
[[ $(say EXEC) == "-CROSSSLOT "*"nothing was executed" ]] || fail "keys of two parts"
for i in {1..12}; do
	expect_line :0 EXISTS "spread$i"
done
expect_line +OK MULTI
expect_line +QUEUED SET alone 1
expect_line '*1' EXEC
exec 3>&-

python=/usr/bin/python3
$python -c 'import redis' 2>/dev/null || skip "python3-redis is not installed"
timeout 120 "$python" "$AQ_SOURCE/tests/e2e/redis_multi.py" clients "$first" "$second" ||
	fail "redis-py"

# Gateways are killed while they execute transactions; who reads through another
# one sees all of a transaction or nothing of it, always.
timeout 250 "$python" "$AQ_SOURCE/tests/e2e/redis_multi.py" check "$second" \
	"$TMP/stop" >"$TMP/check" 2>&1 &
check=$!
PIDS+=("$check")
for round in {1..4}; do
	gateway
	victim=$GATEWAY_PID
	timeout 120 "$python" "$AQ_SOURCE/tests/e2e/redis_multi.py" write \
		"$GATEWAY_PORT" "$round" >"$TMP/written.$round" 2>&1 &
	writer=$!
	PIDS+=("$writer")
	for _ in {1..1200}; do
		[[ -s $TMP/written.$round ]] && break
		sleep 0.05
	done
	[[ -s $TMP/written.$round ]] || fail "the writer does nothing"
	sleep "0.$((RANDOM % 10))"
	kill -KILL "$victim"
	wait "$writer" || true # its gateway is gone
done
touch "$TMP/stop"
wait "$check" || fail "$(cat "$TMP/check")"
cat "$TMP/check"
"$AQUIFER" kv check redis >"$TMP/table" || fail "$(cat "$TMP/table")"
