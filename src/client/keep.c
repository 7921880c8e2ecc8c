/* SPDX-License-Identifier: Apache-2.0 */
/* A rack's inside for rooms above; see keep.h. The thread itself is beat.c's.
 */
#include "keep.h"

#include <errno.h>
#include <string.h>

#include "client_priv.h"
#include "error.h"

int client_keep_caller(struct aq_rack *rack, const struct client_caller **out)
{
	struct client_thread *t;
	int err = client_thread_get(rack, &t);

	if (!err)
		*out = &t->caller;
	return err;
}

int client_keep_device(struct aq_rack *rack, struct client_device *out)
{
	int err = client_rack_check(rack);

	if (err)
		return err;
	pthread_mutex_lock(&rack->lock);
	err = client_device_open(rack);
	pthread_mutex_unlock(&rack->lock);
	if (!err)
		*out = (struct client_device){rack->verbs, rack->context,
					      rack->pd};
	return err;
}

uint64_t client_keep_now_ns(const struct aq_rack *rack)
{
	return client_rack_now_ns(rack);
}

const struct client_node *client_keep_node(const struct aq_rack *rack,
					   uint32_t index)
{
	return &rack->node[index];
}

unsigned client_keep_engines(const struct aq_rack *rack,
			     struct client_node engines[CLIENT_NODE_MAX])
{
	return client_engines_find(rack->config, rack->rundir, engines);
}

void client_keep_engine_token(const struct aq_rack *rack,
			      char token[CLIENT_TOKEN_MAX])
{
	client_engine_token(rack->rundir, token);
}

int client_keep_shape(struct aq_region *region, struct client_shape *out)
{
	struct aq_rack *rack = region->rack;
	int err = client_rack_check(rack);

	if (!err)
		err = client_region_lock(region, client_rack_deadline_ns(rack));
	if (err)
		return err;
	if (region->is_stale)
		err = client_region_dead(region);
	out->rack = rack;
	memcpy(out->name, region->name, sizeof(out->name));
	out->is_read_only = region->flags & AQ_REGION_READ_ONLY;
	out->map = region->map;
	pthread_mutex_unlock(&region->lock);
	return err;
}
