#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and shows Aquifer at work on this machine:
# Debian's own RDMA programs, unmodified, on a NIC in user space.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=tools/setup.sh
source tools/setup.sh

work=$(mktemp -d)
rack=0
pids=()
cleanup() {
	local status=$? pid
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	((rack)) && aquifer down >/dev/null 2>&1
	rm -rf "$work"
	exit "$status"
}
trap cleanup EXIT

# aquifer ARGUMENT...: in the rack of this demonstration, which has a controller.
aquifer() {
	AQUIFER_CONFIG=$work/rack.ini AQUIFER_RACK_NAME=run-sh \
		AQUIFER_STATEDIR=$work/state build/aquifer "$@"
}

# pair PROGRAM OPTION...: two processes, one of them the passive side. The
# client's output is in $work/client.
port=18600
pair() {
	local server
	port=$((port + 1))
	build/aquifer exec --nic soft -- timeout 60 "$@" -p "$port" \
		>"$work/server" 2>&1 &
	server=$!
	pids+=("$server")
	for _ in {1..100}; do
		if build/aquifer exec --nic soft -- timeout 60 "$@" \
			-p "$port" 127.0.0.1 >"$work/client" 2>&1; then
			wait "$server"
			return 0
		fi
		# The passive side may not listen yet; a real failure ends it.
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	echo "$* failed:" >&2
	cat "$work/server" "$work/client" >&2
	return 1
}

# perf TITLE PROGRAM OPTION...: the line of results below perftest's header.
perf() {
	local title=$1
	shift
	pair "$@" -F
	printf '  %-44s ' "$title"
	awk '/#bytes/ { header = $0; getline; print_it(header, $0) }
	function print_it(h, v,   n, a) {
		n = split(v, a, " ")
		if (h ~ /BW/)
			printf "%d B: %s MiB/s, %s million/s\n", a[1], a[4], a[5]
		else
			printf "%d B: %s us typical, %s us 99 %%\n", a[1],
				a[5], a[n - 1]
	}' "$work/client"
}

# far GROUP: one application, every way to its far records, as a list. Few and
# short rounds: to look at, not to judge by.
far() {
	build/aquifer bench offload --json --busy --rounds 3 --window 50 \
		--records 500000 --store 64 --only "$1" >"$work/far"
	python3 - "$1" "$work/far" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[2]))
for row in run["rows"]:
    if row["group"] != sys.argv[1] or "_timed" in row["name"]:
        continue
    if "error" in row:
        print("  %-58s %s" % (row["name"], row["error"]))
        continue
    print("  %-58s %9.0f /s  %5.2f frames each" % (
        row["what"], row["value"], row["packets_per_op"]))
PYTHON
}

need_packages build run
echo "== building"
configure build >/dev/null
ninja -C build product | tail -n 1

echo
echo "== this machine (aquifer doctor)"
build/aquifer doctor | grep -E '^(ok|warn|missing) |^[0-9]' || true

echo
echo "== the NIC (aquifer info)"
build/aquifer info --nic soft |
	grep -E '^(version|nic|verbs_libdir|device|  name|  gids|  queue_pairs)' || true

echo
echo "== unmodified programs of Debian, two processes each"
pair ibv_rc_pingpong -g 1 -c -n 10000
printf '  %-44s %s\n' "ibv_rc_pingpong, every byte checked" \
	"$(grep -E 'iters' "$work/client")"
perf "READ latency (ib_read_lat)" ib_read_lat -s 64 -n 20000
perf "WRITE latency (ib_write_lat)" ib_write_lat -s 64 -n 20000
perf "fetch-and-add latency (ib_atomic_lat)" ib_atomic_lat -n 20000
perf "READ bandwidth (ib_read_bw)" ib_read_bw -s 65536 -n 5000
perf "WRITE bandwidth (ib_write_bw)" ib_write_bw -s 65536 -n 5000
echo
echo "== the same NIC in the simulator: loss, duplicates, reordering, corruption"
printf '  '
build/aquifer sim verbs --seeds 20 | grep ' runs, '

echo
echo "== a hash table with 95 % of its records in far memory: probes"
far probe64
echo
echo "== a key-value store whose log is mostly in far memory: reads, YCSB-C Zipfian"
far hlog64

echo
echo "== a rack of its own, with a controller: two memory nodes, a region, a file"
printf '[rack]\ncontrol = c0\n[memory m0]\nsize = 128M\n[memory m1]\nsize = 128M\n' \
	>"$work/rack.ini"
rack=1
aquifer up >/dev/null
aquifer region create demo 64M >/dev/null
aquifer ns mkdir /demo --keep >/dev/null
for _ in {1..100}; do
	# A node may not have said yet that it lends blocks.
	aquifer file append /demo/readme README.md --block 64K >/dev/null 2>&1 && break
	sleep 0.1
done
aquifer status | sed 's/^/  /'
echo
echo "  its page, while this rack runs:"
aquifer dashboard | sed 's/^/  /'
echo
echo "== a job: MapReduce counts the words of the documents, by files in far memory"
PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 AQUIFER_LIB=build/libaquifer.so.1 \
	AQUIFER_CONFIG=$work/rack.ini AQUIFER_RACK_NAME=run-sh \
	AQUIFER_STATEDIR=$work/state /usr/bin/python3 examples/word_count.py README.md docs/*.md
aquifer ns tree /word_count | sed 's/^/  /'
if [[ -t 0 && -t 1 ]]; then
	read -r -p "  Enter ends the rack. " || true
fi

echo
echo "Go on: docs/tutorial.md (ten minutes), build/aquifer help"
