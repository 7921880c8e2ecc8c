/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linearizability: histories of concurrent operations on keys, and a checker
 * that searches for an order that explains them. A history is recorded in the
 * process (lin_invoke, lin_return) or read from a JSONL file (lin_file.h).
 *
 * Every key is an object of its own: a value or nothing. The order of events
 * is the order of the calls, not their times. A history belongs to one thread
 * at a time; threads that share one hold a lock around each call, invoke before
 * the operation starts and return after it ended.
 */
#ifndef AQ_SIM_LIN_H
#define AQ_SIM_LIN_H

#include <stdio.h>

#include "base/base.h"

/* ---- values ------------------------------------------------------------- */

enum lin_kind {
	LIN_NIL = 0, /* no value: the key is absent */
	LIN_INT,
	LIN_BYTES, /* of this history only: see lin_bytes */
};

/* A value or a key. */
struct lin_value {
	uint64_t bits;
	uint32_t kind; /* enum lin_kind */
	uint32_t zero;
};

static inline struct lin_value lin_nil(void)
{
	return (struct lin_value){0, LIN_NIL, 0};
}

static inline struct lin_value lin_int(uint64_t number)
{
	return (struct lin_value){number, LIN_INT, 0};
}

static inline bool lin_value_equal(struct lin_value a, struct lin_value b)
{
	return a.bits == b.bits && a.kind == b.kind;
}

/* ---- recording ---------------------------------------------------------- */

/* What is called; `a` and `b` are lin_invoke's. */
enum lin_call {
	LIN_READ,   /* its result: the value, or nil */
	LIN_WRITE,  /* of a */
	LIN_CAS,    /* a becomes b; LIN_NO: the value was not a */
	LIN_DELETE, /* LIN_NO: there was none */
	LIN_INSERT, /* of a where there is none; LIN_NO: there was one */
	LIN_UPDATE, /* to a where there is one; LIN_NO: there was none */
	LIN_FAA,    /* adds integer a; its result: the value before */
	LIN_CALLS,
};

/* How it ended. */
enum lin_type {
	LIN_OPEN, /* it has not: may or may not happen */
	LIN_OK,
	LIN_FAIL, /* it certainly did not and will not happen */
	LIN_INFO, /* unknown: as if it never ended */
};

/* What an operation that ended with LIN_OK tells about the value. */
enum lin_said {
	LIN_SAID_NOTHING, /* only that it is done */
	LIN_YES,	  /* the condition held, or `got` is the value */
	LIN_NO,		  /* the condition did not hold; nothing changed */
};

struct lin_history;

int lin_history_create(struct lin_history **out) MUST_CHECK;
void lin_history_destroy(struct lin_history *h);
/* Forgets all operations and values; keeps the memory. */
void lin_history_clear(struct lin_history *h);
/* The initial value of every key; nil by default. */
void lin_history_set_initial(struct lin_history *h, struct lin_value v);

/* The value or key that stands for these bytes: equal bytes, equal value. */
int lin_bytes(struct lin_history *h, const void *data, size_t len_bytes,
	      struct lin_value *out) MUST_CHECK;

/*
 * An operation starts: its number, or -errno (-ENOMEM, -ENOSPC beyond
 * LIN_OPS_MAX). `process` is a label for reports; one process may have several
 * operations open. Operations that never return may happen at any later time.
 */
int64_t lin_invoke(struct lin_history *h, uint32_t process,
		   struct lin_value key, enum lin_call call, struct lin_value a,
		   struct lin_value b, uint64_t time_ns) MUST_CHECK;
/* It ended. An operation ends once; LIN_INFO may also just be left out. */
void lin_return(struct lin_history *h, int64_t op, enum lin_type type,
		enum lin_said said, struct lin_value got, uint64_t time_ns);

/* The common ones, in short. */
static inline void lin_return_ok(struct lin_history *h, int64_t op, uint64_t ns)
{
	lin_return(h, op, LIN_OK, LIN_SAID_NOTHING, lin_nil(), ns);
}

static inline void lin_return_got(struct lin_history *h, int64_t op,
				  struct lin_value got, uint64_t ns)
{
	lin_return(h, op, LIN_OK, LIN_YES, got, ns);
}

uint64_t lin_history_op_count(const struct lin_history *h);

/* ---- checking ----------------------------------------------------------- */

/* What the keys are. A history with other calls is refused (-EINVAL). */
enum lin_model {
	LIN_MODEL_REGISTER,	/* read, write */
	LIN_MODEL_CAS_REGISTER, /* and compare-and-swap */
	LIN_MODEL_COUNTER,	/* read, fetch-and-add */
	LIN_MODEL_KV,		/* everything */
};

enum lin_verdict {
	LIN_LINEARIZABLE = 0,
	LIN_VIOLATED,
	LIN_UNKNOWN, /* the search met its limit: not a pass */
};

/* 0 in a field: the default. */
struct lin_limits {
	uint64_t steps;	      /* of the search, all keys together */
	uint64_t cache_bytes; /* of remembered states; beyond, it is slower */
};

enum {
	LIN_OPS_MAX = 1 << 26,
	LIN_TEXT_MAX = 512,
};

struct lin_result {
	enum lin_verdict verdict; /* the worst of all keys */
	uint64_t ops;
	uint64_t keys;
	uint64_t keys_violated;
	uint64_t keys_unknown;
	uint64_t steps;
	struct lin_value key; /* the first violated, else the first unknown */
	/* The first return that no order can explain, as an operation. */
	int64_t op;
	char text[LIN_TEXT_MAX]; /* in words; "" when linearizable */
};

/* Checks every key. 0, or -errno when it could not (-ENOMEM, -EINVAL); what it
 * found is in `res`. The history stays as it is. */
int lin_check(const struct lin_history *h, enum lin_model model,
	      const struct lin_limits *limits,
	      struct lin_result *res) MUST_CHECK;

/* "register", "cas-register", "counter", "kv"; -ENOENT. */
int lin_model_find(const char *name, enum lin_model *model) MUST_CHECK;
const char *lin_model_name(enum lin_model model);
const char *lin_verdict_name(enum lin_verdict verdict);
const char *lin_call_name(enum lin_call call);

/* ---- showing ------------------------------------------------------------ */

/* At most len_bytes with the NUL; returns what a longer buffer would hold. */
size_t lin_value_text(const struct lin_history *h, struct lin_value v,
		      char *buf, size_t len_bytes);
/*
 * The operations of one key up to the one that cannot be explained (op, or -1:
 * all), one line each, at most `lines` of the last.
 */
void lin_show_key(const struct lin_history *h, struct lin_value key, int64_t op,
		  unsigned lines, FILE *out);

#endif
