/* SPDX-License-Identifier: Apache-2.0 */
/* Operations with values: which of them go inside a message, which wait in the
 * staging memory for the node, and which stay where they are. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "el_priv.h"

enum {
	HEAD = sizeof(struct block_message_wire),
	EACH = sizeof(struct block_op_wire),
};

/* What a message has room for. */
struct cargo {
	size_t message_bytes;
	size_t staging_bytes;
	unsigned count;
	bool has_outside;
};

/* Staging exists once there is a connection; before, values go inside only. */
static bool load(struct el_object *o, struct cargo *c, const struct el_value *v,
		 struct block_op *op)
{
	size_t inside = align_up(v->len_bytes, 8);
	uint8_t *at;

	if (c->count == BLOCK_OPS_MAX ||
	    c->message_bytes + EACH > BLOCK_MESSAGE_MAX)
		return false;
	op->length = (uint32_t)v->len_bytes;
	if (v->len_bytes <= BLOCK_INSIDE_MAX &&
	    c->message_bytes + EACH + inside <= BLOCK_MESSAGE_MAX) {
		op->value = v->data ? v->data : (const void *)"";
		c->message_bytes += EACH + inside;
		c->count++;
		return true;
	}
	if (!o->mr || c->staging_bytes + inside > EL_STAGING_BYTES)
		return false;
	at = el_stage(o, &op->key) + c->staging_bytes;
	memcpy(at, v->data, v->len_bytes);
	op->address = (uintptr_t)at;
	c->staging_bytes += inside;
	c->message_bytes += EACH;
	c->count++;
	return true;
}

/* One value that is larger than staging memory, from where it lies. */
static int send_large(struct el_object *o, uint64_t number, struct block_op *op,
		      const struct el_value *v, struct block_result *r,
		      uint64_t deadline_ns)
{
	struct ibv_mr *mr =
		el_register(o, (void *)(uintptr_t)v->data, v->len_bytes);
	int err;

	if (!mr)
		return error_set(-ENOMEM, "memory cannot be registered");
	op->length = (uint32_t)v->len_bytes;
	op->address = (uintptr_t)v->data;
	op->key = mr->rkey;
	err = el_call(o, number, op, 1, r, deadline_ns);
	el_unregister(o, mr);
	return err;
}

int el_warm_up(struct el_object *o, uint64_t number, uint64_t deadline_ns)
{
	enum block_status status;
	struct el_stat stat;

	return o->mr ? 0 : el_stat(o, number, &stat, &status, deadline_ns);
}

int el_send(struct el_object *o, uint64_t number, enum block_opcode opcode,
	    uint64_t arg, struct el_value *values, unsigned count,
	    unsigned *done, enum block_status *status, uint64_t *final,
	    uint64_t deadline_ns)
{
	struct block_result r[BLOCK_OPS_MAX];
	struct block_op op[BLOCK_OPS_MAX];
	struct cargo c = {.message_bytes = HEAD};
	int err = el_warm_up(o, number, deadline_ns);

	*done = 0;
	*status = BLOCK_OK;
	if (err)
		return err;
	while (c.count < count && c.count < BLOCK_OPS_MAX) {
		op[c.count] = (struct block_op){.opcode = opcode, .arg = arg};
		if (!load(o, &c, &values[c.count], &op[c.count]))
			break;
	}
	if (c.count) {
		err = el_call(o, number, op, c.count, r, deadline_ns);
	} else {
		c.count = 1;
		err = send_large(o, number, op, values, r, deadline_ns);
	}
	if (err)
		return err;
	for (; *done < c.count && r[*done].status == BLOCK_OK; (*done)++)
		values[*done].answer = r[*done].value;
	if (*done < c.count) {
		*status = r[*done].status;
		*final = r[*done].value;
	}
	return 0;
}

int el_tell(struct el_object *o, uint64_t number, enum block_opcode opcode,
	    uint64_t arg, struct block_result *result, uint64_t deadline_ns)
{
	struct block_op op = {.opcode = opcode, .arg = arg};

	return el_call(o, number, &op, 1, result, deadline_ns);
}

int el_stat(struct el_object *o, uint64_t number, struct el_stat *out,
	    enum block_status *status, uint64_t deadline_ns)
{
	struct block_stat_wire w;
	struct block_result r;
	int err = el_tell(o, number, BLOCK_STAT, 0, &r, deadline_ns);

	if (err)
		return err;
	*out = (struct el_stat){0};
	*status = r.status;
	if (r.status != BLOCK_OK)
		return 0;
	if (r.length != sizeof(w) || !r.data)
		return error_set(-EPROTO, "a node answered something else");
	memcpy(&w, r.data, sizeof(w));
	*out = (struct el_stat){
		.address = be64_get(w.address),
		.key = be32_get(w.key),
		.flags = be32_get(w.flags),
		.end = be64_get(w.end),
		.items = be64_get(w.items),
	};
	return 0;
}
