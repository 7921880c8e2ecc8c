#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In the guest: tier_guest.sh AQUIFER PROGRAM SCENARIO. Two NUMA nodes, of which
# the second has no processors, and a rack of the guest's own. All files are in
# its memory, because QEMU's devices do not reach what is behind CXL.
set -euo pipefail

AQUIFER=$1 PROGRAM=$2 SCENARIO=$3
TMP=$(mktemp -d /tmp/tier.XXXXXX)
export AQUIFER_RUNDIR=$TMP AQUIFER_RACK_NAME=tier AQUIFER_CONFIG=$TMP/rack.ini
trap '"$AQUIFER" down >/dev/null 2>&1 || true; rm -rf "$TMP"' EXIT

fail() {
	echo "FAIL: $*"
	cat "$TMP/err" 2>/dev/null || true
	exit 1
}

# wait_for COMMAND...: until it succeeds; its patience is that of the test.
wait_for() {
	until "$@"; do
		sleep 0.2
	done
}

# rack SIZE...: a memory node of each size.
rack() {
	local n=0 size
	for size; do
		printf '[memory m%d]\nsize = %s\n' "$n" "$size"
		n=$((n + 1))
	done >"$AQUIFER_CONFIG"
	"$AQUIFER" up >"$TMP/up" 2>&1 || fail "$(cat "$TMP/up")"
}

# tiers OPTIONS -- WORDS...: the program; its report is in $TMP/report.
tiers() {
	local options=() status=0
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	shift
	"$AQUIFER" run --json "${options[@]}" -- "$PROGRAM" "$@" >"$TMP/out" \
		2>"$TMP/err" || status=$?
	grep '^{"local"' "$TMP/err" | tail -n 1 >"$TMP/report" || true
	return "$status"
}

# report NAME: a number of the last report.
report() {
	sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$TMP/report"
}

# ---- where pages are --------------------------------------------------------

# place RATIO SIZE PAGES: as many pages on each node as the ratio says, within
# one in 1,000. SIZE: of each tier.
place() {
	local n=${1%:*} m=${1#*:} top slow off
	tiers --tier "top=$2@0,slow=$2@1" --interleave "$1" -- place "$3" ||
		fail "place $1"
	read -r top slow <"$TMP/out"
	echo "$1: $top and $slow of $3 pages"
	((top + slow == $3)) || fail "not all pages are there"
	off=$((top - $3 * n / (n + m)))
	((off * off * 1000000 <= $3 * $3)) || fail "not $1"
}

scenario_place() {
	local ratio top slow
	rack 64M
	for ratio in 3:1 1:1 1:3 7:5 1:0 0:1; do
		place "$ratio" 24M 3000
	done
	# Without a ratio top is first, and what has no room there is slow.
	tiers --tier top=8M@0,slow=24M@1 --promote off -- place 3000 ||
		fail "place without a ratio"
	grep -q '"guard": "off: nothing is promoted"' "$TMP/report" ||
		fail "not reported"
	read -r top slow <"$TMP/out"
	echo "none: $top and $slow of 3000 pages"
	((top + slow == 3000 && top <= 2048 && top >= 1536)) || fail "not so"
	[[ $(report promoted) == 0 && $(report loads) == 0 ]] || fail "moved"
	# While pages are promoted, the top node has room for new ones.
	tiers --tier top=8M@0,slow=24M@1 -- newest 3000 || fail "new pages"
	echo "new pages: $(<"$TMP/out"), demoted $(report demoted)"
}

# ---- pages that move --------------------------------------------------------

# moves OPTIONS -- WORDS...: all bytes are right, and how pages moved.
moves() {
	tiers "$@" || fail "$* ended with $?"
	grep -q right "$TMP/out" || fail "$*"
	echo "$*: promoted $(report promoted) demoted $(report demoted)" \
		"sampled $(report sampled) loads $(report loads) stored" \
		"$(report stored)"
	[[ $(report lost_pages) == 0 ]] || fail "lost pages"
}

# All of it is wanted all the time, so that all of it moves, and the program forks
# meanwhile; for as many runs as it takes to move so many pages. The slow tier is
# larger than what is there, because that is what samples are taken by.
scenario_churn() {
	local moved=0
	rack 64M
	while ((moved < MOVES)); do
		moves --tier top=8M@0,slow=192M@1 --promote 1024 -- \
			churn 6000 1 40 fork
		(($(report forks))) || fail "no forks"
		((moved += $(report promoted) + $(report demoted)))
		((moved)) || fail "nothing moves"
	done
	echo "moved $moved"
}

# Three tiers, of which far memory is one.
scenario_three() {
	rack 64M
	moves --tier top=4M@0,slow=6M@1 --promote 1024 -- churn 3500 4 8
	(($(report promoted) && $(report demoted) && $(report stored) &&
		$(report loads))) || fail "not all of it happened"
}

scenario_fork() {
	rack 64M
	moves --tier top=4M@0,slow=12M@1 --promote 1024 -- churn 2500 1 8 fork
	(($(report forks) && $(report promoted) && $(report demoted))) ||
		fail "not all of it happened"
}

# A memory node is killed: what was there is an error, never zeros; and with a
# second copy nothing is lost at all. A node that is killed hangs up, so it is
# known at once; the other one may stand still for long in a slow guest.
scenario_lost() {
	local status=0 copies run
	for copies in 1 2; do
		rack 64M 64M
		"$AQUIFER" run --tier top=4M@0,slow=4M@1 --copies "$copies" \
			--patience 60 -- "$PROGRAM" loop 5000 >"$TMP/out" \
			2>"$TMP/err" &
		run=$!
		wait_for grep -q filled "$TMP/out"
		kill -9 "$(cut -d' ' -f1 "$TMP/tier/m0.pid")"
		if ((copies == 1)); then
			wait "$run" || status=$?
			# 3 would be bytes that are not right.
			((status == 128 + 7)) || fail "ended with $status"
			grep -q 'm0 is lost' "$TMP/err" || fail "not told"
		else
			wait_for grep -q 'm0 is lost' "$TMP/err"
			sleep 5
			kill -TERM "$run" 2>/dev/null || fail "it ended"
			wait "$run" || status=$?
			((status == 128 + 15)) || fail "ended with $status"
		fi
		echo "$copies copies: status $status"
		"$AQUIFER" down >/dev/null 2>&1 || true
	done
}

# ---- the guard --------------------------------------------------------------

# A kernel without counters of memory's bandwidth; so a file stands for one, with
# which the top node is busy or not.
scenario_guard() {
	local counter=/sys/fs/resctrl/mon_data/mon_L3_00/mbm_local_bytes
	local rate counting promoted=()
	rack 64M
	mount -t tmpfs tmpfs /sys/fs
	mkdir -p "$(dirname "$counter")"
	# Far from 75 % of the peak: who counts may stand still and catch up.
	for rate in 100000 100000000000; do
		"$PROGRAM" count "$counter" "$rate" &
		counting=$!
		wait_for test -s "$counter"
		moves --tier top=4M@0,slow=96M@1 --top-peak 100M -- \
			churn 3000 1 20
		kill "$counting"
		wait "$counting" || true
		promoted+=("$(report promoted)")
		grep -q '"guard": "on"' "$TMP/report" || fail "no guard"
	done
	umount /sys/fs
	# Without a counter: told, and pages are promoted.
	moves --tier top=4M@0,slow=96M@1 --top-peak 100M -- churn 3000 1 5
	grep -q 'top-peak has no effect' "$TMP/err" || fail "not told"
	grep -q '"guard": "off: no counter' "$TMP/report" || fail "not reported"
	(($(report promoted))) || fail "nothing was promoted"
	# Half as many: the file may stand still while the guest does.
	((promoted[1] * 2 < promoted[0])) || fail "the guard is open"
}

# ---- memory behind CXL ------------------------------------------------------

# Makes a NUMA node of the device. $EXTRA: the modules for it, in order.
scenario_cxl() {
	local module
	while read -r module; do
		insmod "$EXTRA/$module" || fail "no module $module"
	done <"$EXTRA/order"
	wait_for test -e /sys/bus/cxl/devices/mem0
	cxl create-region -m -d decoder0.0 -w 1 -g 256 mem0 >"$TMP/cxl" 2>&1 ||
		fail "$(cat "$TMP/cxl")"
	wait_for test -e /sys/bus/nd/devices/region0
	ndctl create-namespace -m devdax -a 2M -t pmem >"$TMP/cxl" 2>&1 ||
		fail "$(cat "$TMP/cxl")"
	daxctl reconfigure-device --mode=system-ram dax0.0 >"$TMP/cxl" 2>&1 ||
		fail "$(cat "$TMP/cxl")"
	head -n 1 /sys/devices/system/node/node1/meminfo
}

# more_on_node WHAT PROCESS: the process has pages of the memory node, of which
# none may be elsewhere, and more of them than were counted before.
more_on_node() {
	local pages
	python3 - "$2" "$POOL" <<-'PY' >"$TMP/pages" || fail "$1: not on node $POOL"
		import re, sys
		pages = {}
		for line in open(f"/proc/{sys.argv[1]}/numa_maps"):
		    if "aquifer-grant" not in line:
		        continue
		    assert f"bind:{sys.argv[2]} " in line, line
		    for node, n in re.findall(r" N(\d+)=(\d+)", line):
		        pages[node] = pages.get(node, 0) + int(n)
		assert set(pages) == {sys.argv[2]}, pages
		print(pages[sys.argv[2]])
	PY
	pages=$(<"$TMP/pages")
	((pages > PAGES)) || fail "$1: $pages pages, no more than $PAGES"
	echo "$1: $((pages - PAGES)) pages on node $POOL"
	PAGES=$pages
}

# A memory node whose pool lies behind CXL: everything works on it as on any
# node, and all of it is there. $HLOG: the store on a hybrid log.
scenario_pool() {
	local pid node
	POOL=${POOL:-1} PAGES=0
	printf '[memory cxl0]\nsize = 96M\nnuma = %s\n' "$POOL" \
		>"$AQUIFER_CONFIG"
	"$AQUIFER" up >"$TMP/up" 2>&1 || fail "$(cat "$TMP/up")"
	node=$(cut -d' ' -f1 "$TMP/tier/cxl0.pid")
	"$AQUIFER" kv create users 1000 >"$TMP/out" || fail "kv create"
	"$AQUIFER" kv put users ann 42 >"$TMP/out" || fail "kv put"
	[[ $("$AQUIFER" kv get users ann) == 42 ]] || fail "kv get"
	"$AQUIFER" kv check users >"$TMP/out" || fail "$(cat "$TMP/out")"
	more_on_node kv "$node"
	"$AQUIFER" index create names --memory 4M >"$TMP/out" ||
		fail "index create"
	"$AQUIFER" index fill names --count 300 >"$TMP/out" ||
		fail "index fill"
	"$AQUIFER" index put names bob 7 >"$TMP/out" || fail "index put"
	[[ $("$AQUIFER" index get names bob) == 7 ]] || fail "index get"
	"$AQUIFER" index check names >"$TMP/out" || fail "$(cat "$TMP/out")"
	more_on_node index "$node"
	"$HLOG" sync load 500 >"$TMP/out" 2>"$TMP/err" &
	pid=$!
	wait_for grep -q synced "$TMP/out"
	kill -9 "$pid"
	wait "$pid" 2>/dev/null || true
	"$HLOG" sync check 500 >"$TMP/out" 2>"$TMP/err" || fail "hlog"
	grep -q 'sound 500' "$TMP/out" || fail "hlog: $(cat "$TMP/out")"
	more_on_node hlog "$node"
	"$AQUIFER" run --local 2M -- "$PROGRAM" loop 1500 >"$TMP/out" \
		2>"$TMP/err" &
	pid=$!
	wait_for grep -q filled "$TMP/out"
	# The pager writes to its own mapping. It has 2 of 5.9 MiB here.
	PAGES=900
	more_on_node run "$(pgrep -P "$pid" aquifer-pager)"
	kill "$pid"
	wait "$pid" || true
	moves --local 2M -- churn 1500 1 1
}

# zipf READS OPTIONS... [settle]: sets COST, the median of the rounds' time for
# a read, 1,000 being that of a page beside the processor; TOP, of 1,000 reads
# those of pages on the top node; and HERE, those of pages on any node.
zipf() {
	local reads=$1 ns words=()
	shift
	[[ ${*: -1} != settle ]] || words=(settle)
	tiers "${@:1:$# - ${#words[@]}}" -- zipf 16000 "$reads" "${words[@]}" ||
		fail "$*"
	sort -n -k 2 "$TMP/out" | sed -n 8p >"$TMP/median"
	read -r ns COST TOP HERE <"$TMP/median"
	echo "$*: cost $COST ($(sort -n -k 2 "$TMP/out" | cut -d' ' -f2 |
		tr '\n' ' ')), $ns ns each, $TOP of 1000 on top, $HERE here," \
		"promoted $(report promoted), demoted $(report demoted)"
}

# Few pages are wanted often: all top >= promoted > 3:1 > 1:1 > 1:3 > far, by
# medians of the rounds' times. Only where the slow node really is slow.
scenario_zipf() {
	local ratio last
	rack 160M
	zipf 32000 --tier top=96M@0,slow=96M@1 --interleave 1:0
	((TOP == 1000)) || fail "not all are on top"
	last=$COST
	# Less memory on top than 3:1 has there. A fault of an emulated processor
	# takes as long as ten slow pages, so few samples are taken: as many as
	# a small slow tier has.
	zipf 24000 --tier top=46M@0,slow=40M@1 settle
	((COST >= last)) || fail "quicker than all on top"
	for ratio in 3:1 1:1 1:3; do
		last=$COST
		zipf 4800 --tier top=96M@0,slow=96M@1 --interleave "$ratio"
		((COST > last)) || fail "not slower than what is above"
	done
	last=$COST
	zipf 800 --local 8M
	((COST > last)) || fail "not slower than what is above"
}

# ---- the probe --------------------------------------------------------------

# `tier probe` finds both nodes and tells the slower one: by what the firmware
# says where it is slow by name only, by its bandwidth where it really is. The
# latency of an emulated processor is mostly its own.
scenario_probe() {
	env -u AQUIFER_CONFIG "$AQUIFER" tier probe --mix 1:0 --threads 1 --json \
		>"$TMP/probe" 2>"$TMP/err" || fail "probe"
	python3 - "$TMP/probe" <<-'PY' || fail "$(cat "$TMP/probe")"
		import json, sys
		d = json.load(open(sys.argv[1]))
		tiers = {t["node"]: t for t in d["tiers"] if t["way"] == "numa"}
		for n, t in sorted(tiers.items()):
		    print("node", n, t.get("error") or (t["idle_ns"], t["peak_gbs"]), t["system"])
		top, slow = tiers[0], tiers[1]
		assert top["system"]["has_cpus"] and not slow["system"]["has_cpus"]
		assert slow["system"]["cpu_node"] == 0
		assert slow["system"]["distance"] > top["system"]["distance"]
		if "hmat" in top["system"]:
		    a, b = top["system"]["hmat"], slow["system"]["hmat"]
		    assert a["read_ns"] < b["read_ns"] and a["read_mbs"] > b["read_mbs"]
		else:
		    assert top["bandwidth"][0]["gbs"] > 2 * slow["bandwidth"][0]["gbs"] > 0
	PY
}

"scenario_$SCENARIO"
