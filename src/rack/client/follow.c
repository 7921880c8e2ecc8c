/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of a piece whose key is dead. A node that is emptied gives its
 * regions to others while they are used (decision 62); each has a number from
 * its birth, which it keeps, so that it is told from another one of its name.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/error.h"
#include "client_priv.h"

enum {
	NAP_NS = 5000000, /* between two looks at what is on its way */
};

bool client_follow_nap(const struct aq_rack *rack, uint64_t deadline_ns)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	if (client_rack_now_ns(rack) + NAP_NS >= deadline_ns)
		return false;
	(void)nanosleep(&nap, NULL); /* early: just as well */
	rack->transport->relax(rack->transport_ctx);
	return true;
}

/* At another node than where it was; 0 or -ENOENT. */
static int look_elsewhere(struct client_thread *t, const char *name,
			  const struct client_piece *old, uint64_t deadline_ns,
			  struct client_piece *out)
{
	struct client_piece now;
	uint32_t count;

	client_rack_rescan(t->rack);
	count = client_rack_nodes(t->rack);
	for (uint32_t i = 0; i < count; i++)
		if (i != old->node &&
		    client_piece_stat(t, i, name,
				      client_rack_share_ns(t->rack, deadline_ns,
							   count - i + 1),
				      &now) == 0 &&
		    now.birth == old->birth) {
			*out = now;
			return 0;
		}
	return -ENOENT;
}

/* Whether the node still has it; -ESTALE: not this one. */
static int look_there(struct client_thread *t, const char *name,
		      const struct client_piece *old, uint64_t deadline_ns,
		      struct client_piece *out)
{
	struct client_piece now;
	int err = client_piece_stat(t, old->node, name, deadline_ns, &now);

	if (err == -ENOENT)
		return error_set(-ESTALE, "was deleted, or its node was "
					  "started anew");
	if (err)
		return err;
	if (now.incarnation != old->incarnation)
		return error_set(-ESTALE,
				 "was lost when its node was started anew");
	/* It may have moved away and come back. */
	if (now.id != old->id && (!old->birth || now.birth != old->birth))
		return error_set(-ESTALE,
				 "was replaced by another of that name");
	*out = now;
	return 0;
}

int client_piece_follow(struct client_thread *t, const char *name,
			const struct client_piece *old, uint64_t deadline_ns,
			struct client_piece *out)
{
	char words[ERROR_TEXT_MAX];
	uint64_t share_ns;
	int err;

	do {
		share_ns = old->birth ? client_rack_share_ns(t->rack,
							     deadline_ns, 2)
				      : deadline_ns;
		err = look_there(t, name, old, share_ns, out);
		if (!err || !old->birth)
			return err;
		(void)snprintf(words, sizeof(words), "%s", error_last());
		if ((err == -ESTALE || err == -EBUSY || err == -EHOSTDOWN) &&
		    look_elsewhere(t, name, old, deadline_ns, out) == 0)
			return 0;
	} while (err == -EBUSY && client_follow_nap(t->rack, deadline_ns));
	return error_set(err, "%s", words);
}
