/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on one replica, each from its beginning to its end. */
#include <errno.h>

#include "base/error.h"
#include "kv_priv.h"

int kv_replica_read(struct kv_replica *c, struct aq_kv_op *op,
		    uint64_t *expire_at_ms, bool *has_entry)
{
	struct kv_get *g;
	int err, tries = 0;

	do {
		err = kv_op_begin(c);
		if (err)
			return err;
		err = kv_get_drain(c, NULL);
		if (!err)
			err = kv_get_start(c, op, true, &g);
		if (err)
			continue;
		err = kv_get_drain(c, g);
		if (!err) {
			if (expire_at_ms)
				*expire_at_ms = g->expire_at_ms;
			if (has_entry)
				*has_entry = !op->err || op->err == -EMSGSIZE ||
					     g->has_entry;
			/* It is the last that was done. */
			c->done_count--;
			return op->err;
		}
		kv_get_withdraw(c, g);
	} while (c->kit.is_broken && tries++ == 0);
	return kv_op_end(c, err);
}

int kv_replica_change(struct kv_replica *c, struct kv_mod *m)
{
	int err = kv_op_begin(c);

	if (err)
		return err;
	m->is_sent = false;
	err = kv_get_drain(c, NULL);
	if (!err)
		err = kv_mod_run(c, m);
	err = kv_op_end(c, err);
	/* Locks, and a large value that no row knew of, are repaired by whoever
	 * ended this client. */
	return err == -ESTALE && !m->is_sent ? KV_E_VIEW : err;
}

int kv_replica_unit(struct kv_replica *c, struct kv_unit *u)
{
	int err = kv_op_begin(c);

	if (err)
		return err;
	err = kv_get_drain(c, NULL);
	if (!err)
		err = kv_unit_run(c, u);
	return kv_op_end(c, err);
}

int kv_replica_reap(struct kv_replica *c)
{
	int err = kv_op_begin(c);

	if (err)
		return err;
	err = kv_get_drain(c, NULL);
	if (!err)
		err = kv_reap(c);
	return kv_op_end(c, err);
}
