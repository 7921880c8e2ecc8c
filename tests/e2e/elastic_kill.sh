#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Producers, consumers and writers die by kill -9. What was acknowledged is
# there once; what was not, at most once and whole; items of a dead consumer go
# to another one, and each producer's items stay in order.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
client=$1

up_two
# What this shows is no matter of leases, which a busy machine may miss.
expect 0 "$AQUIFER" ns mkdir /k --keep
expect 0 "$client" many /k/many
echo "ok: many and large"

# lines FILE N: waits until a file has so many lines, or the process is gone.
lines() {
	until [ "$(wc -l <"$1")" -ge "$2" ] || ! kill -0 "$3" 2>/dev/null; do
		sleep 0.02
	done
}

touch "$TMP"/{p,c,a}.dies{1,2,3}
"$client" put /k/q steady 600 >"$TMP/p.steady" &
steady=$!
"$client" take /k/q >"$TMP/c.steady" &
consumer=$!
for round in 1 2 3; do
	"$client" put /k/q "dies$round" 100000 >"$TMP/p.dies$round" &
	p=$!
	"$client" take /k/q >"$TMP/c.dies$round" &
	c=$!
	"$client" append /k/f "dies$round" 100000 >"$TMP/a.dies$round" &
	a=$!
	lines "$TMP/p.dies$round" 30 "$p"
	lines "$TMP/c.dies$round" 20 "$c"
	lines "$TMP/a.dies$round" 40 "$a"
	kill -9 "$p" "$c" "$a"
	wait "$p" "$c" "$a" 2>/dev/null || true
done
wait "$steady" || fail "the steady producer failed"
expect 0 "$client" seal /k/q
wait "$consumer" || fail "the steady consumer failed"
expect 0 "$AQUIFER" file cat /k/f
python3 - "$TMP" <<'END' || fail "see above"
import glob, sys, os
tmp = sys.argv[1]
def rows(pattern):
    for name in glob.glob(tmp + "/" + pattern):
        for line in open(name, "rb").read().split(b"\n")[:-1]:
            yield os.path.basename(name), line.decode().split()
put = {tuple(w[1:3]) for _, w in rows("p.*") if w[0] == "put"}
acked = [tuple(w[1:3]) for _, w in rows("c.*") if w[0] == "acked"]
took = [tuple(w[1:3]) for _, w in rows("c.*") if w[0] == "took"]
bad = 0
def say(text):
    global bad
    bad = 1
    print(text)
# An acknowledgement may have been executed while its answer died with the
# consumer: then the last item that it took was delivered there.
last = set()
for name in glob.glob(tmp + "/c.dies*"):
    mine = [w for n, w in rows("c.*") if n == os.path.basename(name)]
    if mine and mine[-1][0] == "took":
        last.add(tuple(mine[-1][1:3]))
if len(acked) != len(set(acked)):
    say("an item was delivered twice")
lost = put - set(acked) - last
if lost:
    say("lost: %s" % sorted(lost)[:5])
for w in set(acked) - put:
    # The producer died before it was answered: at most its next one.
    n = max([int(b) for a, b in put if a == w[0]], default=-1)
    if int(w[1]) != n + 1:
        say("an item that was never put: %s" % (w,))
# One consumer sees each producer's items in order, but for those that came
# back from a dead one.
seen = {}
back = 0
for name, w in rows("c.steady"):
    if w[0] != "took":
        continue
    if int(w[2]) < seen.get(w[1], -1):
        back += 1
    seen[w[1]] = max(seen.get(w[1], -1), int(w[2]))
if back > 3:
    say("%d items out of order" % back)
# The file: each answered record where it was said to be.
data = open(tmp + "/out", "rb").read()
for name, w in rows("a.*"):
    at = int(w[3])
    if not data[at:].startswith(("%s %s " % (w[1], w[2])).encode()):
        say("no record %s at %d" % (w[1:3], at))
names = [tuple(l.split()[:2]) for l in data.split(b"\n")[:-1]]
if len(names) != len(set(names)):
    say("a record is there twice")
answered = sum(1 for _ in rows("a.*"))
if len(names) > answered + 3:
    say("%d records, and %d were answered" % (len(names), answered))
print("%d items put, %d taken, %d came back; %d records" %
      (len(put), len(acked), back, len(names)))
sys.exit(bad)
END
echo "ok: kill -9"
expect 0 "$AQUIFER" down
