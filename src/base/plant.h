/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planted bugs: mistakes that the laboratory makes on purpose, to see that its
 * checkers find them. PLANTED(x) is false at compile time in the product; only
 * the copies of the rooms that aquifer-sim links (built with -DAQ_PLANT) have
 * them, and there one at a time is on, for the whole process.
 *
 * How to plant one: a row below, PLANTED(row) where the mistake is made, the
 * row's name in the list of the play that must find it.
 */
#ifndef AQ_BASE_PLANT_H
#define AQ_BASE_PLANT_H

#include "base.h"

/* X(id, name on the command line, what goes wrong) */
#define PLANTS(X)                                                              \
	/* The NIC between honest peers. */                                    \
	X(skip_duplicate_check, "skip_duplicate_check",                        \
	  "a request that came twice is executed twice")                       \
	X(reexecute_atomic, "reexecute_atomic",                                \
	  "a repeated atomic is executed again")                               \
	X(ack_early, "ack_early",                                              \
	  "a request is acknowledged before it is "                            \
	  "executed")                                                          \
	X(drop_flush, "drop_flush", "a flushed request has no completion")     \
	X(double_completion, "double_completion", "a request completes twice") \
	X(skip_icrc, "skip_icrc", "damaged packets are taken")                 \
	X(skip_last_byte, "skip_last_byte",                                    \
	  "the last byte of a message is not written")                         \
	X(read_wrong_offset, "read_wrong_offset",                              \
	  "later packets of a READ come from one byte too far")                \
	X(complete_lost_read, "complete_lost_read",                            \
	  "a READ completes although a part of its answer is lost")            \
	X(retry_from_next, "retry_from_next",                                  \
	  "what is sent again begins one packet too late")                     \
	X(forget_rnr, "forget_rnr",                                            \
	  "a message without a receive is dropped without a word")             \
	X(swap_completions, "swap_completions",                                \
	  "neighbouring completions change places")                            \
	X(stale_psn, "stale_psn", "answers to older requests are taken")       \
	X(nak_first, "nak_first",                                              \
	  "a refusal overtakes the answers that are due before it")            \
	/* The NIC beside a peer that lies. */                                 \
	X(any_domain, "key-of-any-tenant",                                     \
	  "a key is good in every protection domain")                          \
	X(any_right, "key-for-any-right", "a key's rights are not looked at")  \
	X(past_end, "one-byte-past-the-end",                                   \
	  "a request may end one byte behind its region")                      \
	X(no_guard, "keys-guessed-for-ever",                                   \
	  "connections that guess keys are not ended")                         \
	X(any_path, "frames-by-any-path",                                      \
	  "a packet may come by another way than its connection")              \
	X(any_inner, "chains-take-packets",                                    \
	  "inner queue pairs of chains take packets, and begin at 0")          \
	/* Page service and heartbeats. */                                     \
	X(keys_stay, "piece-keys-stay",                                        \
	  "keys outlive the piece of memory that is given back")               \
	X(leave_early, "frames-leave-early",                                   \
	  "page frames do not wait for answers under way")                     \
	X(not_cleared, "frames-not-cleared",                                   \
	  "page frames keep what their last owner wrote")                      \
	X(no_budget, "no-budget",                                              \
	  "a client takes as many page frames as it likes")                    \
	X(beats_in_turn, "beats-in-turn",                                      \
	  "a heartbeat per connection, one after the other")                   \
	/* The switch's atomics. */                                            \
	X(early_issue, "early_issue",                                          \
	  "a replaced atomic does not wait for "                               \
	  "its turn")                                                          \
	X(early_answer, "early_answer",                                        \
	  "the client has its answer before memory is written")                \
	X(repeat, "repeat", "a repeated request is executed again")            \
	X(fail_swaps, "fail_swaps", "a swap that succeeded is said to fail")   \
	X(blind_write, "blind_write", "the switch forgets what it wrote")      \
	X(skip_lost, "skip_lost", "a lost answer is taken for given")          \
	X(pass_reads, "pass_reads", "READs pass the atomics before them")      \
	X(own_path, "own_path", "some requests pass the switch by")            \
	X(move_gaps, "move_gaps", "a connection moves with a gap in it")       \
	X(move_stale, "move_stale", "a moved WRITE leaves the old value")      \
	X(move_nak, "move_nak", "an incomplete message moves")                 \
	X(move_twice, "move_twice", "what moved is executed twice")            \
	/* Steered version lists. */                                           \
	X(vouch_appends, "vouch_appends",                                      \
	  "appends that the switch has not seen are vouched for")              \
	X(vouch_reads, "vouch_reads",                                          \
	  "READs of what is not committed are vouched for")                    \
	X(no_break, "no_break", "a broken list is not noticed")                \
	X(hide_next, "hide_next", "a reader does not see the next version")    \
	X(other_use, "other_use", "a node is steered in its next use")         \
	X(commit_failed, "commit_failed", "a failed append is committed")      \
	X(trust_all, "trust",                                                  \
	  "clients believe versions that nobody committed")                    \
	/* The ordered index. */                                               \
	X(tree_torn, "torn", "readers take torn nodes for whole")              \
	X(tree_fences, "fences", "reads do not go on to the right")            \
	X(tree_steal, "steal", "locks are taken without fencing")              \
	X(tree_early, "early", "unlocked before the entry is there")           \
	X(tree_no_lock, "no_lock", "a held lock is taken for free")            \
	/* The table. */                                                       \
	X(kv_terms, "terms", "nobody waits for the end of others' terms")      \
	X(kv_locks, "locks", "a shard freezes with locks still held")          \
	X(kv_mirror, "mirror", "changes are not made at the second copy")      \
	X(kv_graves, "graves", "deleted keys leave no trace")                  \
	X(kv_overtake, "overtake",                                             \
	  "what has overtaken a put is taken for a put")                       \
	X(kv_no_fence, "no-fence", "clients that sleep are not fenced")        \
	/* Asynchronous far memory. */                                         \
	X(no_order, "no-order", "requests pass others that they overlap")      \
	X(early_ack, "early-ack", "writes are told done when they are posted") \
	X(no_skip, "repeat-writes", "a predecessor's writes are done again")   \
	X(old_final, "wrong-packet-number",                                    \
	  "nodes report the packet number that they began at")                 \
	X(no_fence, "no-fence",                                                \
	  "nodes do not end an old engine's queue pairs")                      \
	X(late_ring, "old-engine-publishes",                                   \
	  "the application lets the old engine write on")

enum plant {
	PLANT_none,
#define PLANT_ENUM(id, name, what) PLANT_##id,
	PLANTS(PLANT_ENUM)
#undef PLANT_ENUM
	PLANT_COUNT
};

#ifdef AQ_PLANT
extern enum plant plant_now; /* lab/sim/plants.c */
#define PLANTED(id) UNLIKELY(plant_now == PLANT_##id)
/* True while any bug is planted: fast paths that would skip the planted code
 * are then not taken. */
#define PLANTED_ANY() UNLIKELY(plant_now != PLANT_none)
#else
#define PLANTED(id)   false
#define PLANTED_ANY() false
#endif

#endif
