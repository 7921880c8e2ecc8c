#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The nbdkit plugin under the tools of others: nbdinfo, nbdcopy, nbdsh and fio
# with checksums; room that comes and goes; a node that dies, with one copy and
# with two.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
need nbdkit nbdinfo nbdcopy fio
PLUGIN=$1
RUN=(env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} timeout -k 5 60 nbdkit -U -
	"$PLUGIN")
export TMP

printf '[memory m0]\nsize = 64M\n[memory m1]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up

expect 1 "${RUN[@]}" --run true
grep -q 'size=' "$TMP/err" || fail "no advice: $(cat "$TMP/err")"
# A size that is not what one would get is refused, in words about sizes.
for size in 1K 4097; do
	expect 1 "${RUN[@]}" size=$size --run true
	grep -q 'whole pages' "$TMP/err" || fail "$size: $(cat "$TMP/err")"
done
# What cannot be is said before the command of --run starts, which would wait for
# a server that does not come.
expect 1 "${RUN[@]}" size=100T --run "touch $TMP/started"
grep -q 'asked for: take fewer bytes' "$TMP/err" || fail "$(cat "$TMP/err")"
! grep -q count "$TMP/err" || fail "not in the user's words: $(cat "$TMP/err")"
expect 1 "${RUN[@]}" size=1T mode=static --run "touch $TMP/started"
grep -q 'do not fit' "$TMP/err" || fail "no reason: $(cat "$TMP/err")"
# A disk for which there is no room says so before somebody fills it.
"${RUN[@]}" size=100M --run true 2>"$TMP/err" || fail "larger than the rack"
grep -q 'has 100M, and the nodes have room for 6[0-9]M' "$TMP/err" ||
	fail "no warning: $(cat "$TMP/err")"
expect 1 "${RUN[@]}" size=100M strict=true --run "touch $TMP/started"
grep -q 'strict=true: the disk has' "$TMP/err" || fail "$(cat "$TMP/err")"
expect 1 "${RUN[@]}" size=8M rack=nosuch --run "touch $TMP/started"
grep -q 'has no memory node' "$TMP/err" || fail "$(cat "$TMP/err")"
[[ ! -e $TMP/started ]] || fail "a command was started without a disk"
"${RUN[@]}" size=32M strict=true --run true 2>"$TMP/err" || fail "$(cat "$TMP/err")"
! grep -q 'room for' "$TMP/err" || fail "a warning without need: $(cat "$TMP/err")"
head -c 3000001 /dev/urandom >"$TMP/in"
truncate -s 8M "$TMP/in"

# What goes in comes out, holes stay holes, several connections work.
# shellcheck disable=SC2016 # nbdkit sets $uri
expect 0 "${RUN[@]}" size=8M --run '
	set -e
	nbdinfo --json $uri >$TMP/info
	nbdcopy --connections=4 $TMP/in $uri
	nbdinfo --map --totals $uri >$TMP/map
	nbdcopy --connections=4 $uri $TMP/back'
json "$TMP/info" 'd["exports"][0]["can_multi_conn"] and
	d["exports"][0]["can_trim"] and d["exports"][0]["can_fast_zero"]' >/dev/null
cmp "$TMP/in" "$TMP/back"
grep -q '^ *3002368 .* data' "$TMP/map" || fail "$(cat "$TMP/map")"
echo "ok: nbdcopy"

# Where room is not given back, TRIM is not offered; zeros are.
# shellcheck disable=SC2016
expect 0 "${RUN[@]}" size=8M mode=static --run 'nbdinfo --json $uri >$TMP/info'
json "$TMP/info" 'not d["exports"][0]["can_trim"] and
	d["exports"][0]["can_zero"]' >/dev/null

# fio writes, then checks what it wrote; small blocks, odd blocks, trims.
cat >"$TMP/fio.sh" <<'SH'
set -e
job() {
	fio --name=j --ioengine=nbd --uri="$uri" --size=8M --iodepth=16 \
		--verify=crc32c --verify_fatal=1 --output="$TMP/fio" "$@"
}
job --rw=randwrite --bs=4k
job --rw=randwrite --bsrange=512-70000 --bs_unaligned
job --rw=randtrimwrite --bs=4k --verify=0
job --rw=write --bs=64k
SH
# shellcheck disable=SC2016
expect 0 "${RUN[@]}" size=8M --run 'export uri; bash "$TMP/fio.sh"'
echo "ok: fio"

# In any nbdkit with a sanitizer's runtime preloaded, its memory plugin too, libc's
# lock of locales has been released once too often (its count is -1); as soon as
# the words of an error were looked up, which a node's death leads to, libp11-kit
# waits for that lock for ever when the process ends. The plain build has the
# rest.
[[ -z $AQ_PRELOAD ]] || exit 0

# One copy and a dead node is an error with its name; two copies are none.
cat >"$TMP/death" <<'SH'
nbdcopy "$TMP/in" "$uri" || exit 3
kill -KILL "$(cut -d' ' -f1 "$TMP/$AQUIFER_RACK_NAME/m1.pid")"
nbdcopy "$uri" "$TMP/after"
SH
# shellcheck disable=SC2016
expect 0 "${RUN[@]}" size=8M copies=2 --run 'export uri; bash "$TMP/death"'
cmp "$TMP/in" "$TMP/after"
echo "ok: two copies"
expect 0 "$AQUIFER" up
# shellcheck disable=SC2016
expect 1 "${RUN[@]}" size=8M --run 'export uri; bash "$TMP/death"'
grep -q 'memory node m1 is lost' "$TMP/err" || fail "$(cat "$TMP/err")"
echo "ok: one copy"

# The steps of `aquifer swap`, and its answer where the kernel has no NBD.
expect 0 "$AQUIFER" swap on --size 16M --copies 2 --json
json "$TMP/out" '[s[0] for s in d["steps"]] ==
	["nbdkit", "nbd-client", "mkswap", "swapon"]' >/dev/null
expect 0 "$AQUIFER" swap on --server '[::1]:10809' --json
json "$TMP/out" 'd["steps"][0][:4] ==
	["nbd-client", "::1", "10809", "/dev/nbd0"]' >/dev/null
expect 0 "$AQUIFER" swap off --json
expect 0 "$AQUIFER" swap status --json
json "$TMP/out" 'd["state"] == "off"' >/dev/null
expect 1 "$AQUIFER" swap off
expect 2 "$AQUIFER" swap on --server here
expect 2 "$AQUIFER" swap on
expect 2 "$AQUIFER" swap on --size 16M --device /dev/sda
expect 2 "$AQUIFER" swap
if [[ ! -e /sys/module/nbd ]] && ! modprobe -qn nbd 2>/dev/null; then
	expect 1 "$AQUIFER" swap on --size 16M
	grep -q 'no NBD' "$TMP/err" || fail "$(cat "$TMP/err")"
fi
echo "ok: swap"
