#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/two-machines.md does what it says, in its own words: each of its machines
# is a network and a file system of its own, with a cable between them.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
need ip nft openssl ss nsenter
need_nic
((EUID == 0)) || skip "two machines need root"
[[ -n ${AQ_OWN_NET:-} ]] || skip "no namespaces here"

# machine NAME ADDRESS: a process that holds its namespaces; its pid is PID_NAME.
machine() {
	local etc=$TMP/$1-etc pid
	cp -a /etc "$etc"
	rm -rf "$etc/aquifer"
	mkdir "$etc/aquifer" "$TMP/$1-home"
	# shellcheck disable=SC2016 # for the inner shell
	unshare --net --mount sh -c 'mount --bind "$1" /etc &&
		mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib &&
		mount -t tmpfs tmpfs /dev/shm && ip link set lo up &&
		: >"$1/ready" && exec sleep 900' \
		sh "$etc" &
	pid=$!
	PIDS+=("$pid")
	for _ in {1..1200}; do
		[[ -e $etc/ready ]] && break
		kill -0 "$pid" 2>/dev/null || skip "no namespaces here"
		sleep 0.05
	done
	[[ -e $etc/ready ]] || fail "$1 does not start"
	eval "PID_$1=$pid"
}
PID_memory='' PID_compute=''
machine memory
machine compute
veth eth0 "$PID_memory" eth0 "$PID_compute" || skip "no veth here"
nsenter -t "$PID_memory" -n ip addr add 192.0.2.1/24 dev eth0
nsenter -t "$PID_compute" -n ip addr add 192.0.2.2/24 dev eth0
nsenter -t "$PID_memory" -n ip link set eth0 up
nsenter -t "$PID_compute" -n ip link set eth0 up
nsenter -t "$PID_memory" -n nft list ruleset >/dev/null 2>&1 || skip "no nft"

# on MACHINE COMMAND: what somebody types there. scp(1) has a stand-in, because
# there is no sshd.
mkdir "$TMP/bin"
ln -s "$AQUIFER" "$TMP/bin/aquifer"
cat >"$TMP/bin/scp" <<-SCP
	#!/bin/sh
	# scp -p FILE... 192.0.2.2:DIRECTORY
	test "\$1" = -p && shift
	for last; do :; done
	for file; do
		test "\$file" = "\$last" || cp -p "\$file" \
			"$TMP/compute\$(echo "\${last#192.0.2.2:}" | sed s,^/etc,-etc,)"
	done
SCP
chmod +x "$TMP/bin/scp"
on() {
	local pid=PID_$1
	env -u AQUIFER_RUNDIR -u AQUIFER_RACK_NAME -u AQUIFER_CONFIG \
		HOME="$TMP/$1-home" PATH="$TMP/bin:$PATH" \
		nsenter -t "${!pid}" -n -m timeout -k 5 60 bash -ec "$2" \
		>"$TMP/out" 2>&1 </dev/null
}

# What was started there ends with the test, also where the page ends early.
end_machines() {
	local status=$?
	on memory "aquifer down" || true
	set +e
	(exit "$status")
	cleanup
}
trap end_machines EXIT

# One file per block, numbered, with the language as its ending.
mkdir "$TMP/page"
python3 - "$AQ_SOURCE/docs/two-machines.md" "$TMP/page" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
for i, (kind, block) in enumerate(re.findall(r'^```(\w*)\n(.*?)^```$', text, re.S | re.M)):
    open('%s/%02d.%s' % (sys.argv[2], i, kind), 'w').write(block)
PY

# run BLOCK: its first line says where, and whether it shall fail.
run() {
	local head rest where
	head=$(head -1 "$1")
	rest=$(tail -n +2 "$1")
	where=$(sed -n 's/^# on \([a-z]*\).*/\1/p' <<<"$head")
	[[ $where == memory || $where == compute ]] || fail "where is '$head'?"
	if [[ $head == *"and fails" ]]; then
		! on "$where" "$rest" || fail "this does not fail: $rest"
	else
		on "$where" "$rest" || fail "$where: $rest: $(<"$TMP/out")"
	fi
	echo "ok: on $where: $(head -1 <<<"$rest")"
}

for block in "$TMP/page"/*; do
	case $block in
	*.ini)
		where=$(sed -n '1s/^# .* on //p' "$block")
		path=$(sed -n '1s/^# \([^ ]*\) on .*/\1/p' "$block")
		[[ $path == /etc/aquifer/* ]] || fail "$block: which file?"
		cp "$block" "$TMP/$where-etc${path#/etc}"
		;;
	*.sh) run "$block" ;;
	*.text)
		# What the command before it has said.
		grep -qF "$(<"$block")" "$TMP/out" ||
			fail "not '$(<"$block")' but: $(<"$TMP/out")"
		;;
	*) fail "nobody runs $block" ;;
	esac
done
