#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pages do what they say: every block of commands ends well, every program
# compiles and runs, and prints what the page shows. docs_blocks.py knows the
# marks of blocks that cannot run here. Arguments: pages of the tree; or
# "docs PAGE..." for README, docs/ and examples/ without those, or "man PAGE..."
# for the manual pages without those.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
[[ -z $AQ_PRELOAD ]] || skip "programs of a reader are not sanitized"
[[ -n ${AQ_OWN_NET:-} ]] || skip "pages are for root, in a network of their own"
need cc pkg-config curl etcd nft ps redis-cli redis-server nbdkit nbdinfo ib_read_lat
python3 -c 'import ctypes, sys
sys.exit(ctypes.CDLL(None).syscall(323, 0) < 0)' ||
	skip "userfaultfd is not allowed here"
need_nic

cd "$AQ_SOURCE"
case ${1:-} in
man) all=(man/*.scd) ;;
docs) all=(*.md docs/*.md docs/decisions/*.md examples/*.md) ;;
*) all=() ;;
esac
pages=("$@")
if ((${#all[@]})); then
	pages=()
	for page in "${all[@]}"; do
		[[ " $* " == *" $page "* ]] || pages+=("$page")
	done
fi

[[ " ${pages[*]} " != *" man/aquifer-exec.1.scd "* ]] ||
	need fi_pingpong iperf rping ucx_perftest

ran=0 marked=0
for page in "${pages[@]}"; do
	# Most decisions have nothing to run.
	grep -qE '^```|run( page)?: ' "$page" || continue
	dir=$TMP/$(tr / _ <<<"$page")
	mkdir "$dir"
	echo "$page" >"$dir/page"
	"$AQ_SOURCE/tests/e2e/docs_blocks.py" plan "$page" "$dir" || fail "$page"
	grep -qv $'\ttext\t' "$dir/plan" || continue
	start=$SECONDS
	status=0
	timeout -k 5 240 unshare --net --mount --pid --fork --kill-child \
		--mount-proc bash tests/e2e/docs_page.sh "$dir" &
	# In the background, so that whoever ends this test ends the page, too.
	PIDS+=("$!")
	wait "$!" || status=$?
	((status == 0)) || fail "$(cat "$dir/at"): exit status $status"
	read -r page_ran page_marked _ <"$dir/count"
	echo "ok: $page: $page_ran blocks ran, $page_marked are marked," \
		"$((SECONDS - start)) s"
	ran=$((ran + page_ran))
	marked=$((marked + page_marked))
done
echo "$ran blocks ran, $marked are marked"
