#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Doctor warns about what is open, says it in JSON too, and is content again
# when it is shut.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
export AQUIFER_CONFIG=$TMP/rack.ini SYSTEMD_UNIT_PATH=$TMP/units:$TMP/none
RUNDIR=$TMP/$AQUIFER_RACK_NAME
mkdir "$TMP/units"
(umask 077 && : >"$TMP/rack.ini")

# state CHECK WANT [WORDS]: and what it found has the words.
state() {
	expect 0 "$AQUIFER" doctor --json
	json "$TMP/out" "[c['state'] for c in d['checks']
	    if c['name'] == '$1'] == ['$2']" >/dev/null ||
		fail "$1 is not $2: $(grep -A3 "\"$1\"" "$TMP/out")"
	[[ $# -lt 3 ]] || json "$TMP/out" "[c for c in d['checks']
	    if c['name'] == '$1' and '$3' in c['found'] and c['fix']]" \
		>/dev/null || fail "$1 does not say $3: $(cat "$TMP/out")"
}

# wait_word FILE: until a daemon has said that it is ready.
wait_word() {
	for _ in {1..200}; do
		[[ -s $1 ]] && return 0
		sleep 0.05
	done
	fail "nothing in $1"
}

for name in confinement udp-buffers; do
	expect 0 "$AQUIFER" doctor --json
	json "$TMP/out" "'$name' in [c['name'] for c in d['checks']]" \
		>/dev/null || fail "no check $name"
done
for name in runtime-directory-mode secret-files tls units; do
	state "$name" ok
done

# TLS: in the file, then of a process; loopback is nobody else's.
printf '[memory a]\nlisten = 127.0.0.1:7\n[engine b]\nlisten = [::1]:8\n' \
	>"$TMP/rack.ini"
state tls ok
printf '[memory a]\nlisten = 0.0.0.0:7000\n' >"$TMP/rack.ini"
state tls warn '[memory a] on 0.0.0.0:7000'
printf '[memory a]\nlisten = 0.0.0.0:7000\ntls_cert = c\ntls_key = k\n' \
	>"$TMP/rack.ini"
state tls ok
: >"$TMP/rack.ini"
"$AQUIFER" memory --size 8M --listen 0.0.0.0:0 --insecure >"$TMP/node" 2>&1 &
PIDS+=("$!")
node=$!
wait_word "$TMP/node"
state tls warn "memory (process $node) on 0.0.0.0:0"

# A gateway: without a password, then with one.
"$AQUIFER" redis --bind 0.0.0.0 --port 0 --capacity 64 --values 1M \
	--protected-mode no \
	>"$TMP/open" 2>&1 &
PIDS+=("$!")
gateway=$!
wait_word "$TMP/open"
state gateway-password warn "process $gateway on 0.0.0.0"
kill -TERM "$gateway"
wait "$gateway" || fail "the gateway does not end well"
echo secret >"$TMP/password"
"$AQUIFER" redis --bind 0.0.0.0 --port 0 --password-file "$TMP/password" \
	>"$TMP/shut" 2>&1 &
PIDS+=("$!")
wait_word "$TMP/shut"
expect 0 "$AQUIFER" doctor --json
! grep -q "process $! on" "$TMP/out" || fail "it has a password"

# Files. A node made its tokens, so they are as they should be.
state secret-files ok
chmod 644 "$RUNDIR/admin-token"
state secret-files warn "$RUNDIR/admin-token"
chmod 600 "$RUNDIR/admin-token"
chmod 666 "$TMP/rack.ini"
state secret-files warn 'others can write it'
chmod 600 "$TMP/rack.ini"
: >"$TMP/key.pem"
chmod 640 "$TMP/key.pem"
printf '[memory a]\ntls_key = %s\n' "$TMP/key.pem" >"$TMP/rack.ini"
state secret-files warn "$TMP/key.pem"
: >"$TMP/rack.ini"
state secret-files ok
chmod 755 "$RUNDIR"
state runtime-directory-mode warn 0755
chmod 700 "$RUNDIR"

# Units: ours, an old one, and one that was opened by a drop-in.
for role in memory engine switch redis; do
	cp "$AQ_SOURCE/dist/systemd/aquifer-$role@.service.in" \
		"$TMP/units/aquifer-$role@.service"
done
state units ok
printf '[Service]\nNoNewPrivileges=yes\n' >"$TMP/units/aquifer-old.service"
state units warn 'aquifer-old.service runs as root'
printf '[Service]\nUser=aquifer\n' >"$TMP/units/aquifer-old.service"
state units warn 'may gain privileges'
rm "$TMP/units/aquifer-old.service"
mkdir "$TMP/units/aquifer-memory@.service.d"
printf '[Service]\nUser=root\n' >"$TMP/units/aquifer-memory@.service.d/x.conf"
state units warn 'aquifer-memory@.service runs as root'

# People read the same.
expect 0 "$AQUIFER" doctor
grep -q '^warn *units .*runs as root' "$TMP/out" || fail "$(<"$TMP/out")"
