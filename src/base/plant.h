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
	X(reexecute_walk, "reexecute_walk",                                    \
	  "a repeated walk is executed again")                                 \
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
	/* Elastic blocks. */                                                  \
	X(no_dedupe, "no-dedupe", "a change that is repeated is made again")   \
	X(parked_stay, "parked-stay",                                          \
	  "items of a consumer that died never come back")                     \
	X(over_bound, "over-bound", "a queue takes more items than its bound") \
	X(back_to_end, "back-to-end",                                          \
	  "items that come back are not looked at again")                      \
	X(back_and_again, "back-and-again",                                    \
	  "an item that came back goes to who had it, too")                    \
	X(blk_seal_again, "append-behind-seal",                                \
	  "a sealed block of a file takes records")                            \
	X(blk_other_again, "other-again",                                      \
	  "a repeated get is answered with another item")                      \
	X(blk_forget_early, "forget-early",                                    \
	  "an answer is forgotten one too soon")                               \
	X(blk_no_credit, "no-credit",                                          \
	  "a later block counts its own items only")                           \
	X(kv_no_answers, "no-dedupe-after-split",                              \
	  "answers of sessions do not move with their slots")                  \
	X(kv_no_freeze, "no-freeze", "a block serves slots that leave it")     \
	X(kv_any_token, "any-token",                                           \
	  "a block takes batches of a move that is over")                      \
	X(kv_any_target, "stale-generation",                                   \
	  "a block gives slots to who has the token of another block")         \
	X(kv_group_on, "group-goes-on",                                        \
	  "what follows a refused change of the same key is executed")         \
	X(kv_silent, "silent-compact",                                         \
	  "records move without telling who reads them")                       \
	X(kv_part_again, "part-again",                                         \
	  "parts of a batch that were there are taken again")                  \
	X(kv_old_clock, "old-versions",                                        \
	  "versions begin anew in the block that slots move to")               \
	X(kv_early, "serve-early",                                             \
	  "a block serves slots of which a part has not come")                 \
	X(chain_early, "ack-before-tail",                                      \
	  "the head of a chain answers before the others have it")             \
	X(chain_no_lease, "no-serve-lease",                                    \
	  "a tail that is cut off goes on answering")                          \
	X(chain_no_dedupe, "no-dedupe-after-failover",                         \
	  "a new head does not know what was answered")                        \
	X(chain_any_epoch, "stale-epoch",                                      \
	  "members of a chain hear those that were cut out")                   \
	X(chain_no_rest, "copy-while-changed",                                 \
	  "a new member does not get what changes during its copy")            \
	X(watch_no_mark, "watch-no-mark",                                      \
	  "a block does not tell its watchers whence slots came")              \
	X(watch_any_order, "watch-any-order",                                  \
	  "slots that move do not say which events are older")                 \
	X(watch_own_ring, "own-ring",                                          \
	  "a new member of a chain does not get the last events")              \
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
	X(kv_unit_open, "unit-open",                                           \
	  "rows of a unit are not closed before they change")                  \
	X(kv_unit_redo, "unit-redo",                                           \
	  "a repair leaves a decided unit as it is")                           \
	X(kv_copied, "copied", "rows count as copied before they are")         \
	X(kv_overtake, "overtake",                                             \
	  "what has overtaken a put is taken for a put")                       \
	X(kv_no_fence, "no-fence", "clients that sleep are not fenced")        \
	/* Asynchronous far memory. */                                         \
	X(no_order, "no-order", "requests pass others that they overlap")      \
	X(early_ack, "early-ack", "writes are told done when they are posted") \
	X(other_bytes, "other-bytes",                                          \
	  "the switch sends a packet again with what it has at hand")          \
	X(red_now, "red-now",                                                  \
	  "progress that is sent again says what is known by now")             \
	X(no_skip, "repeat-writes", "a predecessor's writes are done again")   \
	X(old_final, "wrong-packet-number",                                    \
	  "nodes report the packet number that they began at")                 \
	X(no_fence, "no-fence",                                                \
	  "nodes do not end an old engine's queue pairs")                      \
	X(late_ring, "old-engine-publishes",                                   \
	  "the application lets the old engine write on")                      \
	/* Walks. */                                                           \
	X(walk_no_join, "walk-no-join",                                        \
	  "the verifier forgets the other ways to an instruction")             \
	X(walk_no_bound, "walk-no-bound",                                      \
	  "the verifier does not look at how large an index is")               \
	X(walk_any_pointer, "walk-any-pointer",                                \
	  "pointers that lead out of the region lead to its beginning")        \
	X(walk_wrong_stripe, "walk-wrong-stripe",                              \
	  "a node takes other nodes' stripes for its own")                     \
	X(walk_forward_store, "walk-forward-store",                            \
	  "a walk that stores is carried on by the switch")                    \
	X(stale_window, "stale-key",                                           \
	  "a window's key opens its memory after it was taken back")           \
	/* Coherent shared memory. */                                          \
	X(mind_answer_early, "answer-early",                                   \
	  "a writer is answered before the owner's FIN")                       \
	X(mind_grant_late, "grant-late",                                       \
	  "a grant counts from its answer, not from its decision")             \
	X(mind_forget_reader, "forget-reader",                                 \
	  "who was given the owner's bytes is not noted as a sharer")          \
	X(mind_drop_queue, "drop-queue",                                       \
	  "who waits for a busy region is forgotten when it is idle")          \
	X(mind_no_room, "no-recall", "nothing is recalled for who waits")      \
	X(mind_no_clean, "no-clean",                                           \
	  "a new switch grants before machines have cleaned up")               \
	X(mind_forget_owner, "forget-owner",                                   \
	  "a dead owner's region goes on with old bytes")                      \
	X(mind_fin_early, "fin-early",                                         \
	  "FIN is sent when give-backs are sent, not complete")                \
	X(mind_ignore_granted, "ignore-granted",                               \
	  "an INVAL does not wait for answers that are under way")             \
	X(mind_clean_early, "clean-early",                                     \
	  "CLEAN is sent when give-backs are sent, not complete")              \
	X(mind_get_beside_evict, "get-beside-evict",                           \
	  "a page is asked for while its EVICT is under way")                  \
	X(mind_get_beside_give, "get-beside-give",                             \
	  "a page is asked for while its give-back is under way")              \
	X(mind_late_protect, "late-protect",                                   \
	  "a page that is given back can still be written")                    \
	X(mind_split_forgets, "split-forgets",                                 \
	  "the right half of a split region forgets a machine")                \
	X(mind_join_owners, "join-owners", "regions of two owners are joined") \
	X(mind_split_gone, "split-gone",                                       \
	  "regions are split and joined while a dead machine is in them")      \
	X(coh_move_old, "one-place",                                           \
	  "what is given back during a move goes to the old node only")        \
	X(coh_pair_one, "one-copy",                                            \
	  "what two nodes have is written to the first one only")              \
	X(coh_pair_early, "pair-unnoted",                                      \
	  "what one of two nodes has is acknowledged before that is noted")    \
	X(coh_pair_other, "pair-other",                                        \
	  "where one of two nodes counts, the other one is looked at")         \
	X(coh_gone_early, "gone-early",                                        \
	  "a machine is noted as gone while what it gave back is on its way")  \
	X(coh_ack_early, "ack-before-memory",                                  \
	  "the switch acknowledges a give-back that memory has not")           \
	X(coh_old_bytes, "answer-of-before",                                   \
	  "a repeated get is answered with the bytes of the one before")       \
	X(coh_hold_old, "hold-old-bytes",                                      \
	  "a writer is answered with other bytes than the owner gave")         \
	X(coh_no_serial, "no-serials", "INVALs on the wire name no gets")      \
	/* The controller. */                                                  \
	X(ctl_no_guard, "no-term-guard",                                       \
	  "the ledger takes transactions of older terms")                      \
	X(ctl_answer_early, "answer-before-commit",                            \
	  "replies leave before what they tell of is committed")               \
	X(ctl_unknown_failed, "unknown-is-failed",                             \
	  "a transaction whose end is unknown is said to have failed")         \
	X(ctl_any_version, "any-version",                                      \
	  "reports about older grants lower the allowance")                    \
	X(ctl_any_epoch, "any-epoch",                                          \
	  "beats of a node's former runs are taken")                           \
	X(ctl_sum_up, "down-uses-nothing",                                     \
	  "what nodes that are down may use is not counted")                   \
	X(ctl_join_resets, "join-resets",                                      \
	  "a node that joins is taken for empty")                              \
	X(ctl_no_reload, "no-reload",                                          \
	  "a new leader goes on from what it remembers")                       \
	X(ctl_old_clock, "old-clock",                                          \
	  "silence towards the former leader counts for the new one")          \
	X(ctl_create_twice, "create-twice",                                    \
	  "a name that exists is made again")                                  \
	X(ctl_name_twice, "name-twice",                                        \
	  "a folder or file whose name exists is made again")                  \
	X(ctl_forget_up, "forget-living",                                      \
	  "a node that is up may be forgotten")                                \
	X(ctl_no_lease, "leads-for-ever",                                      \
	  "who was cut off goes on answering from what it remembers")          \
	X(ctl_keep_limit, "give-back-in-words",                                \
	  "a node says that it gives back, and uses it all the same")          \
	X(ctl_old_lease, "old-lease",                                          \
	  "leases run out by time in which another one led")                   \
	X(ctl_reuse_early, "reuse-early",                                      \
	  "a block's place is used again before its node has freed it")        \
	X(ctl_any_run, "any-run",                                              \
	  "blocks of a node's former run are taken for good")                  \
	X(ctl_ids_again, "ids-again",                                          \
	  "a new leader gives generations that were given before")             \
	X(ctl_take_ungiven, "take-ungiven",                                    \
	  "a copy counts before the node that has the region has given it")    \
	X(ctl_take_silent, "take-from-silent",                                 \
	  "what a silent node has is taken for gone, and its copy counts")     \
	X(ctl_take_over, "take-from-ended",                                    \
	  "the copy of a node that was started anew counts, given or not")     \
	X(ctl_given_unsaved, "given-unsaved",                                  \
	  "a new leader does not know what nodes that died had given")         \
	X(ctl_drop_ungiven, "drop-ungiven",                                    \
	  "a copy ends because nobody has said yet that it was given")         \
	X(ctl_drain_unsaved, "drain-unsaved",                                  \
	  "a new leader does not know which nodes are drained")                \
	X(ctl_left_early, "left-early",                                        \
	  "what is on a drained node is called all before it has heard of it") \
	X(ctl_admit_early, "admit-early",                                      \
	  "a copy of a block counts before it has all of it")                  \
	X(ctl_cut_last, "cut-last",                                            \
	  "the last copy of a block is given up with its node's silence")

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
