#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What programs do with memory (threads, fork, mremap, madvise, system calls on
# buffers, signals), with a quarter of it here and every byte checked.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
CLIENT=$1

# Two threads of the pager, who would not both work on a busy machine.
FAR_OPTIONS=(--pager-threads 2)
for play in random threads words maps reserved calls signals unseen fork; do
	far 2M "$CLIENT" "$play" 8 >"$TMP/out" ||
		fail "$play: $? $(cat "$TMP/err")"
	[[ $(cat "$TMP/out") == ok ]] || fail "$play: $(cat "$TMP/out")"
	report 'd["loads"] + d["prefetched"] > 500 and d["stored"] > 500'
	report 'd["lost_pages"] == 0'
	report 'd["far_peak"] >= d["heap_peak"] // 2'
	# Pages shared after fork count in each process.
	if [[ $play == fork ]]; then
		report 'd["forks"] == 6 and d["processes"] == 7'
	# Pages dropped behind its back count until it finds that out.
	# The kernel holds a batch of pages for a moment now and then, so they stay.
	elif [[ $play != unseen ]]; then
		report 'd["resident_peak"] <= d["local"] * 5 // 4'
	fi
	echo "ok: $play"
done
FAR_OPTIONS=()

# A stream is a stream, forwards and backwards, wherever its pages are.
far 4M "$CLIENT" linear 32 >"$TMP/out" || fail "linear: $? $(cat "$TMP/err")"
[[ $(tail -1 "$TMP/out") == ok ]] || fail "linear: $(cat "$TMP/out")"
report 'd["prefetched"] > 10000 and d["loads"] < d["prefetched"] // 32'
echo "ok: linear"

# On one core: pages come and go by one thread of the pager.
core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
for play in random threads fork; do
	(
		taskset -cp "$core" $BASHPID >/dev/null
		far 2M "$CLIENT" "$play" 4 >"$TMP/out" ||
			fail "$play on one core: $? $(cat "$TMP/err")"
	)
	[[ $(cat "$TMP/out") == ok ]] || fail "$play: $(cat "$TMP/out")"
	report 'd["loads"] + d["prefetched"] > 100 and d["lost_pages"] == 0'
done
echo "ok: one core"

# What the kernel says: of 32 MiB no more than 4 and the program's own are here.
start_loop 4M 32
pid=$(pgrep -P "$RUN" run_client)
for _ in {1..10}; do
	anon=$(awk '/^RssAnon/ { print $2 }' "/proc/$pid/status")
	((anon < 4096 + 1024)) || fail "$anon KiB are resident"
	sleep 0.05
done
echo "ok: resident"
