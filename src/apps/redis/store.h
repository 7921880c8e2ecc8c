/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys as commands see them: those of the table, or, while a transaction
 * runs, what it has made of its own keys so far (the stage). Results are those
 * of the functions of <aquifer/kv.h> with the same names.
 */
#ifndef AQ_REDIS_STORE_H
#define AQ_REDIS_STORE_H

#include <aquifer/kv.h>

#include "number.h"
#include "resp.h"

struct gateway;
struct reply;

/* The whole value, into a buffer that is emptied before. -ENOENT, -ENOMEM. */
int store_get(struct gateway *g, struct resp_str key,
	      struct reply *into) MUST_CHECK;
int store_length(struct gateway *g, struct resp_str key,
		 size_t *len) MUST_CHECK;
int store_expiry(struct gateway *g, struct resp_str key,
		 uint64_t *expire_at_ms) MUST_CHECK;
int store_put(struct gateway *g, struct resp_str key, struct resp_str value,
	      const struct aq_kv_put_options *options) MUST_CHECK;
int store_del(struct gateway *g, struct resp_str key) MUST_CHECK;
int store_incr(struct gateway *g, struct resp_str key, int64_t add,
	       int64_t *result) MUST_CHECK;
int store_modify(struct gateway *g, struct resp_str key, aq_kv_change_fn fn,
		 void *user) MUST_CHECK;

/* INCR and its relatives as a function of aq_kv_modify. */
struct store_sum {
	int64_t add;
	int64_t result;
	char text[NUMBER_TEXT_MAX];
};

/* `user` is a struct store_sum. -EINVAL: no number is stored; -ERANGE. */
int store_sum_fn(struct aq_kv_change *ch, void *user) MUST_CHECK;

/* EXPIRE and its relatives. */
enum store_end_flags {
	STORE_END_NX = 1u << 0,
	STORE_END_XX = 1u << 1,
	STORE_END_GT = 1u << 2,
	STORE_END_LT = 1u << 3,
};

struct store_end {
	unsigned flags; /* enum store_end_flags */
	int64_t when_ms;
	int64_t now_ms;
	bool done;
};

/* `user` is a struct store_end. */
int store_end_fn(struct aq_kv_change *ch, void *user) MUST_CHECK;
/* PERSIST: only `done` of the struct store_end counts. */
int store_persist_fn(struct aq_kv_change *ch, void *user) MUST_CHECK;

/* APPEND. */
struct store_append {
	struct resp_str value;
	struct reply *made; /* where the new value is until it is stored */
	size_t len;	    /* of that */
};

/* `user` is a struct store_append. -E2BIG, -ENOMEM. */
int store_append_fn(struct aq_kv_change *ch, void *user) MUST_CHECK;

/* ---- stage.c: the keys of one transaction -------------------------------- */

enum {
	STAGE_BYTES_MAX = 128 << 20, /* values that a transaction makes */
};

struct stage_key {
	char *made; /* a value that a command has stored */
	const char *value;
	size_t len;
	uint64_t expire_at_ms;
	bool is_there;
	bool is_changed;
};

struct stage {
	const struct aq_kv_key *keys;
	uint32_t count;
	struct stage_key *key;
	uint64_t bytes;
};

/* -ENOMEM. The keys stay the caller's. */
int stage_init(struct stage *s, const struct aq_kv_key *keys,
	       uint32_t count) MUST_CHECK;
void stage_release(struct stage *s);
/* As the table has them; `changes` lives until stage_end. */
void stage_begin(struct stage *s, const struct aq_kv_change *changes);
/* What becomes of them. The values live until the next stage_begin. */
void stage_end(struct stage *s, struct aq_kv_change *changes);
/* As aq_kv_modify. -EINVAL: the key is none of the transaction's. */
int stage_modify(struct stage *s, struct resp_str key, aq_kv_change_fn fn,
		 void *user) MUST_CHECK;

#endif
