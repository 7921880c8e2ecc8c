# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # who sources it uses them
# Sourced by the control_disk* tests after control_lib.sh: a controller whose
# file is on a small disk of its own, a node, and what must go on whatever
# becomes of the disk.
[[ -n ${AQ_OWN_NET:-} ]] || skip "it may not mount anything"
DISK=/dev/shm/disk
mkdir "$DISK"
mount -t tmpfs -o size=4M tmpfs "$DISK" || skip "it may not mount anything"
chmod 0777 "$DISK"

port=$(free_port)

# start: a controller on that disk.
start() {
	: >"$TMP/c0"
	"$AQUIFER" control --name c0 --store "sqlite:$DISK/c.db" \
		--listen "127.0.0.1:$port" >"$TMP/c0" 2>>"$TMP/c0.err" &
	control=$!
	PIDS+=("$control")
}
start
wait_line "$TMP/c0" 1 >/dev/null
printf '[rack]\ncontrol = http://127.0.0.1:%s\n[memory m0]\nsize = 64M\n' "$port" \
	>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'

# refused WORDS: makes tenants until one is refused with these words; sets LAST.
made=0
refused() {
	for _ in {1..400}; do
		LAST=t$made
		made=$((made + 1))
		"$AQUIFER" tenant create "$LAST" --token-file "$TMP/$LAST.token" \
			>"$TMP/out" 2>"$TMP/err" && continue
		grep -Eq "$1" "$TMP/err" && return 0
	done
	fail "no change is refused with $1: $(<"$TMP/err")"
}

# goes_on NAME: what needs no change; the refused tenant is not there, and those
# before it are.
goes_on() {
	expect 0 "$AQUIFER" tenant ls --json
	json "$TMP/out" "'$1' not in [t['name'] for t in d['tenants']] and
		'first' in [t['name'] for t in d['tenants']]" >/dev/null
	expect 0 "$AQUIFER" node ls
	expect 0 "$AQUIFER" region stat mine
}
expect 0 "$AQUIFER" region create mine 1M
until_ok "$AQUIFER" tenant create first --token-file "$TMP/f.token"
