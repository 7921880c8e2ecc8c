#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Walks over several memory nodes: every ready one, here and there with the same
# bytes; what is written before a walk; pointers that lead nowhere; regions that
# are resized and deleted under walks; a tenant that floods; a node that is
# killed, with walks there, and comes back; a client that is killed; and the
# command `aquifer walk`.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
WALK_CLIENT=$1

walker() {
	env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} timeout -k 5 60 \
		"$WALK_CLIENT" "$@"
}

# hold REGION: a client that keeps walks under way there; its number is HOLDER.
hold() {
	: >"$TMP/lines" # what another one said there
	env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} "$WALK_CLIENT" hold "$1" \
		>"$TMP/lines" 2>"$TMP/errors" &
	HOLDER=$!
	PIDS+=("$HOLDER")
	[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "$(<"$TMP/errors")"
}
kill_holder() {
	kill -KILL "$HOLDER"
	wait "$HOLDER" || true
}

cat >"$AQUIFER_CONFIG" <<'INI'
[memory m0]
size = 64M
[memory m1]
size = 64M
[memory m2]
size = 16M
[memory m3]
size = 16M
[memory m4]
size = 16M
INI
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create two 2M --nodes 2 --stripe 4K
expect 0 "$AQUIFER" region create one 1M --node m1

expect 0 walker every two
cat "$TMP/out"
grep -Eq '^list 33 iterations, [1-9][0-9]* crossings, 0 carried$' "$TMP/out" ||
	fail "the list did not cross: $(<"$TMP/out")"
expect 0 walker every one
# More nodes than a walk is installed on in a row without getting on.
expect 0 "$AQUIFER" region create five 2M --nodes 5 --stripe 4K
expect 0 walker every five
expect 0 walker bad two
expect 0 "$AQUIFER" region create changing 512K --nodes 2 --stripe 4K
expect 0 walker changes changing
# What is written before a walk is there when it begins, in one round trip where
# one node has both.
expect 0 "$AQUIFER" region create after1 1M --node m1
expect 0 walker after after1 one
expect 0 "$AQUIFER" region create after2 2M --nodes 2 --stripe 4K
expect 0 walker after after2 two

# The command.
start=$(walker image two "$TMP/list.walk") || fail "no image"
key=$(printf '%048d2800000000000000' 0)
for where in here there; do
	expect 0 "$AQUIFER" walk run "$TMP/list.walk" two "$start" --pad "$key" \
		--$where --json
	cp "$TMP/out" "$TMP/$where"
	json "$TMP/out" "d['where'] == '$where' and d['iterations'] == 40 and
		d['pad'].startswith('01')" >/dev/null
done
[[ $(json "$TMP/here" 'd["pad"]') == "$(json "$TMP/there" 'd["pad"]')" ]] ||
	fail "here and there differ"
printf '%s' "$key" | python3 -c 'import sys; sys.stdout.buffer.write(
	bytes.fromhex(sys.stdin.read()))' >"$TMP/pad"
expect 0 "$AQUIFER" walk run "$TMP/list.walk" two "$start" --pad "@$TMP/pad"
grep -q '^pad  *01' "$TMP/out" || fail "$(<"$TMP/out")"
expect 1 "$AQUIFER" walk run "$TMP/list.walk" two 0x70000000 --there
grep -q 'pointer 0x70000000 leads out of the region' "$TMP/err" ||
	fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" walk run "$TMP/list.walk" two "$start" --iterations 7
grep -q 'did not end within 7 nodes' "$TMP/err" || fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" walk run "$AQUIFER_CONFIG" two "$start"
expect 0 "$AQUIFER" walk plan "$TMP/list.walk" two --json
json "$TMP/out" 'd["load_ns"] > 0 and d["compute_ns"] > 0 and d["nodes"] == 2' \
	>/dev/null

# The Python package.
if [[ -z $AQ_PRELOAD ]]; then
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$AQ_SOURCE/python \
		AQUIFER_LIB=${AQUIFER%/*}/libaquifer.so.1 python3 - "$TMP/list.walk" \
		"$start" "$key" <<'PYTHON' || fail "Python"
import sys, aquifer
path, start, key = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
with aquifer.Rack() as rack, rack.open_region("two") as region:
    got = []
    for where in ("here", "there"):
        with rack.load_walk(path, where=where) as walk:
            result = walk.run(region, start, key)
            assert result.where == where and result.iterations == 40, result
            assert result.pad[0] == 1 and len(result.pad) == walk.info.pad_bytes
            got.append(result.pad)
    assert got[0] == got[1]
    # The same one, made here.
    shape = dict(key_bytes=8, value_at=8, value_bytes=8, next_at=16)
    with rack.make_walk("list-find", **shape) as walk:
        with rack.load_walk(path) as same:
            assert walk.info == same.info, walk.info
        assert walk.run(region, start, key).pad == got[0]
    for bad, why in (
        (("no-find", shape), "not 'no-find'"),
        (("list-find", {"keys_at": 1}), "no 'keys_at'"),
        (("list-find", {"key_bytes": 2**32}), "key_bytes"),
        (("list-find", {"key_bytes": 3}), "1, 2, 4 or 8"),
    ):
        try:
            rack.make_walk(bad[0], **bad[1])
            sys.exit(f"made: {bad}")
        except (TypeError, ValueError, aquifer.Error) as e:
            assert why in str(e), e
    with rack.load_walk(open(path, "rb").read(), iterations=3) as walk:
        try:
            walk.run(region, start, key)
            sys.exit("no error")
        except aquifer.Error as e:
            assert "within 3 nodes" in str(e), e
        for bad in (bytes(5000), "text"):
            try:
                walk.run(region, start, bad)
                sys.exit("taken")
            except (TypeError, ValueError):
                pass
PYTHON
fi

# Another tenant has neither the region nor the programs.
expect 0 "$AQUIFER" tenant create other --json
other=$(json "$TMP/out" 'd["token"]')
AQUIFER_TOKEN=$other expect 1 "$AQUIFER" walk run "$TMP/list.walk" two "$start"
AQUIFER_TOKEN=$other expect 0 "$AQUIFER" walk list --json
json "$TMP/out" 'd["walks"] == []' >/dev/null

# What nodes keep, until it is dropped; then it is installed again, unseen.
expect 0 "$AQUIFER" walk list --json
json "$TMP/out" 'len({w["node"] for w in d["walks"]}) == 5 and
	any(w["runs"] > 0 and w["iterations"] > 0 for w in d["walks"])' >/dev/null
# Confined as they are, nodes may make code executable.
[[ $(uname -m) != x86_64 ]] ||
	json "$TMP/out" 'all(w["translated"] for w in d["walks"])' >/dev/null
name=$(json "$TMP/here" 'd["walk"]')
expect 0 "$AQUIFER" walk drop "$name"
expect 1 "$AQUIFER" walk drop "$name"
expect 0 "$AQUIFER" walk run "$TMP/list.walk" two "$start" --pad "$key" --there

# It may flood its share, and no more: others are served.
AQUIFER_TOKEN=$other expect 0 "$AQUIFER" region create theirs 1M --node m1
AQUIFER_TOKEN=$other hold theirs
expect 0 walker every one
kill_holder

# Under walks the region is resized, which they do not notice, and deleted.
expect 0 "$AQUIFER" region create under 512K --nodes 2 --stripe 4K
: >"$TMP/lines"
walker deleted under >"$TMP/lines" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "$(<"$TMP/errors")"
expect 0 "$AQUIFER" region resize under 1M
expect 0 "$AQUIFER" region delete under
wait "$app" || fail "deleted under walks: $(<"$TMP/errors")"
grep -q 'region under' "$TMP/lines" || fail "$(<"$TMP/lines")"

# A client that is killed holds nobody up: nothing is executed any more.
iterations() {
	curl -sS --unix-socket "$RUNDIR/m1.sock" http://m1/metrics |
		sed -n 's/.*counter="walk_iterations"} //p'
}
hold one
first=$(iterations)
for _ in {1..300}; do
	[[ $(iterations) == "$first" ]] || break
	sleep 0.1
done
[[ -n $first && $(iterations) != "$first" ]] || fail "no walk is under way"
kill_holder
before='' same=0
for _ in {1..300}; do
	now=$(iterations)
	[[ $now == "$before" ]] && same=$((same + 1)) || same=0
	((same < 10)) || break
	before=$now
	sleep 0.1
done
((same == 10)) || fail "walks go on: $before, $now"
expect 0 "$AQUIFER" walk run "$TMP/list.walk" two "$start" --pad "$key" --there

# A node is killed with walks there; each of them ends with its name.
expect 0 "$AQUIFER" region create there 512K --node m2
: >"$TMP/lines"
walker killed there >"$TMP/lines" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "$(<"$TMP/errors")"
kill_node m2
wait "$app" || fail "killed under walks: $(<"$TMP/errors")"
grep -q 'node m2' "$TMP/lines" || fail "$(<"$TMP/lines")"

# A node is killed; it comes back without memory and programs.
mkfifo "$TMP/in"
: >"$TMP/lines"
walker lost one <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "$(<"$TMP/errors")"
kill_node m1
echo >&3
words=$(wait_line "$TMP/lines" 2)
[[ $words == EHOSTDOWN*"node m1 "* ]] || fail "a dead node: $words"
AQUIFER_WALK_JIT=off expect 0 "$AQUIFER" up
echo >&3
[[ $(wait_line "$TMP/lines" 3) == "0 1" ]] ||
	fail "after its return: $(cat "$TMP/lines" "$TMP/errors")"
wait "$app" || fail "the client: $(<"$TMP/errors")"
exec 3>&-
expect 0 "$AQUIFER" walk list --json
json "$TMP/out" '[w["translated"] for w in d["walks"] if w["node"] == "m1"] ==
	[False]' >/dev/null
