/* SPDX-License-Identifier: Apache-2.0 */
/* Memory windows: narrower grants on a region, bound through a send queue. */
#include <errno.h>
#include <stdlib.h>

#include "base/plant.h"
#include "qp_priv.h"

enum {
	/* Local access goes by the region; to name it here changes nothing. */
	WINDOW_ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED |
			IBV_ACCESS_LOCAL_WRITE,
};

int nic_mw_alloc(struct nic_pd *pd, enum ibv_mw_type type, struct nic_mw **out)
{
	struct nic_mw *mw;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return -EINVAL;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	err = key_insert(pd->nic, &mw->key);
	if (err) {
		free(mw);
		return err;
	}
	mw->type = type;
	mw->key.pd = pd;
	mw->key.is_window = true;
	pd->users++;
	*out = mw;
	return 0;
}

static void unbind(struct nic_mw *mw)
{
	key_holes_forget(&mw->key);
	mw->key.valid = false;
	key_changed(&mw->key.pd->nic->keys);
	if (mw->key.qp)
		mw->key.qp->windows--;
	mw->key.qp = NULL;
	if (mw->mr)
		mw->mr->windows--;
	mw->mr = NULL;
}

int nic_mw_dealloc(struct nic_mw *mw)
{
	if (PLANTED(stale_window) && mw->mr) {
		mw->mr->windows--;
		mw->mr = NULL;
		mw->key.pd->users--;
		return 0;
	}
	unbind(mw);
	key_remove(mw->key.pd->nic, &mw->key);
	mw->key.pd->users--;
	free(mw);
	return 0;
}

uint32_t nic_mw_key(const struct nic_mw *mw)
{
	return mw->key.key;
}

/* The window that a key belongs to, bound or not. */
static struct nic_mw *find_window(struct nic *nic, uint32_t key)
{
	struct nic_key *k = key_at(&nic->keys, key);

	return k && k->is_window ? container_of(k, struct nic_mw, key) : NULL;
}

/* Everything is checked before the window changes (IBA 10.6.7.2). */
int mw_bind(struct nic_qp *qp, const struct wqe_bind *bind)
{
	uint32_t new_key = be32_get(bind->new_rkey);
	uint32_t access = be32_get(bind->access);
	uint64_t addr = be64_get(bind->addr);
	uint64_t length = be64_get(bind->length);
	struct nic_mw *mw = find_window(qp->nic, be32_get(bind->mw_rkey));
	struct nic_key *k = key_find(&qp->nic->keys, be32_get(bind->mr_lkey));
	struct nic_mr *mr =
		k && !k->is_window ? container_of(k, struct nic_mr, key) : NULL;
	uint64_t offset;

	if (!mw || mw->key.pd != qp->pd || mw->key.key >> 8 != new_key >> 8)
		return -EINVAL;
	/* A bound window of type 2 must be invalidated first. */
	if (mw->type == IBV_MW_TYPE_2 && mw->key.valid)
		return -EINVAL;
	if (length == 0) {
		if (mw->type == IBV_MW_TYPE_2)
			return -EINVAL;
		unbind(mw);
		key_retire(&qp->nic->keys, mw->key.key);
		mw->key.key = new_key;
		return 0;
	}
	if (!mr || mr->key.pd != qp->pd ||
	    !(mr->key.access & IBV_ACCESS_MW_BIND) ||
	    (access & ~(uint32_t)WINDOW_ACCESS))
		return -EINVAL;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(mr->key.access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	offset = addr - mr->key.iova;
	if (offset > mr->key.length || length > mr->key.length - offset)
		return -EINVAL;
	unbind(mw);
	mw->mr = mr;
	mr->windows++;
	key_retire(&qp->nic->keys, mw->key.key);
	mw->key.key = new_key;
	mw->key.access = access;
	mw->key.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : addr;
	mw->key.length = length;
	mw->key.host = mr->key.host + offset;
	mw->key.place = mr->key.place;
	/* It is one connection's, and ends with that: no switch carries walks
	 * with such a key on. */
	mw->key.place.space = 0;
	mw->key.window_at = offset;
	if (mw->type == IBV_MW_TYPE_2) {
		mw->key.qp = qp;
		qp->windows++;
	}
	mw->key.valid = true;
	return 0;
}

/* The queue pair's memory may soon be another one's, which must not inherit
 * them. Windows are few and this is rare: a walk over all keys will do. */
void mw_end_all(struct nic_qp *qp)
{
	struct key_table *t = &qp->nic->keys;
	uint32_t i;

	for (i = 0; qp->windows && i <= t->mask; i++) {
		struct nic_key *k = t->slots[i].key;

		if (k && k->qp == qp)
			unbind(container_of(k, struct nic_mw, key));
	}
}

int key_invalidate(struct nic_qp *qp, uint32_t key)
{
	struct nic_key *k = key_find(&qp->nic->keys, key);

	if (!k || k->pd != qp->pd || !k->is_window)
		return -EINVAL;
	if (k->qp != qp)
		return -EINVAL; /* type 1, or bound to another queue pair */
	unbind(container_of(k, struct nic_mw, key));
	return 0;
}
