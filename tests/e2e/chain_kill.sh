#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nodes with copies of a store, a queue and a file die by kill -9 while clients
# use them: the head of the store's chain, with "full" also the one in the middle
# and the last one. Nobody notices but by waiting: what was answered is there
# once, in order, and other nodes get copies by themselves. With "full" a node is
# drained in the end, which chain_use does, too.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
elastic=$1 ekv=$2
places=(0)
[ "${3-}" != full ] || places=(0 1 2)

cat >"$TMP/rack.ini" <<END
[rack]
control = c0
END
for i in 0 1 2 3; do
	printf '[memory m%d]\nsize = 64M\n' "$i" >>"$TMP/rack.ini"
done
expect 0 "$AQUIFER" up
until_node 'all(d[m]["state"] == "up" for m in ("m0", "m1", "m2", "m3"))'
expect 0 "$AQUIFER" ns mkdir /k --keep --copies 3
export EKV_BLOCK=65536

# whole NAME: waits until each block has three copies.
whole() {
	until "$AQUIFER" ns stat "$1" --json >"$TMP/stat" 2>"$TMP/err" &&
		json "$TMP/stat" 'd["copies_now"] == 3 and d["blocks"] > 0 and
			all("(" not in c for c in d["chains"])' >/dev/null 2>&1; do
		sleep 0.05
	done
}

# member NAME N: the node that is the nth of the chain of its first block.
member() {
	expect 0 "$AQUIFER" ns stat "$1" --json
	json "$TMP/out" "d['chains'][0].split(' > ')[$2]"
}

# more FILE PID: waits until a client has been answered once more.
more() {
	local n
	n=$(wc -l <"$1")
	until [ "$(wc -l <"$1")" -gt "$n" ]; do
		kill -0 "$2" 2>/dev/null || fail "a client ended: $(<"$TMP/err.$3")"
		sleep 0.02
	done
}

touch "$TMP"/{add,put,take,app,fill}
"$ekv" count /k/kv n 20 100000 >"$TMP/add" 2>"$TMP/err.add" &
add=$!
"$elastic" put /k/q steady 1000000 >"$TMP/put" 2>"$TMP/err.put" &
put=$!
"$elastic" take /k/q >"$TMP/take" 2>"$TMP/err.take" &
take=$!
"$elastic" append /k/f steady 1000000 >"$TMP/app" 2>"$TMP/err.app" &
app=$!
PIDS+=("$add" "$put" "$take" "$app")
"$ekv" fill /k/kv key- 60 2000 >"$TMP/fill" || fail "the store is not filled"
more "$TMP/add" "$add" add
more "$TMP/take" "$take" take
more "$TMP/app" "$app" app

for place in "${places[@]}"; do
	for name in kv q f; do
		whole "/k/$name"
	done
	node=$(member /k/kv "$place")
	read -r pid _ <"$RUNDIR/$node.pid"
	kill -9 "$pid"
	for _ in 1 2 3; do
		more "$TMP/add" "$add" add
		more "$TMP/put" "$put" put
		more "$TMP/take" "$take" take
		more "$TMP/app" "$app" app
	done
	for name in kv q f; do
		whole "/k/$name"
	done
	expect 0 "$AQUIFER" up
	until_node 'all(d[m]["state"] == "up" for m in ("m0", "m1", "m2", "m3"))'
	echo "ok: member $place, $node, was killed"
done

kill -9 "$add" "$put" "$app"
wait "$add" "$put" "$app" 2>/dev/null || true
until_ok "$elastic" seal /k/q
wait "$take" || fail "the consumer failed: $(<"$TMP/err.take")"
expect 0 "$ekv" check /k/kv key- 60 2000
expect 0 "$ekv" sum /k/kv n 20
sum=$(<"$TMP/out") added=$(grep -c "^added" "$TMP/add")
if [ "$sum" -lt "$added" ] || [ "$sum" -gt $((added + 1)) ]; then
	fail "$added additions were answered, and the sum is $sum"
fi
expect 0 "$AQUIFER" file cat /k/f
python3 - "$TMP" <<'END' || fail "see above"
import sys
tmp = sys.argv[1]
def rows(name):
    for line in open(tmp + "/" + name, "rb").read().split(b"\n")[:-1]:
        yield line.decode().split()
bad = 0
def say(text):
    global bad
    bad = 1
    print(text)
put = [int(w[2]) for w in rows("put") if w[0] == "put"]
acked = [int(w[2]) for w in rows("take") if w[0] == "acked"]
if acked != sorted(set(acked)):
    say("items are out of order, or there twice")
if set(put) - set(acked) or len(acked) > len(put) + 1:
    say("%d items were put and %d taken" % (len(put), len(acked)))
data = open(tmp + "/out", "rb").read()
count = 0
for w in rows("app"):
    count += 1
    if not data[int(w[3]):].startswith(("%s %s " % (w[1], w[2])).encode()):
        say("no record %s at %s" % (w[1:3], w[3]))
names = [tuple(l.split()[:2]) for l in data.split(b"\n")[:-1]]
if len(names) != len(set(names)) or not count <= len(names) <= count + 1:
    say("%d records, %d of them different, and %d were answered" %
        (len(names), len(set(names)), count))
print("%d items, %d records" % (len(acked), len(names)))
sys.exit(bad)
END
echo "ok: $sum additions; all of it once, and in order"

# A node that is to be emptied gives its copies to another one.
empty() {
	whole /k/kv
	node=$(member /k/kv 0)
	expect 0 "$AQUIFER" node drain "$node"
	expect 0 "$AQUIFER" ns stat /k/kv --json
	json "$TMP/out" "d['copies_now'] == 3 and
		not any('$node' in c for c in d['chains'])" >/dev/null
	expect 0 "$ekv" check /k/kv key- 60 2000
	echo "ok: $node was emptied"
}
[ "${3-}" != full ] || empty
expect 0 "$AQUIFER" down
