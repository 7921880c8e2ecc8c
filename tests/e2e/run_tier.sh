#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer run --tier` on whatever this machine has: nodes that there are not and
# options that make no sense are refused in words; one tier is what --local is;
# with a second node with memory, pages are where the ratio says. What takes two
# nodes is tested in guests (vm_tier.sh). Arguments: run_client, run_tier.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
PROGRAM=$2

# refused STATUS WORDS OPTIONS...
refused() {
	local status=$1 words=$2
	shift 2
	expect "$status" "$AQUIFER" run "$@" -- "$PROGRAM" place 10
	grep -qF -- "$words" "$TMP/err" || fail "$*: $(cat "$TMP/err")"
	[[ ! -s $TMP/out ]] || fail "$* ran"
}

refused 2 'leave --local out' --tier top=8M@0 --local 8M
refused 2 'need --tier' --local 8M --interleave 3:1
refused 2 'need --tier' --local 8M --promote on
refused 2 'need --tier' --local 8M --top-peak 1G
refused 2 'need a slow tier' --tier top=8M@0 --interleave 3:1
refused 2 'top is missing' --tier slow=8M@0
refused 2 'same NUMA node' --tier top=8M@0,slow=8M@0
refused 2 'at least 1M' --tier top=8M@0,slow=4K@1
refused 2 'not N:M' --tier top=8M@0,slow=8M@1 --interleave 3
refused 2 'on, off or' --tier top=8M@0,slow=8M@1 --promote maybe
refused 126 'NUMA node 1023 is none of this machine' \
	--tier top=8M@0,slow=8M@1023

# One tier: more pages than fit, all of them right.
timeout -k 5 110 "$AQUIFER" run --tier top=4M@0 --json -- "$PROGRAM" churn \
	2000 1 1 >"$TMP/out" 2>"$TMP/err" || fail "$(cat "$TMP/err")"
grep -q right "$TMP/out" || fail "not right"
grep '^{"local"' "$TMP/err" >"$TMP/report"
report 'd["local"] == 4 << 20 and d["loads"] > 0 and d["lost_pages"] == 0'
report 'd["resident_peak"] <= 4 << 20 and "promoted" not in d'

nodes=()
for node in /sys/devices/system/node/node[0-9]*; do
	! grep -q 'MemTotal: *[1-9]' "$node/meminfo" || nodes+=("${node##*node}")
done
if ((${#nodes[@]} == 1)); then
	refused 126 'one node only and so no slow tier' \
		--tier top=8M@0,slow=8M@1
	refused 126 'NUMA node 1 is none of this machine, which has one node' \
		--tier top=8M@1
	! grep -q slow "$TMP/err" || fail "no slow tier was asked for"
	exit 0
fi
timeout -k 5 110 "$AQUIFER" run --json --interleave 3:1 --tier \
	"top=24M@${nodes[0]},slow=24M@${nodes[1]}" -- "$PROGRAM" place 4000 \
	>"$TMP/out" 2>"$TMP/err" || fail "$(cat "$TMP/err")"
[[ ${nodes[*]:0:2} != "0 1" || $(<"$TMP/out") == "3000 1000" ]] ||
	fail "3:1 is $(cat "$TMP/out")"
