/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads and clients of a rack handle count in: one counter file. */
#include "tally.h"

#include <stdio.h>

#include "base/counter.h"
#include "base/lock.h"
#include "client_priv.h"

static const char *const counter_names[CLIENT_C_COUNT] = {
	[CLIENT_C_REFRESHES] = "refreshes",
	[CLIENT_C_CONNECTS] = "connects",
};

static const char *const counter_help[CLIENT_C_COUNT] = {
	[CLIENT_C_REFRESHES] = "operations that met an old map and went on",
	[CLIENT_C_CONNECTS] = "connections made to nodes",
};

/* Counters that nobody can see are no reason not to run. */
static struct tally *make(struct aq_rack *rack, enum tally_kind kind,
			  const char *object)
{
	int err = 0;

	lock_assert_mutex_held(&rack->lock);
	if (!rack->counters)
		err = counter_file_create(rack->rundir, "client",
					  (TALLY_ENTRIES + CLIENT_C_COUNT) *
						  CLIENT_TALLIES,
					  CLIENT_TALLIES, &rack->counters);
	return err ? NULL
		   : tally_create(rack->counters, rack->tally_count++, kind,
				  object, rack->tenant);
}

int client_tally_thread(struct client_thread *t)
{
	struct aq_rack *rack = t->rack;
	char prefix[24];

	if (!t->tally)
		t->tally = make(rack, TALLY_REGION, "");
	if (!t->tally)
		return -ENOMEM;
	snprintf(prefix, sizeof(prefix), "client.%u", rack->tally_count - 1);
	t->counters = counter_file_group(rack->counters, prefix, counter_names,
					 counter_help, CLIENT_C_COUNT);
	return t->counters ? 0 : -ENOMEM;
}

void client_tally_thread_end(struct client_thread *t)
{
	lock_assert_mutex_held(&t->rack->lock);
	if (t->counters)
		counter_file_release(t->rack->counters, t->counters);
	if (t->tally)
		counter_file_release(t->rack->counters, t->tally);
}

void client_tally_name(struct aq_rack *rack, const char *tenant)
{
	if (!tenant)
		return;
	pthread_mutex_lock(&rack->lock);
	snprintf(rack->tenant, sizeof(rack->tenant), "%s", tenant);
	pthread_mutex_unlock(&rack->lock);
}

struct tally *client_tally_open(struct aq_rack *rack, enum tally_kind kind,
				const char *object)
{
	struct tally *t;

	pthread_mutex_lock(&rack->lock);
	t = make(rack, kind, object);
	pthread_mutex_unlock(&rack->lock);
	return t;
}

void client_tally_close(struct aq_rack *rack, struct tally *tally)
{
	/* A child has its parent's pages, and the lock may be held by a thread
	 * that does not exist here. */
	if (!tally || !*rack->is_own)
		return;
	pthread_mutex_lock(&rack->lock);
	counter_file_release(rack->counters, tally);
	pthread_mutex_unlock(&rack->lock);
}
