#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unmodified programs on a mount of elastic memory: cp, sort, tar, sha256sum,
# redirections, mv and rm; what cannot be done, attributes, and the lease.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
[[ -c /dev/fuse ]] || skip "there is no /dev/fuse"
[[ -n ${AQ_OWN_NET:-} ]] || skip "a mount of its own needs a mount namespace"

printf '[rack]\ncontrol = c0\n[memory m0]\nsize = 128M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
far=$TMP/far
mkdir "$far"
expect 1 "$AQUIFER" mount /none "$far"
grep -q "/none" "$TMP/err" || fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" mount / "$TMP/nowhere"
# A lease that ends at once, if nobody renews it.
expect 0 "$AQUIFER" ns mkdir /job --lease 1000
"$AQUIFER" mount /job "$far" --block 64K --foreground >"$TMP/mount.log" 2>&1 &
mount=$!
PIDS+=("$mount")
until_ok mountpoint -q "$far"

seq 1 20000 | shuf >"$TMP/numbers"
cp "$TMP/numbers" "$far/numbers"
cmp "$TMP/numbers" "$far/numbers" || fail "cp"
[[ $(stat -c %s "$far/numbers") = $(stat -c %s "$TMP/numbers") ]] || fail "size"
expect 0 "$AQUIFER" file cat /job/numbers
cmp "$TMP/out" "$TMP/numbers" || fail "the command sees other bytes"
sort -n -o "$far/sorted" "$far/numbers"
seq 1 20000 | cmp - "$far/sorted" || fail "sort"
(cd "$far" && sha256sum numbers sorted >sums && sha256sum --quiet -c sums) ||
	fail "sha256sum"
echo one >"$far/text"
echo two >>"$far/text"
printf 'three\n' | tee -a "$far/text" >/dev/null
[[ $(<"$far/text") == $'one\ntwo\nthree' ]] || fail "$(<"$far/text")"
echo anew >"$far/text"
[[ $(<"$far/text") == anew ]] || fail "$(<"$far/text")"
: >"$far/text"
[[ ! -s $far/text ]] || fail "not cut to nothing"
echo "ok: cp, sort, sha256sum, redirections"

mkdir "$far/tree"
cp "$AQ_SOURCE"/examples/*.py "$far/tree"
tar -C "$far" -cf "$far/tree.tar" tree
mkdir "$far/copy"
tar -C "$far/copy" -xf "$far/tree.tar"
diff -r "$far/tree" "$far/copy/tree" || fail "tar"
mv "$far/sorted" "$far/tree/moved"
seq 1 20000 | cmp - "$far/tree/moved" || fail "mv"
echo other >"$far/other"
mv -f "$far/other" "$far/tree/moved"
[[ $(<"$far/tree/moved") == other ]] || fail "mv to a name that is there"
[[ ! -e $far/sorted && ! -e $far/other ]] || fail "the old name is there"
expect 1 rmdir "$far/tree"
rm -r "$far/copy"
[[ ! -e $far/copy ]] || fail "rm"
[[ $(find "$far" -type f | wc -l) = $(("$(find "$AQ_SOURCE"/examples/*.py | wc -l)" + 5)) ]] ||
	fail "$(find "$far")"
echo "ok: tar, mv, rm, find"

python3 - "$far" <<'END' || fail "python"
import errno, json, os, sys
far = sys.argv[1]

def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError as e:
        return e.errno
    raise AssertionError("it was done")

fd = os.open(f"{far}/numbers", os.O_WRONLY)
assert refused(os.pwrite, fd, b"x", 5) == errno.EOPNOTSUPP
assert refused(os.ftruncate, fd, 7) == errno.EOPNOTSUPP
os.close(fd)
assert refused(os.open, f"{far}/none", os.O_RDONLY) == errno.ENOENT
assert refused(os.open, f"{far}/numbers", os.O_CREAT | os.O_EXCL) == errno.EEXIST
assert refused(os.getxattr, far, "user.other") == errno.ENODATA
assert os.listxattr(f"{far}/numbers") == ["user.aquifer.lease", "user.aquifer.map"]
assert os.listxattr(far) == ["user.aquifer.lease"]
blocks = json.loads(os.getxattr(f"{far}/numbers", "user.aquifer.map"))
assert len(blocks["blocks"]) > 1 and "ticket" not in blocks, blocks
assert json.loads(os.getxattr(far, "user.aquifer.lease"))["path"] == "/job"
END
expect 0 "$AQUIFER" queue put /job/q item
[[ -e $far/q ]] || fail "no queue"
expect 1 cat "$far/q"
echo "ok: what is refused, attributes"

# Many leases have passed: it was renewed. Then nobody does.
expect 0 "$AQUIFER" ns stat /job
umount "$far"
wait "$mount" || fail "$(<"$TMP/mount.log")"
until_fails "$AQUIFER" ns stat /job
expect 0 "$AQUIFER" ns mkdir /job --keep
expect 0 "$AQUIFER" mount / "$far" --json
json "$TMP/out" 'd["path"] == "/" and d["folder"].endswith("/far")' >/dev/null
echo text >"$far/job/a"
[[ $("$AQUIFER" file cat /job/a) == text ]] || fail "in the background"
umount "$far"
expect 0 "$AQUIFER" down
