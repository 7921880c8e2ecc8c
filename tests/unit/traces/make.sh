#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the traces of test_tor_replay anew, for when a program of the switch
# rightly answers in another way. usage: make.sh BUILD_DIR
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
AQUIFER_RUNDIR=$(mktemp -d)
export AQUIFER=$build/aquifer AQUIFER_RUNDIR AQUIFER_RACK_NAME=trace-$$
export AQUIFER_NIC_PORT=switch:s1

# trace NAME "CLIENTS OPERATIONS [PROGRAM SWITCH]" SWITCH_OPTION...
trace() {
	local name=$1 words=$2 pid
	shift 2
	: >"$AQUIFER_RUNDIR/said"
	"$AQUIFER" switch --name s1 --trace "$here/$name.trace" "$@" \
		>"$AQUIFER_RUNDIR/said" &
	pid=$!
	for _ in {1..200}; do
		[[ ! -s $AQUIFER_RUNDIR/said ]] || break
		sleep 0.05
	done
	# shellcheck disable=SC2086 # several words
	timeout 60 "$build/tests/e2e/switch_atomics" $words
	kill -TERM "$pid"
	wait "$pid"
}

trace forward "2 10"
trace swordbox "3 12 swordbox s1" --program swordbox
trace swordbox_loss "3 12 swordbox s1" \
	--program fault:loss=2%,dup=3%,reorder=3%,seed=2 --program swordbox \
	--program fault:loss=2%,dup=2%,seed=3
trace steer "3 12 steer s1" --program steer
rm -r "$AQUIFER_RUNDIR"
