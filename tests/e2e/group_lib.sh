# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the group_* tests after coherent_lib.sh: unmodified programs of a
# group on two machines, whose cache servers start with them.

RUN_OPTIONS=()

# in_group MACHINE PROGRAM...: runs it there.
in_group() {
	at "$1"
	"${AT[@]}" timeout -k 5 120 "$AQUIFER" run --shared e2e \
		"${RUN_OPTIONS[@]}" -- "${@:2}"
}

# beside MACHINE OUTPUT PROGRAM...: the same, while the script goes on; sets PID.
beside() {
	at "$1"
	"${AT[@]}" timeout -k 5 120 "$AQUIFER" run --shared e2e \
		"${RUN_OPTIONS[@]}" -- "${@:3}" >"$TMP/$2" 2>&1 &
	PID=$!
	PIDS+=("$PID")
}

# segments_are NAMES: waits until the rack has these segments and no others.
segments_are() {
	for _ in {1..1200}; do
		expect 0 "$AQUIFER" shared list --json
		! json "$TMP/out" \
			"sorted(s['name'] for s in d['segments']) == '$1'.split()" \
			>/dev/null 2>&1 || return 0
		sleep 0.05
	done
	fail "not only $1: $(<"$TMP/out")"
}

# server_log: what cache servers said.
server_log() {
	cat "$TMP"/*/*:shared.log "$TMP"/*/*/*:shared.log 2>/dev/null || true
}
