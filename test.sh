#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds every variant and runs every suite, cheap
# ones first. --full: longer fuzzing, 2,000 seeds, all guests, the benchmarks.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=tools/setup.sh
source tools/setup.sh

full=0
case ${1:-} in
"") ;;
--full) full=1 ;;
*)
	echo "usage: ./test.sh [--full]" >&2
	exit 2
	;;
esac

# A finding of UBSan is a failure, not a remark.
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# Tests fork while their engine threads run; the children begin anew.
export TSAN_OPTIONS=die_after_fork=0:suppressions=$PWD/tools/tsan-suppress.txt
# Memory that the NIC reads while threads write it, as it is meant to be.
tsan_rings=die_after_fork=0:history_size=5:suppressions=$PWD/tools/tsan-suppress-rings.txt
logs=build-logs
passed=0
failed=0
skipped=0
mkdir -p "$logs"

# line NAME STATE SECONDS REMARK
line() {
	printf '%-18s %-7s %4d s  %s\n' "$@"
}

# So many tests at once: most of them wait more than they work.
many=(--num-processes "$(($(nproc) + 1))")

# tail_of LOG: enough to see what went wrong.
tail_of() {
	tail -n 60 "$1" | sed 's/^/    /'
}

# check NAME COMMAND...: one test of its own. Returns the command's success.
# set -e does not hold in the command, so functions join their steps with &&.
check() {
	local name=$1 start=$SECONDS
	shift
	if "$@" >"$logs/$name.log" 2>&1; then
		passed=$((passed + 1))
		line "$name" ok $((SECONDS - start)) \
			"$(tail -n 1 "$logs/$name.log" | cut -c1-60)"
		return 0
	fi
	failed=$((failed + 1))
	tail_of "$logs/$name.log"
	line "$name" FAILED $((SECONDS - start)) "$logs/$name.log"
	return 1
}

# results NAME DIR: prints what meson's log says of a run; sets p, f and s.
results() {
	local counts
	counts=$(tools/count-tests "$2/meson-logs/$1.json") || counts="0 1 0"
	head -n -1 <<<"$counts"
	read -r p f s <<<"$(tail -n 1 <<<"$counts")"
}

# suite NAME DIR OPTION...: a run of `meson test`, counted test by test. A test's
# time is there to end one that hangs; sanitizers and a busy machine are slow.
suite() {
	local name=$1 dir=$2 start=$SECONDS status=0 p f s
	shift 2
	meson test -C "$dir" --no-rebuild --print-errorlogs \
		--timeout-multiplier 3 --logbase "$name" "$@" >"$logs/$name.log" 2>&1 || status=$?
	results "$name" "$dir"
	# meson may fail without a failed test: no test at all, for example.
	if ((status != 0 && f == 0)); then
		f=1
		tail_of "$logs/$name.log"
	fi
	passed=$((passed + p))
	failed=$((failed + f))
	skipped=$((skipped + s))
	if ((f)); then
		line "$name" FAILED $((SECONDS - start)) "$p passed, $f failed"
	else
		line "$name" ok $((SECONDS - start)) "$p passed, $s skipped"
	fi
}

finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	((failed == 0)) && exit 0
	exit 1
}

all_c() {
	find src lab include tests examples -name '*.[ch]' 2>/dev/null
}

all_shell() {
	printf '%s\n' run.sh test.sh .ci/run tools/fuzz tools/fuzz-release tools/*.sh \
		tools/*.bash dist/*.sh examples/*.sh tests/e2e/*.sh tests/e2e/vm/*.sh
}

# One file after the other would leave processors idle.
shell_check() {
	all_shell | xargs -n 8 -P "$(nproc)" shellcheck -x &&
		echo "$(all_shell | wc -l) scripts"
}

format_check() {
	all_c | xargs clang-format --dry-run -Werror &&
		echo "$(all_c | wc -l) files"
}

spelling() {
	codespell --skip='*/corpus/*' --ignore-words tools/codespell.txt \
		README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs man src lab \
		include tests tools examples debian &&
		echo "no misspelling known to codespell"
}

build() {
	local dir=$1
	shift
	configure "$dir" "$@" && ninja -C "$dir"
}

# Only the fuzzers: the rest was built twice already.
build_fuzz() {
	CC=clang configure build-fuzz -Dfuzz=true \
		-Db_sanitize=address,undefined || return 1
	ninja -C build-fuzz fuzzers
}

# The other variants, one after the other, while tests run that mostly wait;
# those come first on the processors.
build_variants() {
	local name status
	renice -n 19 -p "$BASHPID" >/dev/null
	for name in asan tsan fuzz; do
		status=0
		"build_$name" >"$logs/variant-$name.log" 2>&1 || status=$?
		echo "$status" >"$logs/build-$name.status"
	done
	# Only the last one can have failed here.
	((status == 0)) || return 0
	# The seed is fixed, so that what fails here is due to the change that is
	# tested; --full and fuzz-release go new ways.
	tools/fuzz build-fuzz "$((full ? 60 : 3))" "$((full ? 600 : 60))" \
		"$((full ? 0 : 1))" >"$logs/variant-fuzzing.log" 2>&1 || status=$?
	echo "$status" >"$logs/build-fuzzing.status"
}

# -O1, because with both sanitizers -O2 takes gcc half as long again.
build_asan() {
	build build-asan -Db_sanitize=address,undefined -Doptimization=1
}

# Without the unit tests that will not run.
build_tsan() {
	local targets
	configure build-tsan -Db_sanitize=thread || return 1
	mapfile -t targets < <(ninja -C build-tsan -t targets all |
		sed -n 's,: c_LINKER$,,p' |
		awk -F/ 'NR == FNR { want[$1]; next }
			$NF !~ /^(test|replay)_/ || $NF in want' \
			<(tsan_names && tsan_ring_names) -)
	ninja -C build-tsan "${targets[@]}"
}

# built NAME: waits for a variant and says what its build said.
built() {
	while [[ ! -s $logs/build-$1.status ]] && kill -0 "$builder"; do
		sleep 0.5
	done
	cat "$logs/variant-$1.log"
	return "$(<"$logs/build-$1.status")"
}

# TSan of gcc 12 cannot start where the kernel randomizes more address bits
# than it knows; without randomization it always can.
tsan_wrapper() {
	if ! build-tsan/aquifer version >/dev/null 2>&1; then
		echo "--wrapper=setarch -R"
	fi
}

# Long runs find nothing more with ASan, but take four times as long; nor do
# those of tools/asan-skip.txt, which are left to --full.
asan_names() {
	local more=(--no-suite cm-e2e --no-suite net-e2e)
	local skip=tools/asan-skip.txt
	((full)) && more=() && skip=/dev/null
	meson test -C build-asan --list --suite unit --suite fuzz --suite sim \
		--suite e2e --no-suite long "${more[@]}" 2>/dev/null |
		sed -n 's,.* / ,,p' | grep -vxFf <(sed 's/ .*//' "$skip")
}

# The threaded rooms, without what TSan cannot run, and connections made by
# other people's programs: librdmacm has a thread, and so have they.
tsan_names() {
	meson test -C build-tsan --list --suite base --suite os --suite core \
		--suite verbs --suite client --suite hlog --suite cm \
		2>/dev/null | sed -n 's,.* / ,,p' |
		grep -vxFf <(sed 's/ .*//' tools/tsan-skip.txt)
	printf 'cm_%s\n' cmtime ends rdma_client rping ucmatose udaddy
	printf 'rs_%s\n' hostile threads
}

# Memory that two processes share by intent needs other suppressions.
tsan_ring_names() {
	printf '%s\n' test_offload_ring offload_data
	((!full)) || printf '%s\n' test_offload_engine offload_engine_kill \
		offload_faults offload_history offload_misuse
}

need_packages build run test

check format format_check || true
check spelling spelling || true
check shellcheck shell_check || true

check build build build || finish
suite checks build --suite check
suite unit build --suite unit
suite corpus build --suite fuzz

rm -f "$logs"/build-*.status
build_variants &
builder=$!
trap 'kill "$builder" 2>/dev/null || true' EXIT
if ((full)); then
	need_packages programs packaging
	suite e2e build "${many[@]}" --suite e2e
	need_packages vm
	suite vm build --suite vm
else
	suite e2e build "${many[@]}" --suite e2e --no-suite long
	# It says itself why it is skipped where there is no QEMU.
	suite vm build --suite vm --no-suite long
fi

if check build-asan built asan; then
	mapfile -t names < <(asan_names)
	suite asan build-asan "${many[@]}" "${names[@]}"
fi
if check build-tsan built tsan; then
	mapfile -t wrapper < <(tsan_wrapper)
	mapfile -t names < <(tsan_names)
	suite tsan build-tsan "${many[@]}" "${wrapper[@]}" "${names[@]}"
	mapfile -t names < <(tsan_ring_names)
	TSAN_OPTIONS=$tsan_rings suite tsan-rings build-tsan "${wrapper[@]}" \
		"${names[@]}"
	skipped=$((skipped + $(grep -vc '^#' tools/tsan-skip.txt)))
	sed -n 's/^\([^# ]*\) /    skipped \1 under TSan: /p' tools/tsan-skip.txt
fi

if build/aquifer sim verbs --help >/dev/null 2>&1; then
	seeds=200
	((full)) && seeds=1000
	check "sim-verbs" build/aquifer sim verbs --seeds "$seeds" || true
	check "sim-udp" build/aquifer sim verbs --udp \
		--seeds "$((seeds / 4 + full * 750))" || true
	if ((full)); then
		for fabric in edm cxl; do
			check "sim-verbs-$fabric" build/aquifer sim verbs \
				--fabric "$fabric" --seeds 500 || true
		done
	fi
fi

if ((full)) && build/aquifer sim kv --help >/dev/null 2>&1; then
	check "sim-kv" build/aquifer sim kv --seeds 2000 || true
	check "sim-kv-leaves" build/aquifer sim kv --leaves --seeds 2000 || true
	check "kv-leaves-points" env AQUIFER_TEST_FULL=1 \
		build/test_play_replicas || true
fi

if ((full)) && build/aquifer sim swordbox --help >/dev/null 2>&1; then
	check "sim-swordbox" build/aquifer sim swordbox --seeds 2000 || true
	for kind in versions tree; do
		check "sim-index-$kind" build/aquifer sim index --kind "$kind" \
			--seeds 2000 || true
	done
fi

if ((full)) && build/aquifer sim offload --help >/dev/null 2>&1; then
	check "sim-offload" build/aquifer sim offload --seeds 5000 || true
	check "sim-offload-points" build/aquifer sim offload --points --seed 11 ||
		true
fi

if ((full)) && build/aquifer sim walk --help >/dev/null 2>&1; then
	check "sim-walk" build/aquifer sim walk --seeds 2000 || true
fi

if ((full)) && build/aquifer sim elastic --help >/dev/null 2>&1; then
	check "sim-elastic" build/aquifer sim elastic --seeds 20000 || true
fi

if ((full)) && build/aquifer sim mind --help >/dev/null 2>&1; then
	check "sim-mind" build/aquifer sim mind --seeds 5000 || true
fi

if check build-fuzz built fuzz; then
	check fuzz built fuzzing || true
fi

if ((full)); then
	check guesses env AQUIFER_GUESSES=10000000 build/test_nic_guess ||
		true
	check interleavings env EDM_INTERLEAVINGS=1000000 \
		build/test_edm_phy_link || true
fi
if ((full)); then
	check busy-machine tests/e2e/busy_machine.sh build || true
fi
if ((full)) && build/aquifer bench verbs --help >/dev/null 2>&1; then
	# A ratio that is missed or void is shown and fails nothing: it is a
	# time, and other guests of the machine have a say in it.
	check bench-verbs build/aquifer bench verbs || true
	grep -E '(MISSED|void)$' "$logs/bench-verbs.log" | sed 's/^/    /' || true
fi
if ((full)) && build/aquifer bench kv --help >/dev/null 2>&1; then
	check bench-kv-fill build/aquifer bench kv --only fill \
		--fill-seeds 5 || true
	grep -E '_least' "$logs/bench-kv-fill.log" | sed 's/^/    /' || true
fi
# Reported, not judged: how fast the simulation runs is the machine's affair.
if ((full)) && build/aquifer bench edm --help >/dev/null 2>&1; then
	check bench-edm build/aquifer bench edm || true
fi
finish
