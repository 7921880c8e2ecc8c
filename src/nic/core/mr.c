/* SPDX-License-Identifier: Apache-2.0 */
/* Protection domains, memory regions and device memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory_priv.h"
#include "nic_priv.h"

enum {
	REMOTE_ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_ATOMIC,
	/* What a region may be given. Optional flags need no support. */
	MR_ACCESS = REMOTE_ACCESS | IBV_ACCESS_LOCAL_WRITE |
		    IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED,
	DM_LOG_ALIGN_MAX = 12,
	/* Device memory is accessed in words of this size. */
	DM_WORD_BYTES = 4,
};

int nic_pd_create(struct nic *nic, struct nic_pd **out)
{
	struct nic_pd *pd;

	if (nic->pd_count >= NIC_PD_MAX)
		return -ENOMEM;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	pd->nic = nic;
	pd->turns = pd;
	list_init(&pd->ready);
	list_init(&pd->turn);
	list_init(&pd->walks);
	list_init(&pd->walk_turn);
	nic->pd_count++;
	*out = pd;
	return 0;
}

int nic_pd_destroy(struct nic_pd *pd)
{
	if (pd->users)
		return -EBUSY;
	pd->nic->pd_count--;
	if (pd->turns != pd)
		pd->turns->users--;
	list_remove(&pd->turn);
	if (pd->nic->input_pd == pd)
		pd->nic->input_pd = NULL;
	if (pd->nic->last_domain == pd)
		pd->nic->last_domain = NULL;
	free(pd);
	return 0;
}

int nic_pd_share_turns(struct nic_pd *pd, struct nic_pd *with)
{
	if (pd->users || pd->turns != pd || with->nic != pd->nic)
		return -EINVAL;
	pd->turns = with->turns;
	if (pd->turns != pd)
		pd->turns->users++;
	return 0;
}

static int check_attr(const struct nic_mr_attr *attr)
{
	unsigned access = (unsigned)attr->access & ~IBV_ACCESS_OPTIONAL_RANGE;

	if (access & ~(unsigned)MR_ACCESS)
		return -EINVAL;
	/* Who may write remotely must be able to write locally. */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (attr->length > UINT64_MAX - attr->iova ||
	    attr->length > UINTPTR_MAX - (uintptr_t)attr->addr)
		return -EINVAL;
	return 0;
}

static void set_key(struct nic_key *k, const struct nic_mr_attr *attr)
{
	key_holes_forget(k);
	k->access = (uint32_t)attr->access;
	k->length = attr->length;
	k->host = attr->addr;
	k->iova = attr->access & IBV_ACCESS_ZERO_BASED ? 0 : attr->iova;
	k->is_watched = attr->is_watched;
	k->valid = true;
}

int nic_mr_reg(struct nic_pd *pd, const struct nic_mr_attr *attr,
	       struct nic_mr **out)
{
	struct nic_mr *mr;
	int err = check_attr(attr);

	if (err)
		return err;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	err = key_insert(pd->nic, &mr->key);
	if (err) {
		free(mr);
		return err;
	}
	mr->key.pd = pd;
	set_key(&mr->key, attr);
	pd->users++;
	*out = mr;
	return 0;
}

static void revoke_direct(struct nic *nic, uint32_t key)
{
	if (nic->env->ops->direct_revoke)
		nic->env->ops->direct_revoke(nic->env, key);
}

/* Peers that hold the old key must not reach other memory or another domain
 * with it: then it changes. Other rights for the same memory keep it. */
int nic_mr_rereg(struct nic_mr *mr, int flags, struct nic_pd *pd,
		 const struct nic_mr_attr *attr)
{
	struct nic *nic = mr->key.pd->nic;
	struct nic_mr_attr merged = {
		.addr = mr->key.host,
		.length = mr->key.length,
		.iova = mr->key.iova,
		.access = (int)mr->key.access,
		.is_watched = mr->key.is_watched,
	};
	uint32_t old = mr->key.key;
	int err;

	if (mr->windows || mr->dm)
		return -EBUSY;
	/* Its holes would be forgotten. */
	if (mr->key.holes && !(flags & IBV_REREG_MR_CHANGE_TRANSLATION))
		return -EFAULT;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		merged.addr = attr->addr;
		merged.length = attr->length;
		merged.iova = attr->iova;
		merged.is_watched = attr->is_watched;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		merged.access = attr->access;
	err = check_attr(&merged);
	if (err)
		return err;
	if (flags & (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD))
		err = key_renew(nic, &mr->key);
	if (err)
		return err;
	revoke_direct(nic, old);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		mr->key.pd->users--;
		mr->key.pd = pd;
		pd->users++;
	}
	set_key(&mr->key, &merged);
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		mr->key.place = (struct nic_place){.count = 1};
	key_changed(&nic->keys);
	return 0;
}

int nic_mr_dereg(struct nic_mr *mr)
{
	struct nic *nic = mr->key.pd->nic;

	if (mr->windows)
		return -EBUSY;
	revoke_direct(nic, mr->key.key);
	key_remove(nic, &mr->key);
	mr->key.pd->users--;
	if (mr->dm)
		mr->dm->users--;
	free(mr);
	return 0;
}

int nic_mr_set_place(struct nic_mr *mr, const struct nic_place *place)
{
	bool striped = place->count > 1;
	struct nic_place same = mr->key.place;

	if (place->count == 0 || place->count > NIC_PLACE_COUNT_MAX ||
	    place->index >= place->count ||
	    (striped ? place->shift < NIC_PLACE_SHIFT_MIN ||
			       place->shift > NIC_PLACE_SHIFT_MAX
		     : place->shift != 0))
		return -EINVAL;
	same.space = place->space; /* which windows do not have */
	if (mr->windows && memcmp(&same, place, sizeof(same)) != 0)
		return -EBUSY;
	mr->key.place = *place;
	key_changed(&mr->key.pd->nic->keys);
	return 0;
}

uint32_t nic_mr_key(const struct nic_mr *mr)
{
	return mr->key.key;
}

uint64_t nic_dm_size_max(const struct nic *nic)
{
	return NIC_DM_BYTES_MAX;
}

int nic_dm_alloc(struct nic *nic, uint64_t length, uint32_t log_align,
		 struct nic_dm **out)
{
	struct nic_dm *dm;
	size_t align;

	if (length == 0 || log_align > DM_LOG_ALIGN_MAX)
		return -EINVAL;
	align = (size_t)1 << u32_max(log_align, 6);
	if (length > NIC_DM_BYTES_MAX - nic->dm_used)
		return -ENOMEM;
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return -ENOMEM;
	dm->bytes = aligned_alloc(align, align_up(length, align));
	if (!dm->bytes) {
		free(dm);
		return -ENOMEM;
	}
	memset(dm->bytes, 0, length);
	dm->nic = nic;
	dm->length = length;
	nic->dm_used += length;
	*out = dm;
	return 0;
}

int nic_dm_free(struct nic_dm *dm)
{
	if (dm->users)
		return -EBUSY;
	dm->nic->dm_used -= dm->length;
	free(dm->bytes);
	free(dm);
	return 0;
}

static int dm_check(const struct nic_dm *dm, uint64_t offset, uint64_t length)
{
	if (offset > dm->length || length > dm->length - offset)
		return -EINVAL;
	if (offset % DM_WORD_BYTES || length % DM_WORD_BYTES)
		return -EINVAL;
	return 0;
}

int nic_dm_write(struct nic_dm *dm, uint64_t offset, const void *src,
		 size_t len_bytes)
{
	int err = dm_check(dm, offset, len_bytes);

	if (!err)
		memcpy(dm->bytes + offset, src, len_bytes);
	return err;
}

int nic_dm_read(const struct nic_dm *dm, uint64_t offset, void *dst,
		size_t len_bytes)
{
	int err = dm_check(dm, offset, len_bytes);

	if (!err)
		memcpy(dst, dm->bytes + offset, len_bytes);
	return err;
}

int nic_mr_reg_dm(struct nic_pd *pd, struct nic_dm *dm, uint64_t offset,
		  uint64_t length, int access, struct nic_mr **out)
{
	struct nic_mr_attr attr = {.length = length, .access = access};
	int err;

	/* Device memory has no address of its own: its keys start at 0. */
	if (!(access & IBV_ACCESS_ZERO_BASED))
		return -EINVAL;
	err = dm_check(dm, offset, length);
	if (err)
		return err;
	attr.addr = dm->bytes + offset;
	err = nic_mr_reg(pd, &attr, out);
	if (err)
		return err;
	(*out)->dm = dm;
	dm->users++;
	return 0;
}
