/* SPDX-License-Identifier: Apache-2.0 */
/* What a message takes by the host cost model, growing, and subscribers of a
 * shipped block. */
#include "efig_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "block/blk.h"
#include "efig_costs.h"
#include "sim/model.h"
#include "sim/sim.h"

enum {
	BLOCK_BYTES = 1 << 20,
	VALUE_BYTES = 64,
	REQUEST_BYTES = 128, /* what a message has beside its value */
};

uint64_t efig_bytes_ps(enum efig_link link, uint64_t bytes)
{
	return bytes * (link == EFIG_LINK_10G
				? efig_costs.slow_ps_per_byte
				: model_connectx5.link_ps_per_byte);
}

uint64_t efig_message_ps(enum efig_link link, uint64_t bytes)
{
	const struct model_params *m = &model_connectx5;

	return m->cpu_post_ps + m->pcie_post_ps + m->nic_tx_ps +
	       model_path_ps(m, 1) +
	       efig_bytes_ps(link, REQUEST_BYTES + bytes) + m->nic_rx_ps +
	       m->pcie_post_ps + m->pcie_ps_per_byte * bytes + m->cpu_poll_ps;
}

/* The client asks the controller, which commits and orders; the node makes the
 * block of memory that it keeps zeroed, and the client's record finds it. */
double efig_grow_us(enum efig_link link)
{
	return (double)(efig_costs.http_us + efig_costs.order_us) +
	       (double)(2 * efig_message_ps(link, 0) + efig_costs.execute_ps) /
		       (double)SIM_US;
}

/* ---- subscribers --------------------------------------------------------- */

static int put(struct blk_block *b, uint64_t sequence)
{
	static const uint8_t session[BLOCK_SESSION_BYTES] = {1};
	uint8_t value[VALUE_BYTES] = {0};
	struct blk_request q = {.session = session,
				.opcode = BLOCK_PUT,
				.sequence = sequence,
				.acked = sequence - 1,
				.length = sizeof(value),
				.value = value};
	struct blk_answer a;
	uint8_t *place = blk_begin(b, &q, &a);

	if (place) {
		memcpy(place, value, sizeof(value));
		blk_finish(b, &q, &a);
	}
	return a.status == BLOCK_OK ? 0 : -EIO;
}

/* Each subscriber's question waits at the node, which answers one after the
 * other; a listener sleeps until its answer comes. */
static int tell_all(struct blk_block *b, unsigned subscribers,
		    enum efig_link link, struct efig_tell_result *out)
{
	uint8_t answer[BLOCK_REPLY_MAX];
	uint64_t serial = b->watch.serial;
	uint64_t at =
		efig_message_ps(link, VALUE_BYTES) + efig_costs.execute_ps;
	double sum = 0;

	if (put(b, 1))
		return -EIO;
	for (unsigned i = 0; i < subscribers; i++) {
		bool has_some = false;
		uint32_t bytes =
			blk_watch_read(&b->watch, serial, UINT32_MAX, b->flags,
				       answer, sizeof(answer), &has_some);
		uint64_t heard;

		if (!has_some)
			return -EIO;
		at += efig_costs.answer_ps;
		heard = at + efig_message_ps(link, bytes) + efig_costs.wake_ps;
		sum += (double)heard;
		out->last_us = (double)heard / (double)SIM_US;
	}
	out->mean_us = sum / subscribers / (double)SIM_US;
	return 0;
}

int efig_tell_run(unsigned subscribers, enum efig_link link,
		  struct efig_tell_result *out)
{
	struct blk_options o = {.kind = BLOCK_QUEUE,
				.size_bytes = BLOCK_BYTES,
				.generation = 1,
				.is_first = true};
	void *mem = aligned_alloc(64, BLOCK_BYTES);
	struct blk_block b;
	int err;

	if (!mem)
		return -ENOMEM;
	memset(mem, 0, BLOCK_BYTES);
	err = blk_init(&b, &o, mem);
	if (!err) {
		err = tell_all(&b, subscribers, link, out);
		blk_release(&b);
	}
	free(mem);
	return err;
}
