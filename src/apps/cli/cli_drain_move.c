/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How things move. A table moves by its next generation: it is made on nodes
 * that take something new, all keys are copied while programs go on, and the
 * old one is dropped (far/kv/kv_grow.c). Whoever dies over it is followed by
 * another client of the table. Regions, and the regions of an index together,
 * are copied while their programs wait (client/move.h).
 */
#include <aquifer/aquifer.h>
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli_drain.h"

enum {
	BUSY_MS = 60000, /* another client is resizing the table */
	LOOK_MS = 50,
	TRIES = 3, /* of a region that was changed, or of a slow machine */
};

static void pause_briefly(void)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};

	(void)nanosleep(&pause, NULL);
}

static int resize(struct aq_kv_client *client)
{
	const struct aq_kv_options same = {0};
	uint64_t end_ms = clock_mono_ms() + BUSY_MS;
	int err;

	while ((err = aq_kv_resize(client, &same)) == -EBUSY &&
	       clock_mono_ms() < end_ms)
		pause_briefly();
	return err;
}

int cli_drain_table(const struct cli_drain_right *r, const char *table)
{
	char words[ERROR_TEXT_MAX];
	struct aq_kv_client *client = NULL;
	struct aq_rack *rack = NULL;
	struct aq_kv *kv = NULL;
	int err = cli_drain_right_rack(r, &rack);

	if (!err)
		err = aq_kv_open(rack, table, &kv);
	if (!err)
		err = aq_kv_client_open(kv, NULL, &client);
	if (!err)
		err = resize(client);
	(void)snprintf(words, sizeof(words), "%s", err ? error_last() : "");
	aq_kv_client_close(client);
	aq_kv_close(kv);
	aq_rack_close(rack);
	return err ? error_set(err, "%s", words) : 0;
}

int cli_drain_regions(const struct cli_drain_right *r,
		      const struct client_move *move,
		      char to[CLIENT_NODE_NAME_MAX])
{
	char words[ERROR_TEXT_MAX];
	struct aq_rack *rack = NULL;
	int err = cli_drain_right_rack(r, &rack);

	for (unsigned i = 0; !err && i < TRIES; i++) {
		err = client_move(rack, move, to);
		/* It was changed, or a node gave it up for want of a sign. */
		if (err != -EBUSY && err != -ESTALE)
			break;
		pause_briefly();
		err = i + 1 < TRIES ? 0 : err;
	}
	(void)snprintf(words, sizeof(words), "%s", err ? error_last() : "");
	aq_rack_close(rack);
	return err ? error_set(err, "%s", words) : 0;
}

int cli_drain_settle(const struct cli_drain_right *r, const char *node)
{
	struct aq_rack *rack = NULL;
	int err = cli_drain_right_rack(r, &rack);

	if (!err)
		err = client_move_settle(rack, node);
	aq_rack_close(rack);
	return err;
}
