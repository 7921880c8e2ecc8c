#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Objects with copies are watched while nodes die by kill -9: the one that tells
# the events, then the one that takes changes. Each change is told once and in
# order, or counted as lost; a get that waits is woken.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
elastic=$1 ekv=$2

# Nobody takes what is put and appended all the time, and on a busy machine that
# is long: nodes have room for it, also while one of them is away.
printf '[rack]\ncontrol = c0\n' >"$TMP/rack.ini"
for i in 0 1 2; do
	printf '[memory m%d]\nsize = 512M\n' "$i" >>"$TMP/rack.ini"
done
expect 0 "$AQUIFER" up
until_node 'all(d[m]["state"] == "up" for m in ("m0", "m1", "m2"))'
expect 0 "$AQUIFER" ns mkdir /k --keep --copies 2

# whole NAME: waits until each block has two copies.
whole() {
	for _ in {1..600}; do
		if "$AQUIFER" ns stat "$1" --json >"$TMP/stat" 2>"$TMP/err" &&
			json "$TMP/stat" 'd["copies_now"] == 2 and
				d["blocks"] > 0 and
				all("(" not in c for c in d["chains"])' \
				>/dev/null 2>&1; then
			return 0
		fi
		sleep 0.05
	done
	fail "$1 gets no copy: $(<"$TMP/stat")"
}

# watch NAME EVENT: in the background; its output is $TMP/watch.NAME.
watch() {
	"$AQUIFER" ns watch "/k/$1" --events "$2" --json >"$TMP/watch.$1" \
		2>"$TMP/watch.$1.err" &
	PIDS+=("$!")
	for _ in {1..400}; do
		! grep -q "^watching" "$TMP/watch.$1.err" || return 0
		sleep 0.05
	done
	fail "$1 is not watched: $(<"$TMP/watch.$1.err")"
}

# more FILE: waits until there is one line more.
more() {
	local n
	n=$(wc -l <"$TMP/$1")
	for _ in {1..1200}; do
		[ "$(wc -l <"$TMP/$1")" -le "$n" ] || return 0
		sleep 0.05
	done
	fail "nothing more in $1: $(cat "$TMP"/err.* "$TMP"/*.err)" \
		"$("$AQUIFER" node ls 2>&1)"
}

# A get that waits is not woken by its clock: one of many seconds is not over.
expect 0 "$AQUIFER" queue put /k/q first
expect 0 "$AQUIFER" queue get /k/q
"$AQUIFER" queue get /k/q --wait 60000 >"$TMP/got" 2>"$TMP/got.err" &
getter=$!
PIDS+=("$getter")
expect 0 "$AQUIFER" queue put /k/q hello
wait "$getter" || fail "$(<"$TMP/got.err")"
[ "$(<"$TMP/got")" = hello ] || fail "$(<"$TMP/got")"
echo "ok: waited for"

expect 0 "$ekv" fill /k/kv n 1 8
expect 0 "$AQUIFER" file put /k/f /dev/null
watch kv add
watch q put
watch f append
"$ekv" count /k/kv c 5 100000 >"$TMP/add" 2>"$TMP/err.add" &
add=$!
"$elastic" put /k/q steady 1000000 >"$TMP/put" 2>"$TMP/err.put" &
put=$!
"$elastic" append /k/f steady 1000000 >"$TMP/app" 2>"$TMP/err.app" &
app=$!
PIDS+=("$add" "$put" "$app")
for place in 1 0; do
	for name in kv q f; do
		whole "/k/$name"
		more "watch.$name"
	done
	expect 0 "$AQUIFER" ns stat /k/kv --json
	node=$(json "$TMP/out" "d['chains'][0].split(' > ')[$place]")
	kill_node "$node"
	for name in add put app; do
		more "$name"
	done
	for name in kv q f; do
		more "watch.$name"
	done
	expect 0 "$AQUIFER" up
	until_node 'all(d[m]["state"] == "up" for m in ("m0", "m1", "m2"))'
	echo "ok: member $place, $node, was killed"
done
kill -9 "$add" "$put" "$app"
wait "$add" "$put" "$app" 2>/dev/null || true
expect 0 "$ekv" count /k/kv last 1 1
until_ok "$AQUIFER" queue put /k/q the-end
until_ok "$AQUIFER" file append /k/f /dev/null
for _ in {1..400}; do
	! grep -q '"key":"last' "$TMP/watch.kv" ||
		! grep -q '"item":"the-end"' "$TMP/watch.q" || break
	sleep 0.05
done
python3 - "$TMP" <<'END' || fail "see above"
import json, re, sys
tmp = sys.argv[1]
bad = 0
def say(text):
    global bad
    bad = 1
    print(text)
def events(name):
    return [json.loads(l) for l in open(tmp + "/watch." + name)
            if l.endswith("\n")]
def lost(e):
    return sum(x["count"] for x in e if x["event"] == "lost")
def rows(name):
    return [l.split() for l in open(tmp + "/" + name) if l.endswith("\n")]
e = events("kv")
seen = {}
for x in e:
    if x["event"] == "add" and x["key"].startswith("c"):
        n = seen.get(x["key"], 0)
        if x["value"] <= n:
            say("%s: %d after %d" % (x["key"], x["value"], n))
        if x["value"] != n + 1 and not lost(e):
            say("%s: %d after %d, and nothing is lost" %
                (x["key"], x["value"], n))
        seen[x["key"]] = x["value"]
added = len(rows("add"))
told = sum(1 for x in e if x["event"] == "add" and x["key"][0] == "c")
if not added <= told + lost(e) <= added + 1:
    say("%d additions, %d told and %d lost" % (added, told, lost(e)))
e = events("q")
items = [x["item"] for x in e if x["event"] == "put"]
numbers = [int(i.split()[1]) for i in items if i.startswith("steady")]
if numbers != sorted(set(numbers)):
    say("items are told twice, or out of order")
put = len(rows("put"))
if not put <= len(numbers) + lost(e) <= put + 1:
    say("%d items, %d told and %d lost" % (put, len(numbers), lost(e)))
e = events("f")
offsets = [x["offset"] for x in e if x["event"] == "append"]
if offsets != sorted(set(offsets)):
    say("records are told twice, or out of order")
print("%d additions, %d items, %d records were told" %
      (told, len(numbers), len(offsets)))
sys.exit(bad)
END
expect 0 "$AQUIFER" down
