#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The probe measures the NUMA nodes and the rack's memory by its ways, sorts what
# it found, and leaves nothing in the rack, also when it is ended early.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

printf '[memory m0]\nsize = 96M\n' >"$TMP/rack.ini"
"$AQUIFER" up "$TMP/rack.ini" >"$TMP/up" || fail "up"

"$AQUIFER" tier probe --mix 3:1 --threads 1 --json >"$TMP/out" || fail "probe"
python3 - "$TMP/out" <<'PY' || fail "$(cat "$TMP/out")"
import json, sys

d = json.load(open(sys.argv[1]))
tiers = {t["name"]: t for t in d["tiers"]}
assert {"node 0", "m0 direct", "m0 cable"} <= set(tiers), tiers.keys()
good = [t for t in d["tiers"] if "error" not in t]
assert [t["idle_ns"]["p50"] for t in good] == sorted(t["idle_ns"]["p50"] for t in good)
for name in "node 0", "m0 direct", "m0 cable":
    t = tiers[name]
    assert "error" not in t, t
    idle = t["idle_ns"]
    assert 0 < idle["p50"] <= idle["p90"] <= idle["p99"] and idle["samples"] >= 16, idle
    assert [(b["reads"], b["writes"]) for b in t["bandwidth"]] == [(3, 1)]
    assert t["bandwidth"][0]["gbs"] > 0 and t["threads"] == 1
    points = t["curve"]["points"]
    assert len(points) == 13 and points[0]["ns"] == idle["p50"]
    rates = [p["gbs"] for p in points]
    assert rates == sorted(rates) and 0 <= t["knee_gbs"] <= t["peak_gbs"] + 1e-9
assert tiers["node 0"]["system"]["has_cpus"] and tiers["node 0"]["node"] == 0
assert isinstance(d["trusted"], bool) and 0 <= d["cpu_share"] <= 1.05
PY

regions() {
	"$AQUIFER" region list --json | grep -c '"name": "probe-' || true
}
[[ $(regions) == 0 ]] || fail "regions are left: $(regions)"

# Ended while its region is there.
"$AQUIFER" tier probe --far >"$TMP/cut" 2>&1 &
pid=$!
PIDS+=("$pid")
for _ in {1..500}; do
	[[ $(regions) == 0 ]] || break
	kill -0 "$pid" 2>/dev/null || fail "it ended: $(cat "$TMP/cut")"
done
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
((status == 143)) || fail "exit status $status after TERM: $(cat "$TMP/cut")"
[[ $(regions) == 0 ]] || fail "regions are left after TERM"

"$AQUIFER" down >"$TMP/down" || fail "down"
expect 1 "$AQUIFER" tier probe --node 1023
grep -q 'no NUMA node 1023' "$TMP/err" || fail "$(cat "$TMP/err")"
expect 2 "$AQUIFER" tier probe --mix 0:0
grep -q 'mix: 0:0: one of the two' "$TMP/err" || fail "$(cat "$TMP/err")"

# Threads that share a processor would measure each other: more of them than
# there are processors is an error, and one processor has no curve.
cpus=$(nproc)
if ((cpus < 64)); then
	expect 2 "$AQUIFER" tier probe --node 0 --threads $((cpus + 1))
	grep -q "$((cpus + 1)) threads are more than the [0-9]* processor" \
		"$TMP/err" || fail "$(cat "$TMP/err")"
fi
first=$(taskset -pc $$ | sed 's/.*: *\([0-9]*\).*/\1/')
expect 0 taskset -c "$first" "$AQUIFER" tier probe --node 0 --mix 1:0
grep -q 'node 0: no latency at a load' "$TMP/out" || fail "$(cat "$TMP/out")"
grep -qE '^node 0( +[0-9.]+){4} +-$' "$TMP/out" || fail "$(cat "$TMP/out")"
