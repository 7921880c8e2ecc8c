#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A rack of two machines: one has memory, the other uses it, over UDP 4791. The
# machines are network namespaces of this one, joined by a cable, so that it can
# be tried anywhere; rack.ini of each is what a real machine would have in
# /etc/aquifer. Needs root.
#
#	sudo sh two-machines.sh
set -eu
work=$(mktemp -d)
there=aq-there-$$ here=aq-here-$$
node=

finish() {
	status=$?
	if [ -n "$node" ] && kill "$node"; then
		wait "$node" || true
	fi
	ip netns del $there || true
	ip netns del $here || true
	rm -rf "$work"
	exit $status
}
ip netns add $there
trap finish EXIT
ip netns add $here
ip -n $there link add cable type veth peer name other
ip -n $there link set other netns $here name cable
ip -n $there addr add 10.7.0.1/24 dev cable
ip -n $here addr add 10.7.0.2/24 dev cable
for ns in $there $here; do
	ip -n "$ns" link set lo up
	ip -n "$ns" link set cable up
done

# The machine with memory says where it can be reached: its NIC by UDP, its
# control interface by TCP.
cat >"$work/there.ini" <<END
[nic]
address = 10.7.0.1
END
# The other names the node. nic.address is how answers find the way back.
cat >"$work/here.ini" <<END
[nic]
address = 10.7.0.2
[node m0]
address = http://10.7.0.1:7000
END

mkdir "$work/there" "$work/here"
AQUIFER_RUNDIR=$work/there ip netns exec $there aquifer \
	--config "$work/there.ini" memory --name m0 --size 256M \
	--listen 10.7.0.1:7000 --insecure >"$work/ready" &
node=$!
until [ -s "$work/ready" ]; do
	kill -0 "$node" # it did not start: its message says why
	sleep 0.1
done

# The node has made a token for its users; the other machine needs a copy. It goes
# over this network in clear, and a line warns of it: rack.ini(5) has tls_cert.
export AQUIFER_TOKEN AQUIFER_RUNDIR="$work/here"
AQUIFER_TOKEN=$(cat "$work/there/local/token")
other() {
	ip netns exec $here aquifer --config "$work/here.ini" "$@"
}
other doctor 10.7.0.1 >"$work/doctor" 2>&1 ||
	{ cat "$work/doctor" && false; } # what is wrong, and how to mend it
other region create far 64M >/dev/null
other region list
other kv create users 1000 --extents 1M >/dev/null
other kv put users ann 42
echo "ann: $(other kv get users ann)"
