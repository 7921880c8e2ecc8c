/* SPDX-License-Identifier: Apache-2.0 */
/* A client's registered memory and its connection. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "kit.h"

enum {
	ALIGN = 4096,
};

/* ---- memory ------------------------------------------------------------- */

static int make_arena(struct kit_client *k, const struct kit_part *part,
		      unsigned count)
{
	size_t at = 0;

	for (unsigned i = 0; i < count; i++)
		at += align_up(part[i].bytes, CACHE_LINE);
	k->arena_bytes = align_up(at, ALIGN);
	k->arena = aligned_alloc(ALIGN, k->arena_bytes);
	if (!k->arena)
		return error_set(-ENOMEM, "no memory for a client");
	memset(k->arena, 0, k->arena_bytes);
	at = 0;
	for (unsigned i = 0; i < count; i++) {
		uint8_t *p = k->arena + at;

		memcpy(part[i].to, &p, sizeof(p));
		at += align_up(part[i].bytes, CACHE_LINE);
	}
	return 0;
}

static struct ibv_mr *register_memory(struct kit_client *k, void *p,
				      size_t bytes)
{
	struct ibv_mr *mr = k->remote.link->verbs->reg_mr(
		k->remote.link->pd, p, bytes, IBV_ACCESS_LOCAL_WRITE);

	if (!mr)
		(void)error_set(-ENOMEM, "the NIC registers no memory");
	return mr;
}

static void free_big(struct kit_client *k)
{
	if (k->big_mr)
		(void)k->remote.link->verbs->dereg_mr(k->big_mr);
	free(k->big);
	k->big_mr = NULL;
	k->big = NULL;
	k->big_bytes = 0;
}

int kit_big_reserve(struct kit_client *k, uint64_t bytes)
{
	if (bytes <= k->big_bytes)
		return 0;
	free_big(k);
	bytes = align_up(bytes, ALIGN);
	k->big = aligned_alloc(ALIGN, bytes);
	if (!k->big)
		return error_set(-ENOMEM, "no memory for a large value");
	memset(k->big, 0, bytes);
	k->big_bytes = bytes;
	k->big_mr = register_memory(k, k->big, bytes);
	if (k->big_mr)
		return 0;
	free_big(k);
	return -ENOMEM;
}

int kit_grow(void *array, uint32_t *room, uint32_t count, size_t item_bytes)
{
	uint32_t more = u32_max(count, 2 * *room);
	void *p;

	if (count <= *room)
		return 0;
	memcpy(&p, array, sizeof(p));
	p = realloc(p, more * item_bytes);
	if (!p)
		return error_set(-ENOMEM, "no memory for a client");
	memcpy(array, &p, sizeof(p));
	*room = more;
	return 0;
}

/* ---- connection --------------------------------------------------------- */

static int attach(struct kit_client *k)
{
	const struct kit_remote *p = &k->remote;

	k->clock = p->link->clock;
	k->has_answered = false;
	k->main = (struct kit_space){k, p->addr, p->rkey};
	k->locks = (struct kit_space){k, p->lock_addr, p->lock_rkey};
	k->mr = register_memory(k, k->arena, k->arena_bytes);
	return k->mr ? 0 : -ENOMEM;
}

static void detach(struct kit_client *k)
{
	free_big(k);
	if (k->mr)
		(void)k->remote.link->verbs->dereg_mr(k->mr);
	k->mr = NULL;
}

int kit_client_init(struct kit_client *k, const struct kit_remote *remote,
		    const struct kit_config *config,
		    const struct kit_part *parts, unsigned count)
{
	struct kit_part own[] = {{&k->answer, sizeof(*k->answer)},
				 {&k->who, config->slots.slot_bytes},
				 {&k->stage, KIT_STAGE_BYTES}};
	struct kit_part all[ARRAY_LEN(own) + KIT_PARTS_MAX];
	int err;

	ASSERT(count <= KIT_PARTS_MAX);
	memcpy(all, own, sizeof(own));
	for (unsigned i = 0; i < count; i++)
		all[ARRAY_LEN(own) + i] = parts[i];
	k->remote = *remote;
	k->config = *config;
	rng_init_text(&k->rng, remote->conn);
	k->failure_ns = (uint64_t)config->failure_ms * 1000000;
	err = make_arena(k, all, count + ARRAY_LEN(own));
	if (!err)
		err = attach(k);
	if (err)
		kit_client_release(k);
	return err;
}

void kit_client_release(struct kit_client *k)
{
	detach(k);
	free(k->arena);
	k->arena = NULL;
}

void kit_client_close(struct kit_client *k)
{
	/* What is not let go of others find when they need it. */
	if (k->has_slot && !kit_stopped(k))
		(void)kit_slot_leave(k, k->slot, k->epoch);
	detach(k);
	/* While the client is still there, for who wants to ask it. */
	if (k->remote.close)
		k->remote.close(k->remote.ctx, &k->remote);
	kit_client_release(k);
}

int kit_plain_create(const struct kit_remote *remote, struct kit_client **out)
{
	static const struct kit_config config = {.what = "the structure"};
	struct kit_client *k = calloc(1, sizeof(*k));
	int err = k ? kit_client_init(k, remote, &config, NULL, 0)
		    : error_set(-ENOMEM, "no memory for a client");

	if (err)
		free(k);
	else
		*out = k;
	return err;
}

void kit_plain_destroy(struct kit_client *k)
{
	kit_client_release(k);
	free(k);
}

int kit_head_read(const struct kit_remote *remote, void *head, size_t bytes)
{
	struct kit_client *k;
	int err = kit_plain_create(remote, &k);

	if (err)
		return err;
	err = kit_read_now(&k->main, 0, k->stage, bytes);
	if (!err)
		memcpy(head, k->stage, bytes);
	kit_plain_destroy(k);
	return err;
}

int kit_renew(struct kit_client *k)
{
	int err;

	if (!k->remote.renew)
		return error_set(-ESTALE, "the connection is gone");
	detach(k);
	err = k->remote.renew(k->remote.ctx, &k->remote);
	if (err)
		return err;
	k->has_slot = false;
	err = attach(k);
	k->is_broken = err != 0;
	return err;
}

int kit_reconnect(struct kit_client *k)
{
	uint32_t slot = k->slot, epoch = k->epoch;
	bool had = k->has_slot;
	int err = -ESTALE;

	for (unsigned i = 0; i < KIT_RECONNECTS && err == -ESTALE; i++) {
		err = kit_renew(k);
		if (!err)
			err = kit_slot_claim(k);
	}
	/* Without a slot nobody could end it: what it does under the number of
	 * the old one would go on after others took that for dead. */
	if (err)
		k->is_broken = true;
	/* Nothing of the old connection is executed any more. */
	else if (had)
		(void)kit_slot_leave(k, slot, epoch);
	return err ? err : k->is_broken ? -ESTALE : 0;
}
