#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stress-ng's stressors of shared memory, semaphores and futexes, on one machine,
# in a group. With --verify they say what is not as it must be.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
need stress-ng
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
# shellcheck source=tests/e2e/group_lib.sh
source "$(dirname "$0")/group_lib.sh"

start_rack
cd "$TMP"
# stressor NAME OPTION...: two of them, for some operations.
stressor() {
	in_group a stress-ng --verify --metrics --no-rand-seed --timeout 20 \
		"--$1" 2 "${@:2}" >"$TMP/$1" 2>&1 ||
		fail "$1: $(<"$TMP/$1") $(server_log)"
	grep -q 'successful run completed' "$TMP/$1" || fail "$(<"$TMP/$1")"
	! grep -qiE 'fail:|skipped' "$TMP/$1" || fail "$(<"$TMP/$1")"
}
stressor shm --shm-ops 4 --shm-bytes 1M --shm-objs 4
stressor shm-sysv --shm-sysv-ops 4 --shm-sysv-bytes 1M --shm-sysv-segs 4
# This one always waits for its time to be over.
stressor sem --sem-ops 2000 --timeout 2
stressor futex --futex-ops 2000
segments_are words
directory_is_sound
