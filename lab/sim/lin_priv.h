/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the checker share: the history's inside, one key's search.
 */
#ifndef AQ_SIM_LIN_PRIV_H
#define AQ_SIM_LIN_PRIV_H

#include "lin.h"

#define LIN_NEVER UINT64_MAX /* a return that has not come */

struct lin_op {
	struct lin_value a, b, got;
	uint64_t invoke_pos; /* place among all events of the history */
	uint64_t return_pos; /* LIN_NEVER: open or info */
	uint64_t invoke_ns, return_ns;
	uint32_t key; /* index into keys[] */
	uint32_t process;
	uint8_t call; /* enum lin_call */
	uint8_t type; /* enum lin_type */
	uint8_t said; /* enum lin_said */
};

/* Distinct values with their places: keys and byte strings. */
struct lin_table {
	uint32_t *slot; /* 1 + index; 0: free */
	uint64_t slots; /* a power of two */
	uint64_t count;
};

struct lin_span {
	uint64_t offset;
	uint64_t len_bytes;
};

struct lin_history {
	struct lin_op *op;
	uint64_t ops, ops_room;
	uint64_t events;
	struct lin_value initial;
	struct lin_value *key; /* distinct keys in the order of first use */
	uint64_t keys_room;
	struct lin_table key_table;
	struct lin_span *text; /* byte strings; a value's bits are its index */
	uint64_t texts_room;
	struct lin_table text_table;
	uint8_t *bytes;
	uint64_t bytes_used, bytes_room;
};

/* ---- the object --------------------------------------------------------- */

/* May `op` take effect on a key whose value is `now`? Then *next is what it
 * leaves behind. */
bool lin_op_apply(const struct lin_op *op, struct lin_value now,
		  struct lin_value *next);
/* Whether it only reads, whatever the value is. */
bool lin_op_observes(const struct lin_op *op);
bool lin_model_has(enum lin_model model, enum lin_call call);

/* ---- the search --------------------------------------------------------- */

struct lin_search;

int lin_search_create(uint64_t cache_bytes, struct lin_search **out) MUST_CHECK;
void lin_search_destroy(struct lin_search *s);

/*
 * One key: `op` in the order of their invocations, without failed ones;
 * is_unseen[i]: a write whose value no operation can meet; NULL: none is known.
 * *steps_left is counted down. *blocked: the operation whose return no order
 * reaches (index into op). -ENOMEM.
 */
int lin_search_run(struct lin_search *s, const struct lin_op *const *op,
		   const bool *is_unseen, uint32_t count,
		   struct lin_value initial, uint64_t *steps_left,
		   enum lin_verdict *verdict, uint32_t *blocked) MUST_CHECK;

#endif
