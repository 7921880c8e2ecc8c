#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unmodified programs on two machines: NumPy in Python's shared memory (a stencil
# in bands), System V from Perl, and a relay, PageRank and a server in C. Results
# are as on one machine. Arguments: those three.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
# shellcheck source=tests/e2e/group_lib.sh
source "$(dirname "$0")/group_lib.sh"
RELAY=$1 RANK=$2 KV=$3

start_rack

# The relay: 300 numbers through 16 places, so both sides sleep.
beside a take "$RELAY" take 300
in_group b "$RELAY" put 300 >"$TMP/put" 2>&1 ||
	fail "put: $(<"$TMP/put") $(server_log)"
wait "$PID" || fail "take: $(<"$TMP/take") $(server_log)"
[[ $(<"$TMP/take") == "300 numbers, sum 44850" ]] || fail "$(<"$TMP/take")"

# PageRank: the same bits as one process has on one machine.
"$RANK" 0 1 2000 5 >"$TMP/want"
beside a rank0 "$RANK" 0 2 2000 5
in_group b "$RANK" 1 2 2000 5 >"$TMP/rank1" 2>&1 ||
	fail "$(<"$TMP/rank1") $(server_log)"
wait "$PID" || fail "$(<"$TMP/rank0") $(server_log)"
for i in 0 1; do
	[[ $(<"$TMP/rank$i") == "$(<"$TMP/want")" ]] ||
		fail "$(<"$TMP/rank$i") instead of $(<"$TMP/want")"
done

# A server of keys and values, and clients on both machines.
beside a kv "$KV" serve
kv=$PID
for _ in {1..1200}; do
	! in_group b "$KV" put ann 42 >"$TMP/put" 2>&1 || break
	sleep 0.05
done
[[ $(in_group b "$KV" get ann) == 42 ]] || fail "ann: $(server_log)"
beside a fill0 "$KV" fill 40
in_group b "$KV" fill 40 >"$TMP/fill1" 2>&1 || fail "$(<"$TMP/fill1") $(server_log)"
wait "$PID" || fail "$(<"$TMP/fill0") $(server_log)"
[[ $(<"$TMP/fill0") == 2340 && $(<"$TMP/fill1") == 2340 ]] ||
	fail "$(<"$TMP/fill0"), $(<"$TMP/fill1")"
in_group b "$KV" end >"$TMP/end" 2>&1 || fail "$(<"$TMP/end") $(server_log)"
wait "$kv" || fail "$(<"$TMP/kv") $(server_log)"
segments_are words

# System V from Perl: one writes, the other one finds it by its key.
cat >"$TMP/v.pl" <<'END'
use strict;
use IPC::SysV qw(IPC_CREAT IPC_RMID S_IRUSR S_IWUSR);
my ($what, $text) = @ARGV;
my $id = shmget(0xa9f1, 4000, IPC_CREAT | S_IRUSR | S_IWUSR);
die "shmget: $!" unless defined $id;
if ($what eq "write") {
	shmwrite($id, $text, 100, 64) or die "shmwrite: $!";
} else {
	my $got;
	shmread($id, $got, 100, 64) or die "shmread: $!";
	$got =~ s/\0.*//s;
	print "$got\n";
	shmctl($id, IPC_RMID, 0) or die "shmctl: $!";
}
END
in_group a perl "$TMP/v.pl" write "from another machine" >"$TMP/v" 2>&1 ||
	fail "$(<"$TMP/v") $(server_log)"
in_group b perl "$TMP/v.pl" read >"$TMP/v" 2>&1 ||
	fail "$(<"$TMP/v") $(server_log)"
[[ $(<"$TMP/v") == "from another machine" ]] || fail "$(<"$TMP/v")"
segments_are words

# Debian's, which has Debian's NumPy.
PYTHON=/usr/bin/python3
"$PYTHON" -c 'import numpy' 2>/dev/null || {
	echo "no NumPy: its part is left out"
	exit 0
}
# A stencil: two bands of a grid that lies in shared memory; after each step both
# wait for each other by words of it. The tracker of Python would unlink at the
# end of each process what the other one uses.
cat >"$TMP/stencil.py" <<'END'
import sys, time
from multiprocessing import resource_tracker, shared_memory
import numpy as np
N, STEPS = 64, 10
resource_tracker.register = lambda *a: None
resource_tracker.unregister = lambda *a: None

def grids(buf):
    return [np.ndarray((N, N), dtype=np.float64, buffer=buf, offset=4096 + i * N * N * 8) for i in (0, 1)]

def step(old, new, lo, hi):
    new[lo:hi, 1:-1] = (old[lo - 1:hi - 1, 1:-1] + old[lo + 1:hi + 1, 1:-1] +
                        old[lo:hi, :-2] + old[lo:hi, 2:]) / 4

def begin(g):
    for x in g:
        x[:] = 0
        x[0, :] = np.arange(N)

if sys.argv[1] == "alone":
    g = [np.empty((N, N)) for _ in range(2)]
    begin(g)
    for i in range(STEPS):
        step(g[i % 2], g[1 - i % 2], 1, N - 1)
    print(repr(float(g[STEPS % 2].sum())))
    sys.exit()
side = int(sys.argv[1])
if side == 0:
    shm = shared_memory.SharedMemory("stencil", create=True, size=4096 + 2 * N * N * 8)
else:
    while True:
        try:
            shm = shared_memory.SharedMemory("stencil")
            break
        except (FileNotFoundError, ValueError):
            time.sleep(0.01)
done = np.ndarray(3, dtype=np.int64, buffer=shm.buf)
g = grids(shm.buf)
if side == 0:
    begin(g)
    done[2] = 1
while not done[2]:
    time.sleep(0.001)
lo, hi = (1, N // 2) if side == 0 else (N // 2, N - 1)
for i in range(STEPS):
    step(g[i % 2], g[1 - i % 2], lo, hi)
    done[side] = i + 1
    while done[1 - side] < i + 1:
        time.sleep(0.001)
print(repr(float(g[STEPS % 2].sum())))
if side == 0:
    shm.unlink()
del done, g
END
"$PYTHON" "$TMP/stencil.py" alone >"$TMP/want" || fail "stencil alone"
beside a grid0 "$PYTHON" "$TMP/stencil.py" 0
in_group b "$PYTHON" "$TMP/stencil.py" 1 >"$TMP/grid1" 2>&1 ||
	fail "$(<"$TMP/grid1") $(server_log)"
wait "$PID" || fail "$(<"$TMP/grid0") $(server_log)"
for i in 0 1; do
	[[ $(tail -n 1 "$TMP/grid$i") == "$(<"$TMP/want")" ]] ||
		fail "$(<"$TMP/grid$i") instead of $(<"$TMP/want")"
done
segments_are words
directory_is_sound
