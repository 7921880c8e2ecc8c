/* SPDX-License-Identifier: Apache-2.0 */
/* What each operation may do to a key, and the names of models and calls. */
#include <errno.h>
#include <string.h>

#include "lin_priv.h"

static const char *const call_names[LIN_CALLS] = {
	[LIN_READ] = "read",	 [LIN_WRITE] = "write",
	[LIN_CAS] = "cas",	 [LIN_DELETE] = "delete",
	[LIN_INSERT] = "insert", [LIN_UPDATE] = "update",
	[LIN_FAA] = "faa",
};

#define BIT(call) (1u << (call))
static const struct {
	const char *name;
	unsigned calls;
} models[] = {
	[LIN_MODEL_REGISTER] = {"register", BIT(LIN_READ) | BIT(LIN_WRITE)},
	[LIN_MODEL_CAS_REGISTER] = {"cas-register", BIT(LIN_READ) |
							    BIT(LIN_WRITE) |
							    BIT(LIN_CAS)},
	[LIN_MODEL_COUNTER] = {"counter", BIT(LIN_READ) | BIT(LIN_FAA)},
	[LIN_MODEL_KV] = {"kv", BIT(LIN_CALLS) - 1},
};

/*
 * A condition that was said to hold or not must do so; where nothing was said,
 * either will do.
 */
static bool agrees(const struct lin_op *op, bool holds)
{
	return op->said == LIN_SAID_NOTHING || (op->said == LIN_YES) == holds;
}

static bool apply_faa(const struct lin_op *op, struct lin_value now,
		      struct lin_value *next)
{
	/* A counter that does not exist yet counts from 0. */
	uint64_t before = now.kind == LIN_NIL ? 0 : now.bits;

	if (now.kind == LIN_BYTES)
		return false;
	if (op->said == LIN_YES &&
	    (op->got.kind != LIN_INT || op->got.bits != before))
		return false;
	*next = lin_int(before + op->a.bits);
	return true;
}

bool lin_op_apply(const struct lin_op *op, struct lin_value now,
		  struct lin_value *next)
{
	bool holds;

	*next = now;
	switch ((enum lin_call)op->call) {
	case LIN_READ:
		return op->said == LIN_SAID_NOTHING ||
		       lin_value_equal(now, op->got);
	case LIN_WRITE:
		*next = op->a;
		return true;
	case LIN_CAS:
		holds = lin_value_equal(now, op->a);
		if (holds)
			*next = op->b;
		return agrees(op, holds);
	case LIN_DELETE:
		*next = lin_nil();
		return agrees(op, now.kind != LIN_NIL);
	case LIN_INSERT:
		holds = now.kind == LIN_NIL;
		if (holds)
			*next = op->a;
		return agrees(op, holds);
	case LIN_UPDATE:
		holds = now.kind != LIN_NIL;
		if (holds)
			*next = op->a;
		return agrees(op, holds);
	case LIN_FAA:
		return apply_faa(op, now, next);
	case LIN_CALLS:
		break;
	}
	return false;
}

bool lin_op_observes(const struct lin_op *op)
{
	return op->call == LIN_READ || op->said == LIN_NO;
}

bool lin_model_has(enum lin_model model, enum lin_call call)
{
	return (models[model].calls & BIT(call)) != 0;
}

int lin_model_find(const char *name, enum lin_model *model)
{
	for (size_t i = 0; i < ARRAY_LEN(models); i++) {
		if (!strcmp(models[i].name, name)) {
			*model = (enum lin_model)i;
			return 0;
		}
	}
	return -ENOENT;
}

const char *lin_model_name(enum lin_model model)
{
	return models[model].name;
}

const char *lin_call_name(enum lin_call call)
{
	return call < LIN_CALLS ? call_names[call] : "?";
}

const char *lin_verdict_name(enum lin_verdict verdict)
{
	static const char *const names[] = {"linearizable", "violated",
					    "unknown"};

	return names[verdict];
}
