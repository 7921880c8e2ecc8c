# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # who sources it uses them
# Sourced by the control_etcd* tests after control_lib.sh: an etcd of three and
# three controllers on it. Its files are where nothing waits for a disk, if that
# is this test's own place. Before that, ETCD_HOST may have an address for each
# member, and ETCD_ENTER a command that starts a member somewhere else.
need etcd
[[ -n ${ETCD_HOST[*]+set} ]] || ETCD_HOST=(127.0.0.1 127.0.0.1 127.0.0.1)
[[ -n ${ETCD_ENTER[*]+set} ]] || ETCD_ENTER=("" "" "")
export ETCD_DIR=$TMP
[[ -z ${AQ_OWN_NET:-} ]] || ETCD_DIR=/dev/shm
ETCD_CLIENT=() ETCD_PEER=() ETCD_PID=() CONTROL_PORT=() CONTROL_PID=()
for i in 0 1 2; do
	ETCD_CLIENT+=("http://${ETCD_HOST[$i]}:$(free_port)")
	ETCD_PEER+=("http://${ETCD_HOST[$i]}:$(free_port)")
	CONTROL_PORT+=("$(free_port)")
done
STORE=etcd:${ETCD_CLIENT[0]},${ETCD_CLIENT[1]},${ETCD_CLIENT[2]}
CONTROLLERS=http://127.0.0.1:${CONTROL_PORT[0]},http://127.0.0.1:${CONTROL_PORT[1]},http://127.0.0.1:${CONTROL_PORT[2]}

# etcd_start NUMBER: also again, after its end.
etcd_start() {
	# shellcheck disable=SC2086 # words of a command, or none
	${ETCD_ENTER[$1]} etcd --name "e$1" --data-dir "$ETCD_DIR/e$1" \
		--listen-client-urls "${ETCD_CLIENT[$1]}" \
		--advertise-client-urls "${ETCD_CLIENT[$1]}" \
		--listen-peer-urls "${ETCD_PEER[$1]}" \
		--initial-advertise-peer-urls "${ETCD_PEER[$1]}" \
		--initial-cluster "e0=${ETCD_PEER[0]},e1=${ETCD_PEER[1]},e2=${ETCD_PEER[2]}" \
		>>"$TMP/etcd$1.log" 2>&1 &
	ETCD_PID[$1]=$!
	PIDS+=("$!")
}

# control_start NUMBER
control_start() {
	: >"$TMP/c$1"
	"$AQUIFER" control --name "c$1" --store "$STORE" \
		--listen "127.0.0.1:${CONTROL_PORT[$1]}" >"$TMP/c$1" 2>"$TMP/c$1.err" &
	CONTROL_PID[$1]=$!
	PIDS+=("$!")
}

# leader: sets LEADER to the number of the one that leads, once one does.
leader() {
	local i
	for _ in {1..1200}; do
		for i in 0 1 2; do
			curl -sS -m 1 "http://127.0.0.1:${CONTROL_PORT[$i]}/v1/status" \
				>"$TMP/status" 2>/dev/null || continue
			grep -q '"leads":true' "$TMP/status" || continue
			LEADER=$i
			return 0
		done
		sleep 0.05
	done
	fail "nobody leads: $(cat "$TMP"/c?.err "$TMP"/etcd?.log | tail -30)"
}

# change PORT NAME: asks that controller for a tenant; prints the status.
change() {
	curl -sS -m 30 -o "$TMP/answer" -w '%{http_code}' \
		-H "Authorization: Bearer $(<"$RUNDIR/admin-token")" \
		-d "{\"name\":\"$2\"}" "http://127.0.0.1:$1/v1/tenants"
}

for i in 0 1 2; do
	etcd_start "$i"
done
for i in 0 1 2; do
	control_start "$i"
done
