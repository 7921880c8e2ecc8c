#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dist/Containerfile makes an image, and dist/compose.yaml a rack whose Redis
# gateway serves on when a memory node is killed. Where the image of Debian cannot
# be fetched, debootstrap makes it.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

[[ -z $AQ_PRELOAD ]] || skip "packages are not sanitized"
[[ -n ${AQ_OWN_NET:-} ]] || skip "only root makes networks of containers"
need podman podman-compose git openssl redis-cli
base=docker.io/library/debian:12
image=localhost/aquifer
# What podman remembers of networks and of what runs is this test's alone.
for dir in /run /etc/cni/net.d; do
	[[ ! -d $dir ]] || mount -t tmpfs none "$dir"
done
mkdir -p "$TMP/tree/dist"
compose=(podman-compose -f "$TMP/tree/dist/compose.yaml" -p aqtest)
container_cleanup() {
	local status=$?
	set +e
	"${compose[@]}" down -t 1 >/dev/null 2>&1
	podman rmi -f "$image" >/dev/null 2>&1
	(exit "$status")
	cleanup
}
trap container_cleanup EXIT

if ! podman image exists "$base" &&
	! outside timeout 300 podman pull -q "$base" >"$TMP/out" 2>&1; then
	command -v debootstrap >/dev/null ||
		skip "no image $base, and no debootstrap: $(tail -n 1 "$TMP/out")"
	outside debootstrap --variant=minbase bookworm "$TMP/debian" \
		>"$TMP/out" 2>&1 || skip "debootstrap: $(tail -n 1 "$TMP/out")"
	tar -C "$TMP/debian" -c . | podman import - "$base" >"$TMP/out" 2>&1 ||
		fail "podman import: $(<"$TMP/out")"
	rm -rf "$TMP/debian"
fi
# Without the right to raise limits, or with both kinds of cgroups, podman's
# defaults run nothing.
if ! podman run --rm --network none "$base" true 2>"$TMP/err"; then
	printf '[engine]\nruntime = "runc"\n[containers]\n%s\n' \
		'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]' \
		>"$TMP/containers.conf"
	export CONTAINERS_CONF=$TMP/containers.conf
	podman run --rm --network none "$base" true 2>"$TMP/err" ||
		skip "podman cannot run a container here: $(<"$TMP/err")"
fi

git -C "$AQ_SOURCE" ls-files -z --cached --others --exclude-standard |
	tar -C "$AQ_SOURCE" --null --ignore-failed-read -T - -cf - |
	tar -C "$TMP/tree" -xf -
outside nice podman build --isolation chroot --network host --layers=false \
	-t "$image" -f "$TMP/tree/dist/Containerfile" "$TMP/tree" \
	>"$TMP/log" 2>&1 || { tail -n 40 "$TMP/log"; fail "podman build"; }
expect 0 podman run --rm --network none "$image" version
echo "ok: $(head -n 1 "$TMP/out")"

(umask 077 && openssl rand -hex 32 >"$TMP/tree/dist/token")
expect 0 "${compose[@]}" up -d --no-build
# healthy NAME: as podman would ask, every few seconds, where systemd is.
healthy() {
	for _ in {1..120}; do
		! podman healthcheck run "aqtest_$1_1" >"$TMP/out" 2>&1 || return 0
		sleep 0.5
	done
	podman logs "aqtest_$1_1" || true
	fail "$1 is not healthy: $(<"$TMP/out")"
}
for name in m0 m1 gateway; do
	healthy "$name"
	echo "ok: $name is healthy"
done
redis() {
	timeout 30 redis-cli "$@"
}
[[ $(redis set greeting hello) == OK ]] || fail "set"
expect 0 podman kill aqtest_m0_1
[[ $(redis get greeting) == hello ]] || fail "get without m0"
[[ $(redis incr visits) == 1 ]] || fail "incr without m0"
healthy gateway
echo "ok: the gateway serves without m0"
