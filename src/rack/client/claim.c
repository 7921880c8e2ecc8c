/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a region is taken in the whole rack, but each node knows only its
 * own regions: two clients that make one of the same name at the same time
 * would each find that there is none, and choose two nodes. So whoever makes
 * one holds a claim meanwhile, at every node that answers: two clients meet
 * even where one of them found a node too slow, or not started yet. Claims are
 * taken in the order of the nodes' names, so nobody waits in a circle.
 */
#include "claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/error.h"
#include "client_priv.h"

enum {
	/* The claim outlives the making, which ends by its deadline. */
	MORE_MS = 1000,
	MS_MAX = 60000,
	/* Between two tries while somebody else has it. */
	NAP_NS = 1000000,
	NAP_NS_MAX = 16 * NAP_NS,
};
STATIC_ASSERT(CLIENT_NODE_MAX <= 64, "a bit for each node");

/* The node after the given one by name, count: none. */
static uint32_t next_by_name(const struct aq_rack *rack, const char *after)
{
	uint32_t i, best, count = client_rack_nodes(rack);

	best = count;
	for (i = 0; i < count; i++)
		if (strcmp(rack->node[i].name, after) > 0 &&
		    (best == count ||
		     strcmp(rack->node[i].name, rack->node[best].name) < 0))
			best = i;
	return best;
}

static int take_once(struct client_thread *t, uint32_t node, const char *name,
		     const char *holder, uint64_t share_ns,
		     uint64_t deadline_ns)
{
	uint32_t ms = client_rack_left_ms(t->rack, deadline_ns) + MORE_MS;
	json_t *reply = NULL;
	int err = client_thread_call(
		t, node, "POST", "/v1/claims",
		json_pack("{s:s, s:s, s:i}", "name", name, "holder", holder,
			  "ms", (int)(ms < MS_MAX ? ms : MS_MAX)),
		share_ns, &reply);

	json_decref(reply);
	return err;
}

/* Waits while somebody else has it there; -EBUSY: until half of the time is
 * over, since the rest is for what is done under the claim. A node that said so
 * and then is silent may only be slow, and is not passed over. */
static int take_at(struct client_thread *t, uint32_t node, const char *name,
		   const char *holder, uint32_t left, uint64_t deadline_ns)
{
	uint64_t until_ns = client_rack_share_ns(t->rack, deadline_ns, 2);
	uint64_t share_ns =
		client_rack_share_ns(t->rack, deadline_ns, 2 * left);
	struct timespec nap = {.tv_nsec = NAP_NS};
	bool is_taken = false;
	int err;

	do {
		if (is_taken) {
			(void)nanosleep(&nap, NULL); /* early: just as well */
			t->rack->transport->relax(t->rack->transport_ctx);
			if (nap.tv_nsec < NAP_NS_MAX)
				nap.tv_nsec *= 2;
		}
		err = take_once(t, node, name, holder,
				is_taken ? until_ns : share_ns, deadline_ns);
		is_taken |= err == -EBUSY || err == -EAGAIN;
		if (is_taken && err == -EHOSTDOWN)
			err = error_set(-EBUSY,
					"somebody else is making a region %s",
					name);
	} while ((err == -EBUSY || err == -EAGAIN) &&
		 client_rack_now_ns(t->rack) < until_ns);
	return err;
}

int client_claim_take(struct client_thread *t, const char *name,
		      uint64_t deadline_ns, struct client_claim *c)
{
	const char *after = "";
	uint32_t left, node;
	uint64_t random;
	int err = 0;

	*c = (struct client_claim){0};
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return error_set(-EIO, "the kernel gives no random numbers");
	(void)snprintf(c->holder, sizeof(c->holder), "%016" PRIx64, random);
	client_rack_rescan(t->rack);
	for (left = client_rack_nodes(t->rack);
	     left && (!err || err == -EHOSTDOWN); left--) {
		node = next_by_name(t->rack, after);
		after = t->rack->node[node].name;
		err = take_at(t, node, name, c->holder, left, deadline_ns);
		if (!err)
			c->nodes |= 1ull << node;
	}
	/* Some may be down; one of them has to answer. */
	if (!err || (err == -EHOSTDOWN && c->nodes))
		return 0;
	client_claim_drop(t, name, deadline_ns, c);
	return err;
}

void client_claim_drop(struct client_thread *t, const char *name,
		       uint64_t deadline_ns, const struct client_claim *c)
{
	char path[CLIENT_PATH_MAX];

	(void)snprintf(path, sizeof(path), "/v1/claims/%s/%s", name, c->holder);
	/* Where that fails it ends by itself, only later. */
	for (uint32_t i = 0; i < CLIENT_NODE_MAX; i++)
		if (c->nodes >> i & 1)
			client_thread_tell(t, i, "DELETE", path, deadline_ns);
}
