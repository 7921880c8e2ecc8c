#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Indexes of both kinds in a rack, by their commands: every verb, what they
# refuse, round trips, and what is left when clients are killed.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

printf '[memory m0]\nsize = 128M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" index create t --memory 16M --failure 200 --json
json "$TMP/out" 'd["kind"] == "tree" and d["locks_on_device"]
    and d["node_bytes"] == 1024 and d["entries_per_leaf"] >= 8' >/dev/null
expect 1 "$AQUIFER" index create t
expect 1 "$AQUIFER" index create t --kind versions --room 10
grep -q "already" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" index put t b two
expect 0 "$AQUIFER" index put t a one
expect 0 "$AQUIFER" index put t ab between
expect 0 "$AQUIFER" index get t a
[[ $(cat "$TMP/out") == one ]] || fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" index scan t
[[ $(cut -f1 "$TMP/out" | tr '\n' ' ') == "a ab b " ]] || fail "order"
expect 0 "$AQUIFER" index del t b
expect 1 "$AQUIFER" index del t b
grep -q "no such key" "$TMP/err" || fail "$(cat "$TMP/err")"

# Two threads: a read is one round trip, a write two, splits included a bit
# more.
expect 0 "$AQUIFER" index fill t --count 2000 --threads 2 --json
json "$TMP/out" 'd["stored"] == 2000 and d["trips_per_get"] < 1.1
    and d["trips_per_put"] < 3 and d["splits"] > 150' >/dev/null
expect 0 "$AQUIFER" index scan t --from key:000000000100 \
	--to key:000000000200 --keys
[[ $(wc -l <"$TMP/out") == 100 ]] || fail "scan: $(wc -l <"$TMP/out")"
sort -c "$TMP/out" || fail "a scan in no order"
expect 0 "$AQUIFER" index scan t --from key --count 7 --json
[[ $(wc -l <"$TMP/out") == 7 ]] || fail "count: $(wc -l <"$TMP/out")"

# One answer for a range, by a walk on the node: keys 0 to 1999 have their
# number as value. It is what a scan adds up.
expect 0 "$AQUIFER" index count t --from key: --to kez --json
json "$TMP/out" 'd["count"] == d["keys"] == 2000 and d["walks"] == 1
    and d["trips"] <= 3' >/dev/null
expect 0 "$AQUIFER" index sum t --from key: --to kez --json
json "$TMP/out" 'd["sum"] == 1999000 and d["keys"] == 2000' >/dev/null
expect 0 "$AQUIFER" index min t --from key:000000000100 --to kez
[[ $(cat "$TMP/out") == 100 ]] || fail "min: $(cat "$TMP/out")"
expect 0 "$AQUIFER" index max t --from key: --to key:000000000200
[[ $(cat "$TMP/out") == 199 ]] || fail "max: $(cat "$TMP/out")"
expect 0 "$AQUIFER" index count t --from x
[[ $(cat "$TMP/out") == 0 ]] || fail "count: $(cat "$TMP/out")"
expect 1 "$AQUIFER" index min t --from x
grep -q "no key" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 1 "$AQUIFER" index sum t
grep -q "key 'a' has 3 bytes" "$TMP/err" || fail "$(cat "$TMP/err")"

# Root to leaf in one round trip.
expect 0 "$AQUIFER" index get t a --walk
[[ $(cat "$TMP/out") == one ]] || fail "walk: $(cat "$TMP/out")"
expect 0 "$AQUIFER" index get t key:000000001234 --walk --json
cp "$TMP/out" "$TMP/walked"
expect 0 "$AQUIFER" index get t key:000000001234 --json
cmp "$TMP/out" "$TMP/walked" || fail "a walk and READs differ"
expect 1 "$AQUIFER" index get t nobody --walk
expect 0 "$AQUIFER" walk list --json
json "$TMP/out" '(lambda runs: runs["index-find"] >= 3 and runs["index-sum"] >= 3)(
    {w["name"]: w["runs"] for w in d["walks"]})' >/dev/null

# A node that executes no long walks: the same by READs.
expect 0 "$AQUIFER" index create big --memory 4M --node-bytes 8192
expect 0 "$AQUIFER" index fill big --count 500
expect 0 "$AQUIFER" index sum big --json
json "$TMP/out" 'd["sum"] == 124750 and d["walks"] == 0' >/dev/null
expect 0 "$AQUIFER" index get big key:000000000007 --walk
expect 0 "$AQUIFER" index drop big

# Killed in the middle of it: the next ones take over and find it whole.
for i in 1 2; do
	"$AQUIFER" index fill t --count 200000 --threads 2 &
	pid=$!
	sleep "0.$((i * 13))"
	kill -9 "$pid"
	wait "$pid" 2>/dev/null || true
	expect 0 "$AQUIFER" index fill t --count 300
	expect 0 "$AQUIFER" index check t --json
	json "$TMP/out" 'd["good"] and d["keys"] >= 2002' >/dev/null
done

expect 0 "$AQUIFER" index create v --kind versions --room 2000
expect 0 "$AQUIFER" index put v 7 seven
expect 0 "$AQUIFER" index get v 7
[[ $(cat "$TMP/out") == seven ]] || fail "$(cat "$TMP/out")"
expect 2 "$AQUIFER" index put v seven 7
expect 0 "$AQUIFER" index fill v --count 1000 --threads 2 --json
json "$TMP/out" 'd["stored"] == 1000' >/dev/null
expect 0 "$AQUIFER" index del v 7
expect 1 "$AQUIFER" index get v 7
expect 1 "$AQUIFER" index scan v --from 5
grep -q "order" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 1 "$AQUIFER" index sum v
grep -q "kind tree" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" index scan v --keys
[[ $(sort -n "$TMP/out" | sed -n '7,9p' | tr '\n' ' ') == "6 8 9 " ]] || fail "versions"
[[ $(wc -l <"$TMP/out") == 999 ]] || fail "versions: $(wc -l <"$TMP/out")"
expect 0 "$AQUIFER" index check v --json
json "$TMP/out" 'd["good"] and d["keys"] == 999' >/dev/null
expect 0 "$AQUIFER" index stat v

# Both are listed as such, and their regions are theirs.
expect 0 "$AQUIFER" index list --json
json "$TMP/out" '[(x["index"], x["kind"], x["health"]) for x in d["indexes"]] ==
    [("t", "tree", "whole"), ("v", "versions", "whole")]
    and d["indexes"][1]["keys"] == 999
    and d["indexes"][0]["keys"] >= 2002' >/dev/null
expect 0 "$AQUIFER" index list
grep -q "^v .*versions .* 999 .* whole$" "$TMP/out" || fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["regions"] == [] and len(d["indexes"]) == 2' >/dev/null
for region in it-t il-t iv-v; do
	expect 1 "$AQUIFER" region delete "$region"
	grep -q "'aquifer index drop ${region#*-}'" "$TMP/err" || fail "$(cat "$TMP/err")"
	expect 1 "$AQUIFER" region resize "$region" 1M
done
expect 0 "$AQUIFER" index drop v
expect 1 "$AQUIFER" index stat v
expect 0 "$AQUIFER" region delete it-t --force
expect 0 "$AQUIFER" index list --json
json "$TMP/out" '[x["health"] for x in d["indexes"]] == ["damaged"]' >/dev/null
expect 0 "$AQUIFER" index create t --memory 4M
expect 0 "$AQUIFER" index put t a one
expect 0 "$AQUIFER" region delete il-t --force
expect 1 "$AQUIFER" index create t
grep -q "what is left.*index drop t" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" index drop t
expect 1 "$AQUIFER" index drop t

expect 2 "$AQUIFER" index get t
expect 2 "$AQUIFER" index create x --kind odd
expect 2 "$AQUIFER" index create x --node-bytes 100
expect 2 "$AQUIFER" index create x --key 65
expect 2 "$AQUIFER" index create x --kind versions
expect 2 "$AQUIFER" index create 'a b'
grep -q "'a b' is no name of an index" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 2 "$AQUIFER" index get x
grep -q "needs a key" "$TMP/err" || fail "$(cat "$TMP/err")"
# A region that is no index.
expect 0 "$AQUIFER" region create it-fake 1M
expect 0 "$AQUIFER" region create il-fake 4K
expect 1 "$AQUIFER" index stat fake
grep -q "ordered index" "$TMP/err" || fail "$(cat "$TMP/err")"
