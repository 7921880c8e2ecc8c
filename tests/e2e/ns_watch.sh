#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer ns watch`: each change of a queue, a file and a store once and in
# order, also while blocks are added, split and given back; a reader that was
# stopped is told how much it has missed; readers that never read stop nobody.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
client=$1
crowd=$2

up_two
expect 0 "$AQUIFER" ns mkdir /job --keep

# watch NAME OPTION...: in the background; returns when nothing is missed any
# more. Its output is $TMP/NAME.
watch() {
	local name=$1
	shift
	"$AQUIFER" ns watch "$@" --json >"$TMP/$name" 2>"$TMP/$name.err" &
	watcher=$!
	until grep -q "^watching" "$TMP/$name.err"; do
		kill -0 "$watcher" || fail "$(<"$TMP/$name.err")"
		sleep 0.02
	done
}

# told NAME PYTHON: what came, as a list `e`, is such that it is true.
told() {
	python3 -c "
import json, sys
e = [json.loads(line) for line in open(sys.argv[1])]
assert ($2), e[:20]" "$TMP/$1" || fail "$1"
}

expect 1 "$AQUIFER" ns watch /job/none
expect 0 "$AQUIFER" queue put /job/q zero
expect 2 "$AQUIFER" ns watch /job/q --events put,sing
grep -q "no events 'sing'" "$TMP/err" || fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" ns watch /job/q --wait 50
watch q /job/q --events put,get --count 3
expect 0 "$AQUIFER" queue put /job/q "one item"
expect 0 "$AQUIFER" queue get /job/q
expect 0 "$AQUIFER" queue put /job/q two
wait "$watcher" || fail "$(<"$TMP/q.err")"
told q '[x["event"] for x in e] == ["put", "get", "put"] and
	e[0]["item"] == "one item" and e[0]["length"] == 8'
echo "ok: a queue"

# A file: each record has a block of its own.
head -c 40000 /dev/zero >"$TMP/record"
expect 0 "$AQUIFER" file put /job/f "$TMP/record" --block 64K
watch f /job/f --count 6
for _ in 1 2 3 4 5 6; do
	expect 0 "$AQUIFER" file append /job/f "$TMP/record"
done
wait "$watcher" || fail "$(<"$TMP/f.err")"
told f '[x["offset"] for x in e] == [40000 * n for n in range(1, 7)] and
	len({x["block"] for x in e}) == 6'
echo "ok: a file over several blocks"

# A store whose blocks are split and merged.
export EKV_BLOCK=65536
expect 0 "$client" fill /job/kv z 1 10
watch kv /job/kv --count 800
expect 0 "$client" fill /job/kv a 400 900
expect 0 "$client" drop /job/kv a 0 400
wait "$watcher" || fail "$(<"$TMP/kv.err")"
told kv '{k: [x["event"] for x in e if x["key"] == k] for k in
	{x["key"] for x in e}} ==
	{"a%d" % n: ["set", "delete"] for n in range(400)} and
	len({x["block"] for x in e}) > 4'
echo "ok: a store, across splits"

# A reader that is stopped for too long.
expect 0 "$AQUIFER" queue put /job/slow first --block 64K
watch slow /job/slow --events put
kill -STOP "$watcher"
expect 0 sh -c "seq 1000 | '$AQUIFER' queue put /job/slow -"
kill -CONT "$watcher"
expect 0 "$AQUIFER" queue put /job/slow last
until grep -q '"item":"last"' "$TMP/slow"; do
	kill -0 "$watcher" || fail "$(<"$TMP/slow.err")"
	sleep 0.02
done
told slow 'sum(x.get("count", 1) for x in e) == 1001 and
	any(x["event"] == "lost" for x in e)'
# And one whose queue is removed.
expect 0 "$AQUIFER" ns rm /job/slow
wait "$watcher" && fail "a watcher of nothing ended well"
grep -q "/job/slow" "$TMP/slow.err" || fail "$(<"$TMP/slow.err")"
echo "ok: what a slow reader missed is counted"

# Readers that never read: their memory is their tenant's, and nobody waits.
expect 0 "$crowd" /job/q 100 2000
echo "ok: $(<"$TMP/out")"
expect 0 "$AQUIFER" down
