# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the rack_* tests after lib.sh: a rack that ends with the test, and
# the application that talks to it (AQ_RACK_CLIENT, from meson).
: "${AQ_RACK_CLIENT:?run me through meson test}"
need_nic
unset AQUIFER_TOKEN
: >"$TMP/rack.ini"
export AQUIFER_CONFIG=$TMP/rack.ini
RUNDIR=$TMP/$AQUIFER_RACK_NAME

# Ends the rack, then does what lib.sh does, with the test's own exit code.
rack_cleanup() {
	local status=$?
	"$AQUIFER" down >/dev/null 2>&1 || true
	set +e
	(exit "$status")
	cleanup
}
trap rack_cleanup EXIT

# client SCENARIO...: in a sanitized build the library brings its runtime.
client() {
	env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} timeout -k 5 60 \
		"$AQ_RACK_CLIENT" "$@"
}

# expect_code WANT NAME OP ARGUMENT: one operation and the name of its error.
expect_code() {
	local want=$1 got
	shift
	got=$(client code "$@" 2>"$TMP/err") || fail "code $*: $(cat "$TMP/err")"
	[[ ${got% *} == "$want" ]] ||
		fail "$* gave $got instead of $want: $(cat "$TMP/err")"
}

# node_pid NAME: of a node that `aquifer up` started.
node_pid() {
	cut -d' ' -f1 "$RUNDIR/$1.pid"
}

# kill_node NAME: at once, and waits until nothing of it is left.
kill_node() {
	local pid
	pid=$(node_pid "$1")
	kill -KILL "$pid"
	# Who only waits for its parent to look has let everything go.
	for _ in {1..3000}; do
		grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$pid/status" ||
			return 0
		sleep 0.02
	done
	fail "$1 (process $pid) does not end"
}

# wait_line FILE NUMBER: until the file has that many lines; prints that one.
wait_line() {
	for _ in {1..1200}; do
		if (($(wc -l <"$1") >= $2)); then
			sed -n "$2p" "$1"
			return 0
		fi
		sleep 0.05
	done
	fail "no line $2 in $1: $(cat "$1")"
}

# tls_make NAME: an authority NAME-ca.pem, and a certificate of it for this
# machine: NAME.pem and NAME-key.pem. All in $TMP.
tls_make() {
	need openssl
	local ec=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
	{
		openssl req -x509 "${ec[@]}" -days 2 -subj "/CN=$1 authority" \
			-keyout "$TMP/$1-ca-key.pem" -out "$TMP/$1-ca.pem" &&
			openssl req "${ec[@]}" -subj /CN=localhost \
				-keyout "$TMP/$1-key.pem" -out "$TMP/$1.csr" &&
			openssl x509 -req -in "$TMP/$1.csr" -days 2 \
				-CA "$TMP/$1-ca.pem" -CAkey "$TMP/$1-ca-key.pem" \
				-CAcreateserial -out "$TMP/$1.pem" \
				-extfile <(echo subjectAltName=IP:127.0.0.1)
	} >"$TMP/err" 2>&1 || fail "openssl: $(<"$TMP/err")"
}

# count_macs FILE: connections' packets in a capture, and those with a MAC.
count_macs() {
	python3 - "$1" <<'EOF'
import struct, sys
data = open(sys.argv[1], 'rb').read()
at, packets, macs = 24, 0, 0
while at + 16 <= len(data):
    n = struct.unpack_from('<I', data, at + 8)[0]
    f = data[at + 16:at + 16 + n]
    at += 16 + n
    if f[12:14] == b'\x08\x00' and f[23] == 17 and f[42] < 0x20:
        packets += 1
        macs += f[50] >> 6 & 1
print(packets, macs)
EOF
}

# confined PID CAPABILITIES: what every thread of the process has.
confined() {
	local file seen=0
	for file in /proc/"$1"/task/*/status; do
		[[ -e $file ]] || continue
		grep -qx "NoNewPrivs:	1" "$file" || fail "$file: NoNewPrivs"
		grep -qx "CapEff:	$2" "$file" ||
			fail "$file: $(grep Cap "$file"), not $2"
		grep -qx "CapPrm:	$2" "$file" || fail "$file: CapPrm"
		case $(uname -m) in
		x86_64 | aarch64)
			grep -qx "Seccomp:	2" "$file" ||
				fail "$file: $(grep Seccomp: "$file")"
			;;
		esac
		if ((EUID == 0)); then
			grep -qx "CapBnd:	$2" "$file" ||
				fail "$file: $(grep CapBnd "$file"), not $2"
		fi
		((++seen))
	done
	((seen > 0)) || fail "no process $1"
}
