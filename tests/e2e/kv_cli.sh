#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A table in a rack, by its commands: every verb, and what they refuse.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

printf '[memory m0]\nsize = 128M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" kv create t 2000 --entry 32 --extents 8M --json
json "$TMP/out" 'd["capacity"] == 2000 and d["locks_on_device"]
    and d["masked_atomics"] and d["inline_bytes"] == 24' >/dev/null
expect 1 "$AQUIFER" kv create t 2000
expect 0 "$AQUIFER" kv put t hello world
expect 0 "$AQUIFER" kv get t hello
[[ $(cat "$TMP/out") == world ]] || fail "$(cat "$TMP/out")"
head -c 3000000 /dev/urandom >"$TMP/large"
"$AQUIFER" kv put t large - <"$TMP/large" || fail "put from standard input"
"$AQUIFER" kv get t large | cmp - "$TMP/large" || fail "a large value"
# By walks: in the row, in an extent that comes with it, in one that does not.
head -c 512 "$TMP/large" | expect 0 "$AQUIFER" kv put t medium -
"$AQUIFER" kv get t medium --walk | cmp - <(head -c 512 "$TMP/large") || fail "a walk"
"$AQUIFER" kv get t large --walk | cmp - "$TMP/large" || fail "a walk, large"
expect 0 "$AQUIFER" kv get t hello --walk
expect 1 "$AQUIFER" kv get t nobody --walk
expect 0 "$AQUIFER" walk list --json
json "$TMP/out" '[w["name"] for w in d["walks"] if w["runs"] >= 4] == ["kv-get"]' >/dev/null
expect 0 "$AQUIFER" kv del t medium
expect 0 "$AQUIFER" kv put t gone soon --ttl 1
sleep 0.05
expect 1 "$AQUIFER" kv get t gone
expect 0 "$AQUIFER" kv del t hello
expect 1 "$AQUIFER" kv del t hello
grep -q "no such key" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" kv fill t --count 1000 --json
json "$TMP/out" 'd["inserted"] == 1000 and d["trips_per_insert"] < 2.5' >/dev/null
expect 0 "$AQUIFER" kv scan t --keys
[[ $(wc -l <"$TMP/out") == 1001 ]] || fail "scan: $(wc -l <"$TMP/out")"
# Output that cannot be written is said once, and why.
if [[ -e /dev/full ]]; then
	status=0
	"$AQUIFER" kv scan t --keys >/dev/full 2>"$TMP/err" || status=$?
	[[ $status == 1 && $(wc -l <"$TMP/err") == 1 ]] ||
		fail "a full disk: $status $(cat "$TMP/err")"
	grep -q '^aquifer: the output cannot be written: No space' "$TMP/err" ||
		fail "$(cat "$TMP/err")"
fi
expect 0 "$AQUIFER" kv stat t --json
json "$TMP/out" 'd["keys"] == 1002' >/dev/null
expect 0 "$AQUIFER" kv check t --json
json "$TMP/out" 'd["good"] and d["count_error"] == 0' >/dev/null
expect 0 "$AQUIFER" kv create w 500 --word-locks --host-locks --extents 1M
expect 0 "$AQUIFER" kv fill w --count 400
expect 0 "$AQUIFER" kv check w
expect 0 "$AQUIFER" kv drop w
expect 1 "$AQUIFER" kv stat w
expect 2 "$AQUIFER" kv get t
expect 2 "$AQUIFER" kv create x 100 --hash odd
expect 2 "$AQUIFER" kv create x 100 --entry 33
expect 2 "$AQUIFER" kv create x 0
expect 2 "$AQUIFER" kv create 'a b' 100
grep -q "'a b' is no name of a table" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 2 "$AQUIFER" kv create x
grep -q "needs a number of keys" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 2 "$AQUIFER" kv get t k l
grep -q "does not understand 'l'" "$TMP/err" || fail "$(cat "$TMP/err")"
# A region that is no table, and one that is damaged.
expect 1 "$AQUIFER" kv stat nothing
expect 0 "$AQUIFER" region create kv-0000000-fake 1M
expect 0 "$AQUIFER" region create kl-0000000-fake 4K
expect 1 "$AQUIFER" kv stat fake
grep -q "key-value table" "$TMP/err" || fail "$(cat "$TMP/err")"

# Tables are listed as such; one that is no table is, too.
expect 0 "$AQUIFER" kv list --json
json "$TMP/out" '[(t["table"], t["keys"], t["health"]) for t in d["tables"]] ==
    [("fake", None, "damaged"), ("t", 1002, "whole")]' >/dev/null
expect 0 "$AQUIFER" kv list
grep -q "^t .* 1002 .* whole$" "$TMP/out" || fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["regions"] == [] and len(d["tables"]) == 2' >/dev/null
expect 0 "$AQUIFER" status
grep -q "^t .* 1002 .* whole$" "$TMP/out" || fail "$(cat "$TMP/out")"
! grep -q "kv-0000000-t" "$TMP/out" || fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" region list
grep -q "^kv-0000000-t .* kv t$" "$TMP/out" || fail "$(cat "$TMP/out")"

# Its regions cannot be deleted or resized, neither by the command, which also
# knows regions without a mark by their names, nor by anybody else.
for region in kv-0000000-t kl-0000000-t kv-0000000-fake; do
	expect 1 "$AQUIFER" region delete "$region"
	grep -q "'aquifer kv drop ${region##*-}'" "$TMP/err" || fail "$(cat "$TMP/err")"
done
expect 1 "$AQUIFER" region resize kv-0000000-t 1M
auth="Authorization: Bearer $(cat "$RUNDIR/token")"
ask() {
	curl -s --unix-socket "$RUNDIR/m0.sock" -H "$auth" \
		"http://m0/v1/regions/kv-0000000-t" "$@" >"$TMP/out"
}
ask -X DELETE
grep -q "EPERM.*aquifer kv drop t" "$TMP/out" || fail "$(cat "$TMP/out")"
ask -X PATCH -d '{"size": 4096}'
grep -q "EPERM" "$TMP/out" || fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" kv check t

# Deleted by force, what is left is in nobody's way.
expect 0 "$AQUIFER" region delete kv-0000000-t --force
expect 0 "$AQUIFER" kv list --json
json "$TMP/out" '[t["health"] for t in d["tables"]] == ["damaged"] * 2' >/dev/null
expect 0 "$AQUIFER" kv create t 100
expect 0 "$AQUIFER" kv put t again there
expect 0 "$AQUIFER" region delete kl-0000000-t --force
expect 1 "$AQUIFER" kv create t 100
grep -q "what is left.*kv drop t" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" kv drop t
expect 0 "$AQUIFER" kv create t 100
expect 0 "$AQUIFER" region delete kv-0000000-t --force
expect 0 "$AQUIFER" kv drop t
expect 1 "$AQUIFER" kv drop t
expect 0 "$AQUIFER" kv drop fake
expect 0 "$AQUIFER" region list --json
json "$TMP/out" 'd["regions"] == []' >/dev/null
