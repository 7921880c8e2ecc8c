#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The gateway answers as Redis does: the same commands to both, from Debian's
# redis-cli, in RESP2 and in RESP3.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
need redis-cli redis-check-rdb

rack_with_gateway
commands=$(dirname "$0")/redis_commands.txt
start_redis

for proto in -2 -3; do
	timeout 60 redis-cli "$proto" -p "$GATEWAY_PORT" <"$commands" >"$TMP/ours" ||
		fail "redis-cli with the gateway"
	timeout 60 redis-cli "$proto" -s "$TMP/redis.sock" <"$commands" >"$TMP/theirs" ||
		fail "redis-cli with redis-server"
	diff -a "$TMP/theirs" "$TMP/ours" >"$TMP/diff" ||
		fail "answers differ (< Redis, > ours) with $proto: $(cat "$TMP/diff")"
done
(($(wc -l <"$TMP/ours") > 250)) || fail "too few answers"

# Every command that the gateway claims to have is among them, but those whose
# answers are about the server or end the connection.
cli command list | sort >"$TMP/claimed"
{
	awk '{ print tolower($1) }' "$commands"
	printf '%s\n' auth client command config hello info quit reset time
} | sort -u >"$TMP/compared"
[[ -z $(comm -23 "$TMP/claimed" "$TMP/compared") ]] ||
	fail "claimed and not compared: $(comm -23 "$TMP/claimed" "$TMP/compared")"
# And the documents name the same ones.
for page in docs/redis.md man/aquifer-redis.1.scd; do
	missing=$(while read -r name; do
		grep -qw "${name^^}" "$AQ_SOURCE/$page" || echo "$name"
	done <"$TMP/claimed")
	[[ -z $missing ]] || fail "$page lacks $missing"
done
count=$(wc -l <"$TMP/claimed")
grep -q "The $count commands" "$AQ_SOURCE/docs/redis.md" ||
	fail "docs/redis.md does not speak of $count commands"

# hiredis: the same in one pipeline, where its example client was built.
if [[ -n ${1:-} ]]; then
	for where in "$GATEWAY_PORT" "$TMP/redis.sock"; do
		timeout 60 "$1" "$where" "$commands" >"$TMP/hiredis.${where##*/}" ||
			fail "hiredis at $where"
	done
	diff -a "$TMP/hiredis.redis.sock" "$TMP/hiredis.$GATEWAY_PORT" >"$TMP/diff" ||
		fail "hiredis: answers differ (< Redis, > ours): $(cat "$TMP/diff")"
fi

# redis-py with its default settings, where it is installed.
python=/usr/bin/python3
if $python -c 'import redis' 2>/dev/null; then
	for where in "$GATEWAY_PORT" "$TMP/redis.sock"; do
		timeout 60 "$python" "$AQ_SOURCE/tests/e2e/redis_py.py" "$where" \
			>"$TMP/py.${where##*/}" || fail "redis-py at $where"
	done
	diff -a "$TMP/py.redis.sock" "$TMP/py.$GATEWAY_PORT" >"$TMP/diff" ||
		fail "redis-py: answers differ (< Redis, > ours): $(cat "$TMP/diff")"
	(($(wc -l <"$TMP/py.redis.sock") > 60)) || fail "redis-py: too few answers"
fi
