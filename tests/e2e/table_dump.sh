#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tables and indexes to files and back: while others write, from files that are
# cut off or changed, killed in the middle, and into another rack.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
kv=$1
count=1700 # keys, of 2000 that there is room for
mkdir "$TMP/d"
dump=$TMP/d/t.dump

same() { # same COMMAND A B: all pairs, with the times at which they end
	cmp <("$AQUIFER" "$1" scan "$2" --json | sort) \
		<("$AQUIFER" "$1" scan "$3" --json | sort) || fail "$2 and $3 differ"
}
refused() { # refused FILE WORDS: by a load, which makes no table
	expect 1 "$AQUIFER" kv load new "$1"
	grep -q "byte [0-9]*: .*$2" "$TMP/err" || fail "$1: $(cat "$TMP/err")"
	expect 1 "$AQUIFER" kv stat new
}
# Reads in steps with rests, so that a dump takes its time.
slow='import sys, time
while b := sys.stdin.buffer.read1(65536):
    sys.stdout.buffer.write(b)
    time.sleep(0.05)'

printf '[memory m0]\nsize = 256M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" kv create t 2000 --entry 32 --extents 16M --failure 3000 --grow no
"$kv" store t "$count" || fail "store"
expect 0 "$AQUIFER" kv put t ends soon --ttl 3000000
expect 0 "$AQUIFER" kv put t empty ''

# Nobody writes: the same again, sizes too, and keys end when they did.
expect 0 "$AQUIFER" kv dump t "$dump" --json
json "$TMP/out" "d['pairs'] == $count + 2 and d['file_bytes'] == $(stat -c %s "$dump")" >/dev/null
[[ $(ls "$TMP/d") == t.dump ]] || fail "left over: $(ls "$TMP/d")"
expect 0 "$AQUIFER" kv load u "$dump" --json
json "$TMP/out" "d['stored'] == $count + 2 and d['created']" >/dev/null
same kv t u
cmp <("$AQUIFER" kv stat t | sed 's/^table .*//') \
	<("$AQUIFER" kv stat u | sed 's/^table .*//') || fail "other sizes"
expect 1 "$AQUIFER" kv load u "$dump"
grep -q -- "--merge" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" kv drop u
"$AQUIFER" kv dump t | "$AQUIFER" kv load u - --capacity 4000 >/dev/null || fail "a pipe"
same kv t u
expect 0 "$AQUIFER" kv stat u --json
json "$TMP/out" 'd["capacity"] == 4000' >/dev/null
expect 0 "$AQUIFER" kv drop u

# Others write, insert and delete meanwhile, and keys move.
"$kv" churn t "$count" 60 >"$TMP/churn" 2>&1 &
churn=$!
PIDS+=("$churn")
wait_line "$TMP/churn" 1 >/dev/null || fail "$(cat "$TMP/churn")"
"$AQUIFER" kv dump t | python3 -c "$slow" >"$TMP/live" || fail "a dump under load"
kill "$churn"
wait "$churn" || true
expect 0 "$AQUIFER" kv load live "$TMP/live"
"$kv" check live "$count" || fail "dumped while others wrote"
expect 0 "$AQUIFER" kv drop live

# A file that breaks off, a byte that is another, bytes that do not belong to it.
size=$(stat -c %s "$dump")
for len in 0 7 1000 $((size - 1)); do
	head -c "$len" "$dump" >"$TMP/bad"
	refused "$TMP/bad" '\(empty\|breaks off\|not a dump\)'
done
for at in 10 50 $((size / 2)) $((size - 3)); do
	python3 -c 'import sys
b = bytearray(open(sys.argv[1], "rb").read())
b[int(sys.argv[3])] ^= 4
open(sys.argv[2], "wb").write(b)' "$dump" "$TMP/bad" "$at"
	refused "$TMP/bad" ''
done
(cat "$dump" && echo) >"$TMP/bad"
refused "$TMP/bad" 'follow'
refused "$TMP/rack.ini" 'not a dump'
head -c $((size - 1)) "$dump" | expect 1 "$AQUIFER" kv load new # no second look at a pipe
expect 1 "$AQUIFER" kv stat new

# A key that is in the file twice, because it moved: the later one counts, also
# where its time is over.
cat >"$TMP/twice.py" <<-'PY'
	import struct, sys
	def crc64(data):
	    crc = 2**64 - 1
	    for byte in data:
	        crc ^= byte
	        for _ in range(8):
	            crc = crc >> 1 ^ (0xc96c5795d7870f42 if crc & 1 else 0)
	    return crc ^ 2**64 - 1
	def block(kind, number, payload):
	    head = struct.pack("<IIQ", kind, len(payload), number)
	    return head + struct.pack("<Q", crc64(head + payload)) + payload
	pairs = [(b"twice", b"old", 0), (b"stays", b"x", 0), (b"twice", b"new", 1)]
	body = b"".join(struct.pack("<IIQ", len(k), len(v), at) + k + v
	                for k, v, at in pairs)
	sums = [len(pairs), sum(len(k) for k, _, _ in pairs), sum(len(v) for _, v, _ in pairs)]
	with open(sys.argv[1], "rb") as f:
	    start = f.read(16 + 24 + 176)
	with open(sys.argv[2], "wb") as f:
	    f.write(start + block(2, 1, body) + block(3, 2, struct.pack("<3Q", *sums)))
PY
python3 "$TMP/twice.py" "$dump" "$TMP/twice" || fail "a file"
expect 0 "$AQUIFER" kv load u "$TMP/twice" --json
json "$TMP/out" 'd["stored"] == 1 and d["expired"] == 1' >/dev/null
expect 0 "$AQUIFER" kv get u stays
expect 1 "$AQUIFER" kv get u twice
expect 0 "$AQUIFER" kv put u twice mine
expect 0 "$AQUIFER" kv load u "$TMP/twice" --merge
expect 0 "$AQUIFER" kv get u twice
expect 0 "$AQUIFER" kv drop u

# Ended in the middle: what was there under the name is there still.
cp "$dump" "$TMP/before"
code=0
bash -c "ulimit -c 0 -f 100 && exec \"\$@\"" bash "$AQUIFER" kv dump t "$dump" >/dev/null 2>&1 || code=$?
((code != 0)) || fail "it wrote more than it may"
[[ $(ls "$TMP/d") == t.dump ]] || fail "left over: $(ls "$TMP/d")"
cmp "$dump" "$TMP/before" || fail "half a dump"
expect 1 "$AQUIFER" kv dump t /dev/full
mkfifo "$TMP/pipe"
"$AQUIFER" kv dump t - >"$TMP/pipe" &
victim=$!
PIDS+=("$victim")
exec 9<"$TMP/pipe"
head -c 50000 <&9 >"$TMP/bad"
kill -9 "$victim"
wait "$victim" 2>/dev/null || true
cat <&9 >>"$TMP/bad"
exec 9<&-
refused "$TMP/bad" 'breaks off'
# And a load: the rest comes with --merge.
"$AQUIFER" kv load u - <"$TMP/pipe" &
victim=$!
PIDS+=("$victim")
exec 9>"$TMP/pipe"
head -c $((size * 3 / 4)) "$dump" >&9
for _ in {1..200}; do
	"$AQUIFER" kv stat u --json >"$TMP/out" 2>/dev/null &&
		json "$TMP/out" 'd["keys"] > 100' >/dev/null && break
	sleep 0.1
done
kill -9 "$victim"
wait "$victim" 2>/dev/null || true
exec 9>&-
expect 1 "$AQUIFER" kv load u "$dump"
expect 0 "$AQUIFER" kv load u "$dump" --merge
"$kv" check u "$count" || fail "after a load that was killed"
expect 0 "$AQUIFER" kv drop u

# Indexes of both kinds; none is taken for a table.
expect 0 "$AQUIFER" index create tree --memory 8M --key 24
expect 0 "$AQUIFER" index fill tree --count 500
expect 0 "$AQUIFER" index dump tree "$TMP/tree" --json
json "$TMP/out" 'd["pairs"] == 500' >/dev/null
expect 0 "$AQUIFER" index load tree2 "$TMP/tree"
same index tree tree2
expect 1 "$AQUIFER" index load tree2 "$TMP/tree"
expect 0 "$AQUIFER" index load tree2 "$TMP/tree" --merge
expect 2 "$AQUIFER" kv load new "$TMP/tree"
grep -q "index load" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 2 "$AQUIFER" index load new "$dump"
expect 0 "$AQUIFER" index create v --kind versions --room 1000
expect 0 "$AQUIFER" index fill v --count 300
expect 0 "$AQUIFER" index del v 7
expect 0 "$AQUIFER" index dump v "$TMP/v"
expect 0 "$AQUIFER" index load v2 "$TMP/v" --json
json "$TMP/out" 'd["stored"] == 299' >/dev/null
same index v v2

# Another rack.
export AQUIFER_RUNDIR=$TMP/other
mkdir "$AQUIFER_RUNDIR"
"$AQUIFER" up >/dev/null || fail "another rack"
expect 0 "$AQUIFER" kv load t "$TMP/live"
"$kv" check t "$count" || fail "in another rack"
"$AQUIFER" down >/dev/null
export AQUIFER_RUNDIR=$TMP
