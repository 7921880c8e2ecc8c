#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every benchmark prints the same JSON object. Each runs in its quickest form;
# its numbers are not judged here: the machine is busy.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
[[ -z $AQ_PRELOAD ]] || skip "a benchmark of sanitized code tells nothing"
need_nic

cat >"$TMP/schema.py" <<'PYTHON'
import json, math, sys

MACHINE = {"cpu": str, "kernel": str, "cores": int, "tsc_ghz": float,
           "clock_read_ns": float, "rt_runtime_us": int, "client_core": int,
           "server_core": int}
TOP = {"bench": str, "commit": str, "quick": bool, "settings": dict,
       "machine": dict, "rows": list, "ratios": dict, "bounds": dict,
       "void": dict}
JUDGE = {"<=": lambda v, b: v <= b, ">=": lambda v, b: v >= b,
         "<": lambda v, b: v < b, "==": lambda v, b: v == b}


def has(where, what, keys):
    for key, kind in keys.items():
        kinds = (int, float) if kind is float else (kind,)
        assert type(what.get(key)) in kinds, "%s: %s" % (where, key)


def number(where, v):
    assert type(v) in (int, float) and math.isfinite(v), where


def check_row(row):
    has("row", row, {"group": str, "name": str, "unit": str})
    where = "row %s of %s" % (row["name"], row["group"])
    assert ("value" in row) != ("error" in row), where
    if "error" in row:
        assert row["error"] and type(row["error"]) is str, where
    for key, v in row.items():
        if type(v) is not str:
            number("%s: %s" % (where, key), v)


def check(d, name):
    assert set(d) == set(TOP), "keys: %s" % sorted(d)
    has("top", d, TOP)
    assert d["bench"] == name and d["commit"], name
    assert set(d["machine"]) == set(MACHINE), sorted(d["machine"])
    has("machine", d["machine"], MACHINE)
    assert d["settings"]["rounds"] >= 1 and d["quick"]
    assert d["rows"], "nothing"
    # What is only printed has no ratio.
    assert d["ratios"].keys() | d["void"].keys() or \
        d["settings"].get("only") == "jobs", "nothing to judge by"
    for row in d["rows"]:
        check_row(row)
    for ratio, v in d["ratios"].items():
        number(ratio, v)
        assert ratio not in d["void"], "%s has a number and is void" % ratio
    for ratio, why in d["void"].items():
        assert why and type(why) is str, ratio
    for ratio, b in d["bounds"].items():
        assert set(b) == {"must", "bound", "value", "kept"}, ratio
        assert b["value"] == d["ratios"][ratio], ratio
        assert b["kept"] is JUDGE[b["must"]](b["value"], b["bound"]), ratio


d = json.load(open(sys.argv[1]))
if sys.argv[2] == "all":
    assert list(d) == ["benches"]
    assert [one["bench"] for one in d["benches"]] == sys.argv[3:]
    for one in d["benches"]:
        check(one, one["bench"])
else:
    check(d, sys.argv[2])
PYTHON

# schema NAME OPTION...: the exit code says nothing of the shape: on a machine
# that starves a process the object says so.
schema() {
	local status=0
	"$AQUIFER" bench "$1" --quick --busy --json "${@:2}" >"$TMP/out" \
		2>"$TMP/err" || status=$?
	((status <= 1)) || fail "bench $1: exit code $status: $(<"$TMP/err")"
	python3 "$TMP/schema.py" "$TMP/out" "$1" || {
		cat "$TMP/out" "$TMP/err" >&2
		fail "bench $1 does not obey the schema"
	}
}

schema verbs --only qp1000
schema edm --only fig7
schema offload --only caller64 --dir "$TMP"
schema switch --only frames
schema fair --rounds 1 --nics 1 --pair reads_read64
schema paging --only pages --port direct
schema kv --only trips
schema walk --only engine --size 1
schema tier --only probe
schema control --only restart
schema control --only renew
schema mind --only count
schema elastic --only queue
schema elastic --only chain
schema elastic --only sort
schema elastic --only jobs

# Their list; options mean the same in all of them.
expect 0 "$AQUIFER" bench
mapfile -t names < <(sed -n 's/^  \([a-z]*\) .*/\1/p' "$TMP/out")
[[ ${names[*]} == "verbs edm offload switch fair paging kv walk tier control mind elastic all" ]] ||
	fail "the list is ${names[*]}"
for name in "${names[@]}"; do
	expect 0 "$AQUIFER" bench "$name" --help
	for option in quick json check busy rounds only; do
		grep -q -- "^  --$option " "$TMP/out" ||
			fail "bench $name has no --$option"
	done
	expect 2 "$AQUIFER" bench "$name" --rounds 0
	expect 2 "$AQUIFER" bench "$name" --rounds 102
	expect 2 "$AQUIFER" bench "$name" surplus
	expect 2 "$AQUIFER" bench "$name" --only nothing_like_this
done

# All of them, with progress; here only what has something of that name.
expect 0 "$AQUIFER" bench all --quick --json --only fig7
grep -q '^{"bench":"edm","progress":' "$TMP/err" || fail "no progress"
python3 "$TMP/schema.py" "$TMP/out" all edm || fail "bench all"

# What could not be judged says why on the last lines.
expect 0 env PATH=/nonexistent "$AQUIFER" bench kv --quick --only gateway
tail -n 6 "$TMP/out" | grep -q '^void: gateway_p16_vs_redis_p16: redis-server' ||
	fail "no reason: $(tail -n 6 "$TMP/out")"
