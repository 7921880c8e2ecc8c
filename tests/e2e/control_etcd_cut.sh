#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An etcd of three whose members are each in a network namespace, and are cut
# off: packets vanish, and connections stay open. Without one member, also etcd's
# own leader, changes go on; without two they are refused with words while reads
# and the data path go on; and all is well when the packets come through again.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
need nft etcd
[[ -n ${AQ_OWN_NET:-} ]] || skip "it may not make network namespaces"

# A bridge with a machine for each member; controllers and nodes are at .9.
ip link add bridge type bridge || skip "no bridge here"
ip addr add 10.78.0.9/24 dev bridge
ip link set bridge up
ETCD_HOST=() ETCD_ENTER=()
for i in 0 1 2; do
	unshare --net sleep infinity &
	pid=$!
	PIDS+=("$pid")
	until_ok sh -c "[ \$(readlink /proc/$pid/ns/net) != \$(readlink /proc/$$/ns/net) ]"
	ip link add "e$i" type veth peer name eth0 netns "$pid" || skip "no veth here"
	ip link set "e$i" master bridge up
	nsenter --target "$pid" --net sh -c "ip link set lo up &&
		ip addr add 10.78.0.1$i/24 dev eth0 && ip link set eth0 up"
	ETCD_HOST+=("10.78.0.1$i")
	ETCD_ENTER+=("nsenter --target $pid --net")
done

# cut NUMBER: nothing reaches it or leaves it from now on. mend NUMBER.
cut() {
	${ETCD_ENTER[$1]} nft -f - <<-RULES
		table inet cut {
			chain in { type filter hook input priority 0; iifname eth0 drop; }
			chain out { type filter hook output priority 0; oifname eth0 drop; }
		}
	RULES
}
mend() {
	${ETCD_ENTER[$1]} nft delete table inet cut
}
# shellcheck source=tests/e2e/etcd_lib.sh
source "$(dirname "$0")/etcd_lib.sh"

printf '[rack]\ncontrol = %s\n[memory m0]\nsize = 64M\n' "$CONTROLLERS" \
	>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
until_ok "$AQUIFER" tenant create one --token-file "$TMP/1.token"
expect 0 "$AQUIFER" region create before 1M

# Each in turn, so that etcd's own leader is among them.
for i in 0 1 2; do
	cut "$i"
	until_ok "$AQUIFER" tenant create "cut$i" --token-file "$TMP/c$i.token"
	mend "$i"
	until_ok curl -sSf -m 1 "${ETCD_CLIENT[$i]}/health"
done
echo "ok: without one"

cut 0
cut 2
until_fails "$AQUIFER" tenant create never --token-file "$TMP/n.token"
# The first refusal may be about a change whose end is not known.
until_ok sh -c "! '$AQUIFER' tenant create never --token-file '$TMP/n.token' \
	>'$TMP/words' 2>&1 && grep -q 'nothing was changed' '$TMP/words'"
grep -Eq "etcd|its ledger" "$TMP/words" || fail "no reason: $(<"$TMP/words")"
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '"one" in [t["name"] for t in d["tenants"]]' >/dev/null
expect 0 "$AQUIFER" node ls
expect 0 "$AQUIFER" region stat before
expect 0 "$AQUIFER" region create during 1M
echo "ok: without two"

mend 0
mend 2
since=$(date +%s.%N)
until_ok "$AQUIFER" tenant create back --token-file "$TMP/b.token"
echo "the first change after $(python3 -c 'import sys, time
print("%.1f s" % (time.time() - float(sys.argv[1])))' "$since")"
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '{"one", "cut0", "cut1", "cut2", "back"} <=
	set(t["name"] for t in d["tenants"])' >/dev/null
until_node 'd["m0"]["state"] == "up" and d["m0"]["regions"] == 2'
echo "ok: back again"
