#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several gateways on one table, pipelines, large values, passwords, bad input,
# limits, and an end that loses nothing.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
need redis-cli redis-benchmark

rack_with_gateway
first=$GATEWAY_PORT first_pid=$GATEWAY_PID
gateway
[[ $(redis-cli -p "$first" set shared 1) == OK ]] || fail "set"
[[ $(cli get shared) == 1 ]] || fail "the other gateway does not see it"
[[ $(cli incr shared) == 2 && $(redis-cli -p "$first" get shared) == 2 ]] ||
	fail "incr"

# Counters from both at once: every increment counts.
for port in "$first" "$GATEWAY_PORT"; do
	seq 200 | sed "s/.*/incr total/" | timeout 60 redis-cli -p "$port" >/dev/null &
	PIDS+=("$!")
	waits+=("$!")
done
wait "${waits[@]}"
[[ $(cli get total) == 400 ]] || fail "400 increments gave $(cli get total)"

# Keys that have expired leave by themselves, also the other gateway's; one that
# was set anew stays.
before=$(cli dbsize)
for i in {1..20}; do
	echo "set mortal$i v px 50"
done | redis-cli -p "$first" >/dev/null
cli set mortal7 again >/dev/null
for _ in {1..100}; do
	(($(cli dbsize) == before + 1)) && break
	sleep 0.1
done
(($(cli dbsize) == before + 1)) || fail "$(cli dbsize) keys instead of $before and one"
[[ $(cli get mortal7) == again ]] || fail "a key that was set anew is gone"

# A value that is larger than any buffer, and the largest key.
head -c 3000000 /dev/urandom | base64 -w0 >"$TMP/big"
[[ $(cli -x set big <"$TMP/big") == OK ]] || fail "a large value"
redis-cli -p "$first" get big | tr -d '\n' | cmp - "$TMP/big" ||
	fail "a large value came back different"
key=$(printf 'k%.0s' {1..250})
[[ $(cli set "$key" v) == OK && $(cli get "$key") == v ]] || fail "250 bytes"
cli set "${key}k" v | grep -q "1 to 250 bytes" || fail "251 bytes"

# Debian's benchmark verifies nothing, but it is a client of its own.
redis-benchmark -p "$GATEWAY_PORT" -t set,get,incr,mset -n 400 \
	-c 10 -P 16 -q >"$TMP/bench" 2>&1 || fail "$(cat "$TMP/bench")"
grep -qi error "$TMP/bench" && fail "$(cat "$TMP/bench")"

# Bytes that are no command get an error and the end of that connection only.
for bad in '*1\r\n!3\r\n' '*9999999\r\n' '*1\r\n$-5\r\n' 'set k "v\r\n'; do
	exec 3<>"/dev/tcp/127.0.0.1/$GATEWAY_PORT"
	printf "%b" "$bad" >&3
	timeout 5 cat <&3 | grep -q '^-ERR Protocol error' || fail "no error for $bad"
	exec 3>&-
done
[[ $(cli ping) == PONG ]] || fail "bad input ended the gateway"

# What has expired goes, too, when everything goes.
cli psetex brief 1 v >/dev/null
sleep 0.05
before=$(cli dbsize)
cli flushall >/dev/null
((before > 0 && $(cli dbsize) == 0)) || fail "dbsize after flushall: $(cli dbsize)"
cli set shared 2 >/dev/null

# SIGKILL of one gateway loses nothing that it answered.
redis-cli -p "$first" set last word >/dev/null
kill -KILL "$first_pid"
[[ $(cli get last) == word ]] || fail "an answered write was lost"

# A clean end by signal.
kill -TERM "$GATEWAY_PID"
wait "$GATEWAY_PID" || fail "SIGTERM gave $?"

# A password.
echo secret >"$TMP/password"
gateway --password-file "$TMP/password" --socket "$TMP/gw.sock" --max-clients 2
cli get shared | grep -q NOAUTH || fail "no password was asked for"
cli auth wrong | grep -q WRONGPASS ||
	fail "a wrong password"
[[ $(cli --no-auth-warning -a secret get shared) == 2 ]] || fail "the password"
[[ $(redis-cli -s "$TMP/gw.sock" --no-auth-warning -a secret -3 get shared) == 2 ]] ||
	fail "the unix socket"
# A client of before that is still counted takes the place of one of these, and
# the end of a connection may overtake the words on it: then once more.
for try in {1..20}; do
	exec 3<>"/dev/tcp/127.0.0.1/$GATEWAY_PORT" 4<>"/dev/tcp/127.0.0.1/$GATEWAY_PORT"
	cli ping 2>&1 | grep -q "max number of clients" && break
	exec 3>&- 4>&-
	((try < 20)) || fail "a third client"
done
exec 3>&- 4>&-

# Mistakes.
expect 1 "$AQUIFER" redis --port 0 --password-file "$TMP/none"
expect 2 "$AQUIFER" redis --port 99999
expect 2 "$AQUIFER" redis --port none
expect 2 "$AQUIFER" redis --nosuch
expect 1 "$AQUIFER" redis --port "$GATEWAY_PORT"
grep -q "choose another" "$TMP/err" || fail "no advice: $(cat "$TMP/err")"
