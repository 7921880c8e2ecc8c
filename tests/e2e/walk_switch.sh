#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Walks over two memory nodes that a switch carries on: the same bytes as when
# they come back to their client, of every tenant its own, and what becomes of
# them when the switch and then a node is killed.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
WALK_CLIENT=$1
export WALK_WHOLE=1

walker() {
	env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} timeout -k 5 200 \
		"$WALK_CLIENT" "$@"
}

# crossed EXPRESSION: whether that is so of the program's counters, c.
crossed() {
	"$AQUIFER" switch --name s1 --stats >"$TMP/stats"
	json "$TMP/stats" "(lambda c: $1)(next(
		p for p in d['programs'] if p['name'] == 'walk'))" >/dev/null
}

# knows EXPRESSION: of what the program was told; waits until it is so.
knows() {
	for _ in {1..100}; do
		"$AQUIFER" switch --name s1 --tell 'walk show' >"$TMP/show" &&
			json "$TMP/show" "$1" >/dev/null 2>&1 && return
		sleep 0.1
	done
	fail "not so: $1: $(<"$TMP/show")"
}

cat >"$AQUIFER_CONFIG" <<'INI'
[nic]
port = switch:s1
[switch s1]
programs = walk
[memory m0]
size = 64M
[memory m1]
size = 64M
INI
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create two 2M --nodes 2 --stripe 4K
expect 0 "$AQUIFER" region create one 1M --node m1
knows 'sorted(n["name"] for n in d["nodes"]) == ["m0", "m1"] and
	all(n["reachable"] for n in d["nodes"]) and
	[(r["region"], sorted(r["nodes"])) for r in d["regions"]] ==
		[("default/two", ["m0", "m1"])]'

# Every ready walk, all ways.
expect 0 walker every two
cat "$TMP/out"
grep -Eq '^list 33 iterations, ([1-9][0-9]*) crossings, \1 carried$' \
	"$TMP/out" || fail "the list was not carried: $(<"$TMP/out")"
crossed 'c["answered"] == c["carried"] > 0 and c["onward"] > 0' ||
	fail "$(<"$TMP/stats")"
expect 0 walker bad two
# Windows, which end with their connection, are left to the client.
WALK_WHOLE='' env -u WALK_WHOLE "$WALK_CLIENT" every two >"$TMP/out" 2>&1 ||
	fail "$(<"$TMP/out")"
grep -q 'list 33 iterations, [1-9][0-9]* crossings, 0 carried' "$TMP/out" ||
	fail "with windows: $(<"$TMP/out")"
expect 0 "$AQUIFER" region create changing 512K --nodes 2 --stripe 4K
expect 0 walker changes changing
knows '"default/changing" not in [r["region"] for r in d["regions"]]'

# The command; without a word the configuration decides.
start=$(walker image two "$TMP/list.walk") || fail "no image"
key=$(printf '%048d2800000000000000' 0)
for cross in switch bounce ''; do
	expect 0 "$AQUIFER" walk run "$TMP/list.walk" two "$start" --pad "$key" \
		--there ${cross:+--cross "$cross"} --json
	cp "$TMP/out" "$TMP/by.$cross"
done
json "$TMP/by.switch" 'd["requests"] == 1 and d["carried"] == d["crossings"] > 30'
json "$TMP/by.bounce" 'd["requests"] > 30 and d["carried"] == 0'
json "$TMP/by." 'd["carried"] == d["crossings"] > 30'
[[ $(json "$TMP/by.switch" 'd["pad"]') == "$(json "$TMP/by.bounce" 'd["pad"]')" ]] ||
	fail "switch and bounce differ"
expect 2 "$AQUIFER" walk run "$TMP/list.walk" two "$start" --cross road
expect 0 "$AQUIFER" walk plan "$TMP/list.walk" two --json
json "$TMP/out" 'd["cross"] == "switch"'
expect 0 "$AQUIFER" walk plan "$TMP/list.walk" one --json
json "$TMP/out" 'd["cross"] == "one node"'

# Another tenant's region of the same name is another one.
expect 0 "$AQUIFER" tenant create other --json
other=$(json "$TMP/out" 'd["token"]')
AQUIFER_TOKEN=$other expect 0 "$AQUIFER" region create two 2M --nodes 2 --stripe 4K
knows '{r["region"]: r["space"] for r in d["regions"]}.keys() ==
	{"default/two", "other/two"} and len({r["space"] for r in d["regions"]}) == 2'
AQUIFER_TOKEN=$other expect 0 walker every two
grep -Eq '^list 33 iterations, ([1-9][0-9]*) crossings, \1 carried$' "$TMP/out" ||
	fail "of another tenant: $(<"$TMP/out")"
# With another token on one of the nodes only, they are two tenants.
curl -sS --unix-socket "$RUNDIR/m1.sock" -X PATCH -o "$TMP/answer" \
	-H "Authorization: Bearer $(<"$RUNDIR/admin-token")" -d '{}' \
	http://m1/v1/tenants/other/token
knows '[r["nodes"].count("") for r in d["regions"] if r["region"] == "other/two"]
	== [1]'
crossed 'c["forged_on"] == c["forged_back"] == 0' || fail "$(<"$TMP/stats")"

# The switch is killed with walks in flight. The one that comes back loses,
# doubles and damages packets before and behind the program.
mkfifo "$TMP/in"
walker flight two <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "$(<"$TMP/errors")"
echo >&3
wait_line "$TMP/lines" 2 >/dev/null || fail "$(<"$TMP/errors")"
kill_node s1
faults=fault:loss=0.3%,dup=0.3%,reorder=0.3%,corrupt=0.1%
sed -i "s/^programs = .*/programs = $faults walk $faults/" "$AQUIFER_CONFIG"
expect 0 "$AQUIFER" up
knows '[sorted(r["nodes"]) for r in d["regions"] if r["region"] == "default/two"]
	== [["m0", "m1"]]'
echo >&3
wait_line "$TMP/lines" 3 >/dev/null || fail "$(<"$TMP/errors")"
for _ in {1..100}; do
	! crossed 'c["answered"] >= 20' 2>/dev/null || break
	sleep 0.1
done
crossed 'c["answered"] >= 20' || fail "no walks: $(<"$TMP/stats")"

# A node is killed with walks in flight: right bytes, or an error in time that
# says which.
kill_node m1
wait "$app" || fail "the client: $(<"$TMP/errors")"
cat "$TMP/lines"
grep -q '^EHOSTDOWN .*node m1' "$TMP/lines" || fail "$(<"$TMP/lines")"
exec 3>&-
